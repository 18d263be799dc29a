# SPDX-License-Identifier: GPL-2.0
"""The two types of guest for run: processes of User-Mode Linux and virtual machines of QEMU."""

import ctypes
import hashlib
import os
import pathlib
import re
import signal
import socket
import stat
import struct
import subprocess
import time

LAB = pathlib.Path(__file__).resolve().parent
CACHE = pathlib.Path(os.environ.get("AFRDMA_CACHE",
                                    pathlib.Path.home() / ".cache/afrdma"))
SYS_PIDFD_GETFD = 438
SO_RCVBUFFORCE = 33
MCONSOLE = 0xcafebabe   # magic number of the management console of User-Mode Linux
WIRE_BYTES = 16 << 20   # receive buffer for frames to a guest of User-Mode Linux
KVM_PATIENCE = 10       # seconds; a working KVM boots the probe in one or two

GUESTS = {
    "a": {"name": "afr-a", "v4": "10.77.0.1", "v6": "fd77::1",
          "mac": "02:af:00:00:00:0a", "other": "b"},
    "b": {"name": "afr-b", "v4": "10.77.0.2", "v6": "fd77::2",
          "mac": "02:af:00:00:00:0b", "other": "a"},
}


class LabError(Exception):
    """The lab itself failed; this is not a verdict on the test."""


def say(text):
    print(f"lab: {text}", flush=True)


