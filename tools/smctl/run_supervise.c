// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * "smctl run --via seccomp": the program is a child of smctl with a seccomp filter. smctl answers
 * the socket calls of the program and of the program's descendants until all of them have ended.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run.h"
#include "smctl.h"

struct supervised {
	pid_t	program;
	bool	ended;
	int	status;		/* from waitpid() */
};

/*
 * Sends the descriptor @fd by SCM_RIGHTS. If @fd is -1, sends only a byte: no filter was
 * installed, because another supervisor already serves the program.
 */
static int send_fd(int to, int fd)
{
	union {
		struct cmsghdr	head;
		char		room[CMSG_SPACE(sizeof(int))];
	} control = { .room = "" };
	struct iovec word = { "", 1 };
	struct msghdr message = { .msg_iov = &word, .msg_iovlen = 1 };

	if (fd >= 0) {
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.head), &fd, sizeof(int));
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
	}
	return sendmsg(to, &message, MSG_NOSIGNAL) == 1 ? 0 : -1;
}

/* Receives what send_fd() has sent. Returns the descriptor, or -1 if none has arrived. */
static int receive_fd(int from)
{
	union {
		struct cmsghdr	head;
		char		room[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec word = { &(char){ 0 }, 1 };
	struct msghdr message = {
		.msg_iov = &word, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control),
	};
	int fd = -1;

	if (recvmsg(from, &message, MSG_CMSG_CLOEXEC) == 1 && CMSG_FIRSTHDR(&message))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
	return fd;
}

/* State that smctl has inherited, changes for itself, and restores for the program. */
struct inherited {
	sigset_t mask;
	bool	 ignores_children;	/* SIGCHLD is ignored */
	struct itimerval alarm;		/* fork() does not pass it on to the program */
};

/* In the child: installs the filter, sends its descriptor to smctl and starts the program. */
static int become_program(char **argv, int to, bool where, const struct inherited *before)
{
	int listener = filter_install(where);

	if (listener < 0 && errno == EBUSY) {
		fputs("smctl: already under a supervisor: its rules decide\n", stderr);
	} else if (listener < 0) {
		fprintf(stderr, "smctl: seccomp: %s\n", strerror(errno));
		return EXIT_NOT_EXECUTABLE;
	}
	if (send_fd(to, listener)) {
		perror("smctl: the seccomp listener");
		return EXIT_NOT_EXECUTABLE;
	}
	if (listener >= 0)
		close(listener);
	close(to);
	if (before->ignores_children)
		signal(SIGCHLD, SIG_IGN);
	setitimer(ITIMER_REAL, &before->alarm, NULL);
	sigprocmask(SIG_SETMASK, &before->mask, NULL);
	execvp(argv[0], argv);
	return cannot_run(argv[0], errno);
}

/*
 * Reaps children that have ended: the program, children that this process had before it executed
 * smctl, and descendants of these that were reparented to this process. Returns false if no child
 * is left.
 */
static bool reap(struct supervised *it)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == it->program) {
			it->ended = true;
			it->status = status;
		}
	}
	return !pid;
}

/*
 * Handles a signal. If it is SIGCHLD, reaps children, and returns false if no child is left. While
 * the program runs, passes other signals on to it, except those that the kernel sends: of these,
 * signals of the terminal go to the whole process group, which includes the program, and the rest
 * concern only smctl. But when the terminal hangs up, the kernel sends SIGHUP to the session
 * leader alone, so smctl passes SIGHUP on if smctl is the session leader.
 */
static bool handle_signal(struct supervised *it, int signals)
{
	struct signalfd_siginfo info;
	bool hangup;

	if (read(signals, &info, sizeof(info)) != sizeof(info))
		return true;
	if (info.ssi_signo == SIGCHLD)
		return reap(it);
	hangup = info.ssi_signo == SIGHUP && getsid(0) == getpid();
	if (!it->ended && (hangup || info.ssi_code <= 0))
		kill(it->program, info.ssi_signo);
	return true;
}

/*
 * Answers calls and handles signals until the program has ended and the listener reports that no
 * process with the filter is left, or until smctl has no child left. If @listener is -1, waits for
 * the program only.
 */
