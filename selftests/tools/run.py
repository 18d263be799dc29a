#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of "smctl run" without the module. Prints KTAP.

Evaluation of rules, choice between preload library and supervisor, status and signals through the
supervisor. That the rules decide how bytes are carried is tested in guests: run.sh.
"""

import os
import pathlib
import pty
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from tools import HERE, LOADED, PROBE, SMCTL, SRC, Skip, fails, main, run

SECCOMP = (SMCTL, "run", "--rules", "/dev/null", "--via", "seccomp")
PRELOAD = (SMCTL, "run", "--rules", "/dev/null", "--via", "preload")
SOCKET = {"inet": "socket 2 1 0", "inet6": "socket 10 526337 6", "udp": "socket 2 2 0",
          "unix": "socket 1 1 0", "icmp": "socket 2 1 1"}


def compile_c(to, source, *flags):
    built = run(os.environ.get("CC", "cc"), "-g", "-D_GNU_SOURCE", f"-I{SRC}/include/uapi",
                "-o", to, HERE / source, *flags)
    assert built.returncode == 0, built.stderr
    return to


def build(folder):
    """Build the programs that the cases use, in a folder."""
    compile_c(folder / "rules", "rules_probe.c", "-fsanitize=address,undefined",
              SRC / "tools/common/rules.c", SRC / "tools/common/family.c")
    compile_c(folder / "static", "socket_probe.c", "-static")
    compile_c(folder / "static-pie", "socket_probe.c", "-static-pie")
    compile_c(folder / "dynamic", "socket_probe.c")
    # smctl recognises Go programs by either of these sections.
    for section in ".go.buildinfo", ".note.go.buildid":
        done = run("objcopy", "--add-section", f"{section}={SRC / 'COPYING'}",
                   folder / "dynamic", folder / f"go{section}")
        assert done.returncode == 0, done.stderr
    return folder


def answers(folder, rules, *questions, **env):
    done = run(folder / "rules", *rules, input="\n".join(questions), env=env)
    assert done.returncode == 0 and not done.stderr, done
    return done.stdout.split()


def seccomp_of(*command):
    """The seccomp mode of the program: 0 if preloaded, 2 if under the supervisor"""
    done = run(SMCTL, "run", *command)
    assert done.returncode == 0, done
    return int(done.stdout.split()[-1])


def no_rules(folder):
    """rules: without any, TCP sockets become AF_RDMA sockets, and no others"""
    asked = [SOCKET[name] for name in ("inet", "inet6", "udp", "unix", "icmp")]
    assert answers(folder, [], *asked) == ["rdma", "rdma", "tcp", "tcp", "tcp"]
    assert answers(folder, [], "connect 10.0.0.1 1", "listen ::1 2") == ["rdma", "rdma"]


def first_match(folder):
    """rules: the first one that matches in side, address and port decides"""
    rules = ["use rdma connect address 10.1.0.0/17 port 6379", "use tcp listen port 22",
             "use rdma port 20-30,80", "use tcp"]
    for question, answer in {
            "connect 10.1.0.9 6379": "rdma", "connect 10.1.128.9 6379": "tcp",
            "listen 10.1.0.9 6379": "tcp", "connect 10.1.0.9 6380": "tcp",
            "listen 0.0.0.0 22": "tcp", "connect 10.9.0.1 22": "rdma",
            "listen 0.0.0.0 30": "rdma", "listen 0.0.0.0 31": "tcp",
            "listen 0.0.0.0 80": "rdma", "connect ::ffff:10.1.0.9 6379": "rdma",
            "connect fd00::1 6379": "tcp", SOCKET["inet"]: "rdma"}.items():
        assert answers(folder, rules, question) == [answer], question


def prefixes(folder):
    """rules: prefixes of both families, from no bits to all bits"""
    for prefix, inside, outside in [
            ("10.1.2.3", "10.1.2.3", "10.1.2.2"), ("10.1.2.3/31", "10.1.2.2", "10.1.2.4"),
            ("0.0.0.0/0", "192.0.2.1", "fd00::1"), ("::/0", "fd00::1", "192.0.2.1"),
            ("fd00::/9", "fd7f::1", "fd80::1"), ("fd00::1", "fd00::1", "fd00::2")]:
        asked = [f"connect {inside} 1", f"connect {outside} 1"]
        rules = [f"use tcp address {prefix}"]
        assert answers(folder, rules, *asked) == ["tcp", "rdma"], prefix


def by_process(folder):
    """rules: programs match by file name, cgroups include those below them"""
    proc = folder / "proc"
    proc.mkdir(exist_ok=True)
    (proc / "exe").unlink(missing_ok=True)
    (proc / "exe").symlink_to("/usr/sbin/sshd (deleted)")
    (proc / "cgroup").write_text("1:name=x:/\n0::/system.slice/ssh.service\n", encoding="ascii")
    for rule, answer in {
            "use tcp program sshd": "tcp", "use tcp program ssh": "rdma",
            "use tcp cgroup /system.slice": "tcp", "use tcp cgroup /system.sli": "rdma",
            "use tcp cgroup /": "tcp", "use tcp program sshd cgroup /a": "rdma",
            "use tcp program sshd cgroup /system.slice/ssh.service/": "tcp",
            "use tcp program sshd port 5": "rdma"}.items():
        assert answers(folder, [rule], SOCKET["inet"], PROC=str(proc)) == [answer], rule
    asked = ["connect 10.0.0.1 5", "connect 10.0.0.1 6"]
    rules = ["use tcp program sshd port 5", "use rdma program sshd", "use tcp"]
    assert answers(folder, rules, *asked, PROC=str(proc)) == ["tcp", "rdma"]
    assert answers(folder, rules, *asked, PROC="/no/such") == ["tcp", "tcp"]
    # In /proc/PID/cgroup, the lines of cgroup version 1 precede the line of the unified hierarchy.
    # Here they exceed the buffer of read_unified().
    old = "".join(f"{number}:name=x{number}:/{'d' * 200}\n" for number in range(12, 0, -1))
    (proc / "cgroup").write_text(f"{old}0::/system.slice/ssh.service\n", encoding="ascii")
    rules = ["use tcp cgroup /system.slice"]
    assert answers(folder, rules, SOCKET["inet"], PROC=str(proc)) == ["tcp"]
    rules = ["use tcp program sshd port 5", "use rdma program sshd", "use tcp"]
    (proc / "exe").unlink()
    (proc / "exe").symlink_to("/srv/old (deleted)/sshd")
    assert answers(folder, rules, *asked, PROC=str(proc)) == ["tcp", "rdma"]


def bad_rules(folder):
    """rules: bad ones are refused; smctl prints file, line and word"""
    for rule, sentence in {
            "take rdma": "begins with use, not with: take", "use": "followed by rdma or tcp",
            "use sdp": "not by: sdp", "use tcp to 1": "not: to", "use tcp port": "nothing follows",
            "use tcp listen connect": "given twice: connect",
            "use tcp port 1 port 2": "given twice: port",
            "use rdma port foo listen": "7000-7100: foo", "use tcp port 0": "no port", "use tcp port 65536": "no port",
            "use tcp port 9-8": "no port", "use tcp port 1,": "no port",
            "use tcp port -1": "no port", "use tcp port 1-2-3": "no port",
            "use tcp address 10.0.0.0/33": "no address", "use tcp address x": "no address",
            "use tcp address ::/": "no address", "use tcp address 10.1.0.0/8x": "no address",
            "use tcp program /bin/sh": "without its folder", "use tcp cgroup a": "begins with /",
            "use tcp\nuse rdma": "one line"}.items():
        done = run(folder / "rules", rule)
        assert done.returncode == 1 and sentence in done.stdout, (rule, done)
    path = folder / "bad.conf"
    path.write_text("# all\n\nuse tcp port 22 # ssh\nuse rmda\n", encoding="ascii")
    fails(run(SMCTL, "run", "--rules", path, "true"), 1, f"{path}:4: use is followed by rdma or")
    fails(run(SMCTL, "run", "--rules", "/no/such", "true"), 1, "/no/such: No such file")
    fails(run(SMCTL, "run", "--use", "tcp prot 1", "true"), 1, "--use: a rule knows")
    fails(run(SMCTL, "run", "--port", "1-", "true"), 1, "--port: no port")
    fails(run(SMCTL, "run", "--via", "magic", "true"), 1, "--via is followed by")
    fails(run(SMCTL, "run", "--via", "preload", "--via", "magic", "true"), 1, "not by magic")
    done = run(folder / "rules", "use")
    assert "not by" not in done.stdout, done


def too_many_rules(folder):
    """rules: more than the limit are refused, not dropped"""
    done = run(folder / "rules", *["use tcp port 1"] * 129)
    assert done.returncode == 1 and "more rules" in done.stdout, done
    done = run(folder / "rules", "use tcp port " + ",".join(["1"] * 129))
    assert done.returncode == 1 and "more rules" in done.stdout, done
    done = run(folder / "rules", *["use tcp program " + "x" * 200] * 50)
    assert done.returncode == 1 and "more rules" in done.stdout, done
    fails(run(SMCTL, "run", "--use", "tcp" + " " * 8190 + "port 22", "true"), 1, "more rules")


def rules_are_passed_on(_):
    """rules: options precede the file, and all are passed to the library"""
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
        file.write("  use tcp port 5 # five\n\nuse rdma\n")
        file.flush()
        done = run(SMCTL, "run", "--use", "tcp port 1", "--port", "2,3", "--rules", file.name,
                   "printenv", "AFRDMA_RUN_RULES")
    assert [line.strip() for line in done.stdout.splitlines()] == [
        "use tcp port 1", "use rdma port 2,3", "use tcp", "use tcp port 5", "use rdma"], done
    assert run(*SECCOMP, "printenv", "AFRDMA_RUN_RULES").returncode == 1


def means_by_kind(folder):
    """run: static and Go programs use the supervisor, others the library"""
    for name, want in {"static": 2, "static-pie": 2, "dynamic": 0, "go.go.buildinfo": 2,
                       "go.note.go.buildid": 2}.items():
        assert seccomp_of(folder / name) == want, name
    assert seccomp_of("--via", "seccomp", folder / "dynamic") == 2
    assert seccomp_of("--via", "preload", folder / "static") == 0
    for name, want in {"static": 2, "dynamic": 0}.items():
        inner, outer = folder / f"{name}.script", folder / f"{name}.outer"
        inner.write_text(f"#! {folder / name}\n", encoding="ascii")
        inner.chmod(0o755)
        outer.write_text(f"#!{inner}\n", encoding="ascii")
        outer.chmod(0o755)
        assert seccomp_of(inner) == want and seccomp_of(outer) == want, name


def means_by_path(folder):
    """run: the program is searched in PATH, as by exec"""
    (folder / "empty").mkdir(exist_ok=True)
    path = f"/no/such:{folder / 'empty'}:{folder}"
    done = run(SMCTL, "run", "static", env={"PATH": path})
    assert done.stdout == "seccomp 2\n", done


def oddities(folder):
    """run: files that are not programs for this machine are reported"""
    text = folder / "text"
    text.write_text("exit 3\n", encoding="ascii")
    text.chmod(0o755)
    done = run(SMCTL, "run", text)
    assert done.returncode == 3 and "neither an ELF file nor a script" in done.stderr, done
    other = folder / "foreign"
    other.write_bytes((folder / "static").read_bytes()[:18] + b"\x16" + bytes(45))
    other.chmod(0o755)
    done = run(SMCTL, "run", other)
    assert done.returncode and "another kind of machine" in done.stderr, done
    (folder / "short").write_bytes(b"\x7fELF")
    (folder / "short").chmod(0o755)
    assert "neither an ELF" in run(SMCTL, "run", folder / "short").stderr


def status_of_supervised(_):
    """supervisor: status, arguments, output and fatal signals of the program"""
    assert run(*SECCOMP, "sh", "-c", "exit 42").returncode == 42
    assert run(*SECCOMP, "/no/such").returncode == 127
    assert run(*SECCOMP, "/").returncode == 126
    assert run(*SECCOMP, "--", "echo", "-n", "--", "-j").stdout == "-- -j"
    assert run(*SECCOMP, "cat", input="through").stdout == "through"
    # SIGHUP is left out, since it is ignored if the tests run under nohup.
    for number in signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGUSR1:
        done = run(*SECCOMP, "sh", "-c", f"kill -{int(number)} $$")
        assert done.returncode == -number, done
    done = run("sh", "-c", "exec 0<&- 1>&-; exec \"$@\"", "sh", *SECCOMP, "sh", "-c", "exit 9")
    assert done.returncode == 9, done


CATCHER = """
import signal, sys, time
def caught(number, _):
    print(number, flush=True)
    if number == signal.SIGTERM:
        raise SystemExit(5)