def kernels(*words):
    """The output of kernels.sh, which builds or downloads what is missing."""
    done = subprocess.run([LAB / "kernels.sh", *words], check=False,
                          stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise LabError(f"kernels.sh {' '.join(words)} failed")
    return done.stdout.strip()


def die_with_parent():
    """Called in a child process: it is killed when this program ends, in whatever way."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)      # PR_SET_PDEATHSIG


def for_new_sockets(pid, known, change):
    """Call @change with each socket of another process whose name is not in @known; returns the
    names of all its sockets."""
    names = set()
    try:
        for fd in os.scandir(f"/proc/{pid}/fd"):
            name = os.readlink(fd.path)
            if name.startswith("socket:"):
                names.add(name)
            if name in names - known:
                borrow(pid, int(fd.name), change)
    except (FileNotFoundError, ProcessLookupError):
        pass        # it has closed a descriptor, or has ended
    return names


def borrow(pid, fd, change):
    """Call @change with the socket that is descriptor @fd of another process."""
    pidfd = os.pidfd_open(pid)
    copy = ctypes.CDLL(None).syscall(SYS_PIDFD_GETFD, pidfd, fd, 0)
    os.close(pidfd)
    if copy < 0:
        return
    if not stat.S_ISSOCK(os.fstat(copy).st_mode):   # it has reused the number
        os.close(copy)
        return
    with socket.socket(fileno=copy) as sock:
        change(sock)


def widen(sock):
    """Enlarge the receive buffer of a packet socket, for bursts. The default buffer holds about
    thirty frames; while a guest waits for a processor, further frames would be lost."""
    if sock.family == socket.AF_PACKET:
        sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, WIRE_BYTES)


def unblock(sock):
    """Put a socket into non-blocking mode. QEMU 7.2 does not do that to the socket of a network
    card that it has accepted, so a whole guest would stand still while the other one takes no
    frames."""
    sock.setblocking(False)


class Uml:
    """Guests of User-Mode Linux: processes in a network namespace of their own."""

    accel = "uml"

    def __init__(self, args):
        self.args = args
        self.image = kernels("image", args.guest)
        self.root = pathlib.Path(self.image).parent
        self.smp = self.has("SMP")
        self.memory = 1024 if self.has("KASAN") else 512
        # The vector driver is fast, but lockdep reports its locks. The debug kernel of 6.12 uses
        # the tap driver, which is slow and has no MTU above 1500, but causes no such reports. 7.2
        # has no tap driver.
        self.tap = self.has("PROVE_LOCKING") and self.has("UML_NET_TUNTAP")
        self.mtu = 1500 if self.tap else 8192
        if args.smp > 1 and not self.smp:
            raise LabError(f"the kernel of {args.guest} uses one processor only: no --smp")
        self.widened = {}
        self.rung = {}

    def has(self, option):
        """Was the kernel built with CONFIG_@option?"""
        return (self.root / "include/config" / option).exists()

    def set_up_link(self):
        if self.args.netns:
            return      # guest-init.sh connects the namespaces
        run = lambda line: subprocess.run(line.split(), check=True)
        run("ip link set lo up")
        if not self.tap:
            run(f"ip link add va mtu {self.mtu} type veth peer name vb mtu {self.mtu}")
            for end in ("va", "vb"):
                # No offloads: raw sockets must see the frames as they would be on a wire.
                subprocess.run(["ethtool", "-K", end, "tx", "off", "rx", "off",
                                "gso", "off", "gro", "off", "tso", "off"],
                               check=False, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
                run(f"ip link set {end} up")
            return
        run("ip link add br0 type bridge")
        run("ip link set br0 up")
        for end in ("ta", "tb"):
            run(f"ip tuntap add {end} mode tap")
            run(f"ip link set {end} master br0 up")

    @staticmethod
    def ready_for(_role, _scratch):
        return True

    def command(self, role, out, scratch):
        mac = GUESTS[role]["mac"]
        if self.tap:
            link = f"eth0=tuntap,t{role},{mac}"
        else:
            link = (f"vec0:transport=raw,ifname=v{role},depth=64,"
                    f"mtu={self.mtu},mac={mac}")
        link = [] if self.args.netns else [link]
        # Several processors need the seccomp mode, in which processes of the guest are stopped by
        # seccomp instead of ptrace.
        smp = [f"ncpus={self.args.smp}", "seccomp=on"] if self.smp else []
        return [self.image, f"mem={self.args.mem or self.memory}M", *smp,
                "root=/dev/root", "rootfstype=hostfs", "ro",
                "con=null", "con0=null,fd:1", "ssl=null", *link,
                f"umid=afr-{role}", f"uml_dir={scratch}/",
                "panic=-1", "loglevel=7", "log_buf_len=4M", "slab_nomerge",
                f"init={LAB}/guest-init.sh", f"afr_run={out}", f"afr_role={role}"]

    def tend(self, guest):
        """Do what a running guest needs in each round of watch()."""
        self.ring(guest.proc.pid)
        if not self.tap:    # the guest opens a new socket each time the interface is set up
            pid = guest.proc.pid
            self.widened[pid] = for_new_sockets(pid, self.widened.get(pid, set()), widen)

    def ring(self, pid):
        """Send an additional SIGALRM to a guest each second. The kernel of the guest drops an alarm
        that arrives while it handles another one (unblock_signals() in
        arch/um/os-Linux/signal.c), and sets no timer afterwards: without the additional signal,
        time in the guest would stop, and its idle loop would run without sleeping."""
        if time.monotonic() < self.rung.get(pid, 0) + 1:
            return
        self.rung[pid] = time.monotonic()
        try:
            status = pathlib.Path(f"/proc/{pid}/status").read_text()
            if int(re.search(r"^SigCgt:\s*(\w+)", status, re.M)[1], 16) & 1 << signal.SIGALRM - 1:
                os.kill(pid, signal.SIGALRM)
        except (FileNotFoundError, ProcessLookupError, TypeError):
            pass        # the guest has ended

    @staticmethod
    def console(out):
        """The file for the standard output of the kernel."""
        return open(out / "console", "wb")

    @staticmethod
    def freeze(guest, _scratch, stop):
        """Stop or continue the kernel of the guest. While it is stopped, each process of the guest
        waits at its next system call."""
        os.kill(guest.proc.pid, signal.SIGSTOP if stop else signal.SIGCONT)

    @staticmethod
    def still_there(guest, scratch):
        """A phrase for the report: does the kernel of the guest serve interrupts?"""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as mconsole:
            mconsole.bind(f"{scratch}/{guest.role}.query")
            mconsole.settimeout(3)
            line = b"version"
            try:
                mconsole.connect(f"{scratch}/afr-{guest.role}/mconsole")
                mconsole.send(struct.pack("III512s", MCONSOLE, 2, len(line), line))
                mconsole.recv(1 << 16)
            except OSError as error:
                return f"its kernel does not answer: {error}"
        return "its kernel answers"


class Vm:
    """Guests in QEMU, with kernels of Debian or the kernel with KCSAN that kernels.sh builds."""

    mtu = 8192

    def __init__(self, args):
        self.args = args
        self.image = kernels("image", args.guest)
        self.initrd = kernels("initrd", args.guest)
        self.root = kernels("root", args.guest)
        self.accel = "kvm" if self.kvm_works() else "tcg"
        self.unblocked = {}

    def machine(self, accel):
        fast = ["-accel", "kvm", "-cpu", "host"]
        # Disable erms and fsrm, so that kernels do not copy with "rep movsb", which is emulated
        # byte by byte. Disable cx16, since cmpxchg16b corrupts the flags (QEMU before 8.0, see
        # README.rst).
        slow = ["-accel", "tcg,thread=multi", "-cpu", "max,-erms,-fsrm,-cx16"]
        memory = self.args.mem or 1024
        nodes = self.args.numa
        each, cpus = memory // nodes, self.args.smp // nodes
        numa = [] if nodes == 1 else [word for node in range(nodes) for word in (
            "-object", f"memory-backend-ram,id=m{node},size={each}M",
            "-numa", f"node,nodeid={node},memdev=m{node},"
                     f"cpus={node * cpus}-{node * cpus + cpus - 1}")]
        return ["qemu-system-x86_64", "-nodefaults", "-no-user-config", "-nographic",
                "-no-reboot", "-m", str(memory), "-smp", f"{self.args.smp},sockets={nodes}", *numa,
                *(fast if accel == "kvm" else slow),
                "-kernel", self.image, "-initrd", self.initrd]

    def kvm_works(self):
        """Whether KVM boots the kernel up to its initramfs. That /dev/kvm exists is not enough."""
        if self.args.accel:
            return self.args.accel == "kvm"
        if not os.access("/dev/kvm", os.R_OK | os.W_OK):
            return False
        key = f"{' '.join(os.uname())} {self.image}".encode()
        verdict = CACHE / f"kvm-{hashlib.sha256(key).hexdigest()[:12]}"
        if not verdict.exists():
            say("testing whether KVM boots a guest")
            verdict.write_text("yes\n" if self.probe() else "no\n")
        return verdict.read_text().strip() == "yes"

    def probe(self):
        command = self.machine("kvm") + [
            "-serial", "stdio", "-append", "console=ttyS0 panic=-1 quiet afr_probe=1"]
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, check=False,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  timeout=KVM_PATIENCE, preexec_fn=die_with_parent)
        except subprocess.TimeoutExpired:
            return False
        return b"lab: probe ok" in done.stdout

    def set_up_link(self):
        pass        # QEMU connects the guests

    @staticmethod
    def ready_for(role, scratch):
        """The QEMU of guest b tries to connect only once, so the QEMU of guest a must listen
        first."""
        return role == "a" or os.path.exists(f"{scratch}/link")

    def tend(self, guest):
        """QEMU has a new socket whenever the other guest is booted."""
        pid = guest.proc.pid
        self.unblocked[pid] = for_new_sockets(pid, self.unblocked.get(pid, set()), unblock)

    def command(self, role, out, scratch):
        server = "on" if role == "a" else "off"
        shared = "security_model=none,multidevs=remap"
        return [*self.machine(self.accel),
                "-serial", f"file:{out}/{role}/console",
                "-monitor", f"unix:{scratch}/{role}.monitor,server=on,wait=off",
                "-device", "virtio-rng-pci",
                "-virtfs", f"local,path=/,mount_tag=root,readonly=on,{shared}",
                "-virtfs", f"local,path={out},mount_tag=out,{shared}",
                "-netdev", f"stream,id=n0,server={server},addr.type=unix,"
                           f"addr.path={scratch}/link",
                # QEMU omits memory barriers if it emulates one processor, so a virtio doorbell may
                # get lost. With event_idx the queue then stalls for ever, otherwise only until the
                # next packet.
                "-device", f"virtio-net-pci,netdev=n0,romfile=,event_idx=off,host_mtu={self.mtu},"
                           f"mac={GUESTS[role]['mac']}",
                # tsc=nowatchdog: see README.rst.
                "-append", "console=ttyS0 net.ifnames=0 panic=-1 loglevel=6 "
                           "log_buf_len=4M slab_nomerge mitigations=off tsc=nowatchdog "
                           "rcupdate.rcu_cpu_stall_timeout=60 "
                           f"afr_init={LAB}/guest-init.sh afr_run={out} afr_role={role}"]

    @staticmethod
    def console(out):
        """The file for the messages of QEMU."""
        return open(out / "qemu", "wb")

    @staticmethod
    def freeze(guest, scratch, stop):
        with socket.socket(socket.AF_UNIX) as monitor:
            monitor.connect(f"{scratch}/{guest.role}.monitor")
            monitor.sendall(b"stop\n" if stop else b"cont\n")
            # The command would be lost if the connection was closed before the answer. There is no
            # more to read if QEMU ends meanwhile.
            answer = b""
            while answer.count(b"(qemu)") < 2 and (more := monitor.recv(4096)):
                answer += more

    @staticmethod
    def still_there(_guest, _scratch):
        """QEMU offers no way to query the kernel of the guest."""
        return "its kernel was not asked"