static void serve(struct supervised *it, int listener, int signals, const struct rules *rules)
{
	struct pollfd on[] = {
		{ .fd = signals, .events = POLLIN },
		{ .fd = listener, .events = POLLIN },
	};

	while (!it->ended || on[1].fd >= 0) {
		if (poll(on, ARRAY_SIZE(on), -1) < 0 && errno != EINTR)
			return;
		if (on[1].revents & POLLIN)
			notify_answer(listener, rules);
		else if (on[1].revents)
			on[1].fd = -1;		/* no process with the filter is left */
		if (on[0].revents && !handle_signal(it, signals))
			return;
	}
}

/*
 * Returns the exit status of the program. If a signal has ended the program, ends smctl by the
 * same signal, as a shell expects.
 */
static int exit_like(const struct supervised *it)
{
	const struct rlimit no_core = { 0, 0 };
	sigset_t all;

	if (WIFEXITED(it->status))
		return WEXITSTATUS(it->status);
	setrlimit(RLIMIT_CORE, &no_core);
	signal(WTERMSIG(it->status), SIG_DFL);
	raise(WTERMSIG(it->status));
	sigfillset(&all);
	sigprocmask(SIG_UNBLOCK, &all, NULL);
	return 128 + WTERMSIG(it->status);
}

/*
 * Closes the files that smctl shares with the program: when the program closes its output, a
 * reader must see end of file, and when the program closes any file, its locks on that file must
 * be released. Standard error stays open for a message if AFRDMA_PRELOAD_DEBUG is set. All files
 * stay open if /dev/null cannot be opened, or if smctl was started with standard input, output or
 * error closed, so that @signals or @listener has got the number 0, 1 or 2. @listener is -1 if
 * another supervisor serves the program, or if the child failed before it sent a descriptor.
 */
static void close_files(int listener, int signals)
{
	int low = listener >= 0 && listener < signals ? listener : signals;
	int high = listener > signals ? listener : signals;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0 || low <= STDERR_FILENO) {
		if (null >= 0)
			close(null);
		return;
	}
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	if (!getenv("AFRDMA_PRELOAD_DEBUG"))
		dup2(null, STDERR_FILENO);
	if (low > STDERR_FILENO + 1)
		close_range(STDERR_FILENO + 1, low - 1, 0);
	if (high > low + 1)
		close_range(low + 1, high - 1, 0);
	close_range(high + 1, ~0U, 0);
}

/*
 * Blocks all signals but those by which the terminal stops smctl together with the program, such
 * as SIGTSTP, and those for errors of smctl itself, such as SIGSEGV. Returns a signalfd for the
 * blocked ones.
 */
static int block_signals_fd(sigset_t *before)
{
	static const int except[] = { SIGTSTP, SIGTTIN, SIGTTOU, SIGSEGV, SIGBUS, SIGFPE, SIGILL,
				   SIGABRT, SIGTRAP, SIGSYS };
	sigset_t set;
	unsigned int i;

	sigfillset(&set);
	for (i = 0; i < ARRAY_SIZE(except); i++)
		sigdelset(&set, except[i]);
	sigprocmask(SIG_BLOCK, &set, before);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/*
 * Starts the program @argv and supervises it until the program and all processes with the filter
 * that become_program() installed have ended. Returns the status for exit().
 */
int supervise(char **argv, const struct rules *rules)
{
	const struct itimerval off = { 0 };
	struct supervised it = { 0 };
	int pair[2], signals, listener;
	struct inherited before;

	signals = block_signals_fd(&before.mask);
	/* if SIGCHLD were ignored, waitpid() would get no status */
	before.ignores_children = signal(SIGCHLD, SIG_DFL) == SIG_IGN;
	setitimer(ITIMER_REAL, &off, &before.alarm);
	unsetenv(RULES_VARIABLE);
	/*
	 * PR_SET_CHILD_SUBREAPER lets smctl become the parent of orphaned descendants of the
	 * program. Otherwise serve() could end before them, and Yama could deny smctl access to
	 * their memory and descriptors.
	 */
	if (signals < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
		perror("smctl: cannot supervise");
		return EXIT_KERNEL;
	}
	it.program = fork();
	if (it.program < 0) {
		perror("smctl: fork");
		return EXIT_KERNEL;
	}
	if (!it.program)
		_exit(become_program(argv, pair[1], rules->where, &before));
	close(pair[1]);
	listener = receive_fd(pair[0]);
	close(pair[0]);
	close_files(listener, signals);
	serve(&it, listener, signals, rules);
	return exit_like(&it);
}