for name in "HUP", "INT", "QUIT", "USR1", "USR2", "TERM", "WINCH", "ALRM", "PIPE":
    signal.signal(getattr(signal, "SIG" + name), caught)
print("ready", flush=True)
while True:
    time.sleep(60)
"""


def signals_of_supervised(_):
    """supervisor: signals are passed to the program, which handles them"""
    with subprocess.Popen([str(word) for word in SECCOMP] + [sys.executable, "-c", CATCHER],
                          stdout=subprocess.PIPE, text=True) as it:
        assert it.stdout.readline() == "ready\n"
        for name in "HUP", "INT", "QUIT", "USR1", "USR2", "WINCH", "ALRM", "PIPE", "TERM":
            number = getattr(signal, "SIG" + name)
            it.send_signal(number)
            assert it.stdout.readline() == f"{int(number)}\n", name
        assert it.wait(30) == 5


def hangup_of_supervised(_):
    """supervisor: when the terminal hangs up, SIGHUP ends the program"""
    reader, writer = os.pipe()
    pid, terminal = pty.fork()
    if not pid:     # the leader of the session of the terminal
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        os.set_inheritable(writer, True)
        os.execv(SMCTL, [str(word) for word in SECCOMP] +
                 ["sh", "-c", f"echo ready >&{writer}; exec sleep 60"])
    os.close(writer)
    assert os.read(reader, 10) == b"ready\n"
    os.close(terminal)
    ended = select.select([reader], [], [], 20)[0]
    if not ended:
        os.kill(pid, signal.SIGTERM)
    assert os.WTERMSIG(os.waitpid(pid, 0)[1]) == signal.SIGHUP and ended
    os.close(reader)


def alarm_of_supervised(_):
    """supervisor: an alarm that the caller has set ends the program"""
    alarm = "import os, signal, sys; signal.alarm(1); os.execvp(sys.argv[1], sys.argv[1:])"
    done = run(sys.executable, "-c", alarm, *SECCOMP, "sleep", 20)
    assert done.returncode == -signal.SIGALRM, done


def mask_of_supervised(_):
    """supervisor: the program has the signal mask, ignored signals and open files of its caller"""
    look = "grep -E 'Sig(Blk|Ign)' /proc/self/status; ls /proc/self/fd | wc -l"
    ignore = ("import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); "
              "os.execvp(sys.argv[1], sys.argv[1:])")
    for before, command in (((), ("sh", "-c", look)),
                            ((sys.executable, "-c", ignore),
                             ("grep", "SigIgn", "/proc/self/status"))):
        direct, supervised = (run(*before, *how, *command).stdout for how in ((), SECCOMP))
        assert direct == supervised, (direct, supervised)


def what_is_left_behind(_):
    """supervisor: it continues to serve processes that the program leaves behind"""
    late = ("import socket, time; time.sleep(1); socket.socket(); "
            "open('/proc/self/fd/3', 'w').write('late')")
    with tempfile.NamedTemporaryFile("r") as file:
        start = time.monotonic()
        done = run("sh", "-c", 'exec 3>"$0"; exec "$@"', file.name, *SECCOMP, "sh", "-c",
                   f'"{sys.executable}" -c "$0" & exit 6', late)
        assert done.returncode == 6 and file.read() == "late", done
        assert time.monotonic() - start > 1


def output_ends(_):
    """supervisor: it does not keep files open that the program has closed"""
    # In SECCOMP + SECCOMP, the inner smctl answers no calls, but must not keep files open either.
    for smctl in SECCOMP, SECCOMP + SECCOMP:
        with subprocess.Popen([str(word) for word in smctl] +
                              ["sh", "-c", "exec >&- 2>&-; read _; exit 4"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE) as it:
            assert select.select([it.stdout], [], [], 20)[0], "standard output is still open"
            assert it.stdout.read() == b"" and it.poll() is None
            it.stdin.close()
            assert it.wait(30) == 4


def supervised_answers(folder):
    """supervisor: without AF_RDMA, sockets, options and threads work as with TCP"""
    done = run(*SECCOMP, sys.executable, "-c", PROBE)
    assert done.returncode == 0, done
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        with subprocess.Popen([str(word) for word in SECCOMP] +
                              ["--use", "tcp port 1", folder / "static", "127.0.0.1", port,
                               "65536"], stdout=subprocess.PIPE, text=True) as it:
            sock = server.accept()[0]
            with sock:
                sock.settimeout(30)
                left = 65536
                while left:
                    data = sock.recv(left)
                    left -= len(data)
                    sock.sendall(data)
            assert it.stdout.read() == "seccomp 2\nechoed\n" and it.wait(30) == 0


def supervised_go(_):
    """supervisor: a Go program with many threads receives all its answers"""
    hey = shutil.which("hey")
    if not hey:
        raise Skip("no hey")
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "page").write_text("bytes " * 1000, encoding="ascii")
        with subprocess.Popen([str(word) for word in PRELOAD] +
                              [sys.executable, "-u", "-m", "http.server", "--bind", "127.0.0.1",
                               "--directory", folder, "0"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True) as server:
            try:
                port = server.stdout.readline().split("port ")[1].split()[0]
                done = run(SMCTL, "run", "--use", "tcp port 1", hey, "-n", "200", "-c", "20",
                           f"http://127.0.0.1:{port}/page")
            finally:
                server.kill()
    assert "[200]\t200 responses" in done.stdout, done


def privileges(_):
    """supervisor: programs have no_new_privs, except those of root"""
    if os.geteuid():
        raise Skip("not root")
    look = ["grep", "NoNewPrivs", "/proc/self/status"]
    assert run(*SECCOMP, *look).stdout.split() == ["NoNewPrivs:", "0"]
    done = run("setpriv", "--reuid", "65534", "--clear-groups", *SECCOMP, *look)
    assert done.stdout.split() == ["NoNewPrivs:", "1"], done


def one_supervisor(folder):
    """supervisor: a second one inside the first is not used"""
    done = run(*SECCOMP, *SECCOMP, folder / "static")
    assert done.stdout == "seccomp 2\n" and "already under a supervisor" in done.stderr, done


def children_before(_):
    """supervisor: does not wait for children that its process had before"""
    with subprocess.Popen(["sh", "-c", 'sleep 1000 & echo $!; exec "$0" "$@"', *SECCOMP, "true"],
                          stdout=subprocess.PIPE, text=True) as shell:
        sleeper = int(shell.stdout.readline())
        try:
            assert shell.wait(20) == 0
        finally:
            os.kill(sleeper, signal.SIGKILL)


def rules_of_supervisor(folder):
    """supervisor: inside a program with the preload library, only its own rules apply"""
    look = "sh", "-c", "echo $LD_PRELOAD"
    assert "afrdma" in run(*PRELOAD, *look).stdout
    done = run(*PRELOAD, *SECCOMP, *look)
    assert done.returncode == 0 and done.stdout == "\n", done


def odd_library(folder):
    """preload: a library that ld.so would not load is refused"""
    for name in "my lib", "my:lib":
        library = folder / name / "libafrdma-preload.so"
        library.parent.mkdir()
        library.touch()
        done = run(SMCTL, "run", "--preload", library, "--via", "preload", "true")
        assert done.returncode == 1 and "a blank or a colon" in done.stderr, done


def prints_tcp(folder):
    """supervisor: without AF_RDMA, one line if AFRDMA_PRELOAD_DEBUG is set"""
    if LOADED:
        raise Skip("afrdma is loaded")
    done = run(*SECCOMP, folder / "static", env={"AFRDMA_PRELOAD_DEBUG": "1"})
    assert done.stderr.count("sockets are plain TCP\n") == 1, done


def many_groups(folder):
    """supervisor: a caller in 1,000 supplementary groups is served"""
    if os.geteuid() or LOADED:
        raise Skip("not root" if os.geteuid() else "afrdma is loaded")
    groups = ",".join(str(group) for group in range(100000, 101000))
    done = run("setpriv", "--groups", groups, *SECCOMP, folder / "static",
               env={"AFRDMA_PRELOAD_DEBUG": "1"})
    assert done.stderr.count("sockets are plain TCP\n") == 1, done


CASES = [no_rules, first_match, prefixes, by_process, bad_rules, too_many_rules,
         rules_are_passed_on, means_by_kind, means_by_path, oddities, status_of_supervised,
         signals_of_supervised, hangup_of_supervised, alarm_of_supervised, mask_of_supervised,
         what_is_left_behind, output_ends, supervised_answers, supervised_go, privileges,
         one_supervisor, children_before, rules_of_supervisor, odd_library, prints_tcp,
         many_groups]


if __name__ == "__main__":
    sys.exit(main(CASES, build))
