#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Process 1 of a guest: sets up the guest, runs the test, checks that the test has released its
# objects and that the kernel has reported no bug, writes the results into files, and powers off. A
# UML kernel starts this script directly, a VM through its initramfs. The root file system is that
# of the host, read-only. Variables from the kernel command line:
#   afr_run=DIR	  folder of this run, shared by the guests and the host; contains a busybox
#   afr_role=a|b
# DIR/ROLE/env, which "run" has written, sets the AFR_* variables and those of --env, and sets the
# positional parameters ("$@") to the test script and its arguments.
#
# With AFR_NETNS=yes, one kernel is both hosts: this script, as process 1 and with role a, creates a
# network namespace for each host, and starts itself in each with afr_host=yes.
set -uo pipefail	# without -e: process 1 must not exit early

export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
run=${afr_run:?}
role=${afr_role:?}
host=${afr_host:-no}

if [ "$host" = no ]; then
	"$run/busybox" mount -t proc proc /proc
	# Everything here runs as root. If "run" was not started by root, files that user root owns
	# on the host belong to "nobody" in a UML guest. Without nosuid, set-user-ID programs such as
	# mount would run as "nobody".
	"$run/busybox" mount -o remount,bind,ro,nosuid /
fi
# shellcheck source=/dev/null
. "$run/$role/env"
# shellcheck source=ledger.sh
. "$AFR_LAB/ledger.sh"

### Verdict

# A verdict is a number in a file. The run counts as failed if $AFR_OUT/exit is missing or contains
# a number other than 0 and 4. With AFR_NETNS=yes, the script in each namespace writes its verdict
# to $AFR_OUT/exit.host; after all checks, process 1 copies it to "exit" of the same host.
verdict_file="exit"
[ "$host" = no ] || verdict_file="exit.host"

# Write verdict $1 of role $2.
write_verdict() {
	local file=$run/$2/$verdict_file
	sync
	echo "$1" >"$file.tmp" && sync "$file.tmp"
	mv "$file.tmp" "$file"
	sync
}

# Write verdict $1, then power off; in a network namespace, this script exits instead.
power_off() {
	write_verdict "$1" "$role"
	[ "$host" = no ] || exit 0
	echo o >/proc/sysrq-trigger
	# sysrq powers off later, in a work item; use reboot(2) in case it does not. A VM that is
	# powering off already may be unable to read busybox: hide that error.
	"$run/busybox" poweroff -f 2>/dev/null
	while :; do sleep 1; done
}

give_up() {
	echo "lab: $*"
	ktap_result "not ok" - "guest set-up" "$*" >>"$AFR_OUT/ktap"
	[ "$host" = yes ] || dmesg >"$AFR_OUT/dmesg"
	power_off 99
}

### Set-up

mount_sys() {
	mount -t sysfs sysfs /sys
	mount -t debugfs debugfs /sys/kernel/debug
	mount -t tracefs tracefs /sys/kernel/tracing
	mount -t cgroup2 cgroup2 /sys/fs/cgroup
}

mount_all() {
	local path
	mount_sys
	mount -t devtmpfs devtmpfs /dev
	mkdir -p /dev/pts /dev/shm
	mount -t devpts devpts /dev/pts
	mount -t tmpfs tmpfs /dev/shm
	ln -sf /proc/self/fd /dev/fd
	for path in stdin:0 stdout:1 stderr:2; do
		ln -sf "/proc/self/fd/${path#*:}" "/dev/${path%:*}"
	done
	# The source tree, the modules and the results may be below /tmp or another folder that the
	# tmpfs mounts hide: bind them back from a temporary second mount of the root.
	mount --bind / /mnt
	for path in /tmp /run /var/tmp /var/log /media; do
		mount -t tmpfs -o mode=1777 tmpfs "$path"
	done
	for path in "$AFR_SRC" "$AFR_ROOT" "$run"; do
		[ -d "$path" ] && continue
		mkdir -p "$path" && mount --bind "/mnt$path" "$path"
	done
	umount /mnt
	if [ "$AFR_ACCEL" = uml ]; then
		mount -t hostfs none "$run" -o "$run"
		# Write back soon, so that logs are not lost if the guest crashes.
		sysctl -qw vm.dirty_writeback_centisecs=50 vm.dirty_expire_centisecs=50
	else
		mount -t 9p -o trans=virtio,version=9p2000.L,cache=none,msize=262144 \
			out "$run"
	fi || give_up "cannot mount $run"
	mkdir -p /run/home /run/lock /run/afr
	export HOME=/run/home
}

# In a network namespace: mount sysfs again, since a mount of sysfs shows the namespace in which it
# was made. Mount a new tmpfs, which the other host does not see, over each of /tmp and others; the
# folders in these that the lab needs stay visible.
mount_own() {
	local path kept
	umount -l /sys && mount_sys || return
	for path in /tmp /run /var/tmp /var/log /dev/shm; do
		mount --rbind "$path" /mnt && mount -t tmpfs -o mode=1777 tmpfs "$path" || return
		for kept in "$AFR_SRC" "$AFR_ROOT" "$run"; do
			case $kept in
			"$path"/*)
				mkdir -p "$kept"
				mount --rbind "/mnt${kept#"$path"}" "$kept" || return ;;
			esac
		done
		umount -l /mnt || return
	done
	mkdir -p /run/home /run/lock /run/afr
	export HOME=/run/home
}

# Create the namespaces a and b, connected by eth0 of each.
make_hosts() {
	local host
	ip link add eth.a mtu "$AFR_MTU" type veth peer name eth.b mtu "$AFR_MTU" || give_up "no veth"
	for host in a b; do
		ip netns add $host || give_up "no network namespace"
		ip link set eth.$host netns $host name eth0 || give_up "no eth0 for host $host"
	done
}

# Run the test in both namespaces, with mounts, processes, a name and IPC objects of their own. The
# RDMA devices of a namespace end with it, unless something in the kernel holds one of them.
run_hosts() {
	local host t hosts=()
	for host in a b; do
		afr_host=yes afr_role=$host nsenter --net=/run/netns/$host \
			unshare --mount --uts --ipc --pid --fork --mount-proc "$AFR_LAB/guest-init.sh" &
		hosts+=($!)
	done
	wait "${hosts[@]}"	# not for keep_time_stamps()
	for host in a b; do
		ip netns del $host
	done
	for ((t = 0; t < 60; t++)); do
		if [ -z "$(rdma dev)" ]; then
			ledger_ok "devices end with their namespaces"
			return
		fi
		sleep 1
	done
	ledger_not_ok "devices end with their namespaces" "after $t s: $(rdma dev | xargs)"
}

load_modules() {
	[ -d "$AFR_ROOT/lib/modules" ] || return 0	# everything is built in
	local m
	# The modules are below $AFR_ROOT, not in /lib/modules of the host: scripts find them by
	# MODPROBE_OPTIONS, and the kernel by a wrapper of modprobe.
	export MODPROBE_OPTIONS="-d $AFR_ROOT"
	printf '#!/bin/sh\nexec /sbin/modprobe -d "%s" "$@"\n' "$AFR_ROOT" >/run/afr/modprobe
	chmod 755 /run/afr/modprobe
	sysctl -qw kernel.modprobe=/run/afr/modprobe
	modprobe -q virtio_net || give_up "no virtio_net"
	# rxe needs one of the crc32 drivers, but modprobe does not load one with rdma_rxe.
	modprobe -q crc32-pclmul || modprobe -q crc32_generic
	for m in ib_core ib_uverbs rdma_rxe ib_cm iw_cm rdma_cm rdma_ucm; do
		modprobe "$m" || give_up "modprobe $m failed"
	done
	[ "$AFR_ACCEL" != tcg ] || keep_time_stamps
}

# QEMU before 8.1 may miss that a processor has patched code (see README.rst). Linux patches its
# receive path when a first socket asks for time stamps, and again when the last such socket is
# closed. So that the programs of the tests do not cause this, one such socket stays open until
# power-off.
keep_time_stamps() {
	python3 -c 'import signal, socket
keeper = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
keeper.setsockopt(socket.SOL_SOCKET, 29, 1)     # SO_TIMESTAMP
signal.pause()' &
}

set_up_network() {
	local t
	hostname "$AFR_NAME"
	ip link set lo up
	ip link show vec0 >/dev/null 2>&1 && ip link set vec0 name eth0
	ip link set eth0 mtu "$AFR_MTU" || give_up "eth0 does not take MTU $AFR_MTU"
	sysctl -qw net.ipv6.conf.eth0.accept_dad=0 net.ipv6.conf.eth0.accept_ra=0
	ip addr add "$AFR_ME/24" dev eth0
	ip addr add "$AFR_ME6/64" dev eth0 nodad
	ip link set eth0 up
	# siw's callbacks on TCP sockets take sk_callback_lock with softirqs enabled. Within seconds
	# lockdep would report that and turn itself off, and the report would fail the run.
	[ "$AFR_RDMA" != siw ] || sysctl -qw kernel.prove_locking=0 2>/dev/null
	rdma link add "$AFR_DEV" type "$AFR_RDMA" netdev eth0 || give_up "no $AFR_RDMA over eth0"
	: >"$AFR_OUT/ready"
	[ "$AFR_GUESTS" = 2 ] || return 0
	# The other guest may boot later. If it is not ready after BOOT_LIMIT, "run" ends both.
	for ((t = 0; t < 400; t++)); do
		ping -c 1 -W 1 -q "$AFR_PEER" >/dev/null 2>&1 && return 0
		[ ! -e "$run/shared/done.$AFR_OTHER" ] || break
	done
	give_up "no answer from $AFR_PEER"
}

load_afrdma() {
	[ -n "$AFR_MODULE" ] || return 0
	# $AFR_MODULE_ARGS is split into words of the form X=Y.
	# shellcheck disable=SC2086
	insmod "$AFR_MODULE" $AFR_MODULE_ARGS || give_up "insmod $AFR_MODULE failed"
}

unload_afrdma() {
	[ -d /sys/module/afrdma ] || return 0
	ledger_refcount
	if timeout 60 rmmod afrdma; then
		ledger_ok "rmmod afrdma"
	else
		ledger_not_ok "rmmod afrdma" "refused or stuck"
	fi
}

### The test

# Run the test script. Its output goes to the console, so that it is in order with kernel messages.
run_script() {
	local rc=0
	cd "$AFR_SRC" || give_up "no $AFR_SRC"
	"$@" </dev/null || rc=$?
	echo "lab: script ended with $rc"
	echo "$rc" >"$AFR_OUT/script.exit"
	echo "$rc" >"$run/shared/done.$role.tmp"
	mv "$run/shared/done.$role.tmp" "$run/shared/done.$role"
	return $rc
}

# meet_other STEP: wait until the other guest has reached STEP, too, or has a verdict. Steps:
#   up		(network namespaces) its device exists, so that objects of the kernel can be counted
#   taken	(network namespaces) it has counted them, so that the test can begin
#   ended	its script has ended, so that objects can be counted
#   counted	it has compared the counts, so that the module can be unloaded
#   ledger	it has made all checks, so that this guest can power off
meet_other() {
	[ "$AFR_GUESTS" = 2 ] || return 0
	: >"$run/shared/$1.$role"
	until [ -e "$run/shared/$1.$AFR_OTHER" ] || [ -e "$run/$AFR_OTHER/$verdict_file" ]; do
		sleep 0.1
	done
}

### The parts of a run

set_limits() {
	ulimit -n 500000 2>/dev/null || ulimit -n 65536
	ulimit -l unlimited
}

start_module() {
	sysctl -qw kernel.hung_task_timeout_secs=60 2>/dev/null
	# The kernel reports an interface that is still in use this many seconds after it was
	# unregistered. The default, 10, is too short for RDMA devices that end in a slow guest.
	sysctl -qw net.core.netdev_unregister_timeout_secs=40 2>/dev/null
	cp /proc/modules "$AFR_OUT/modules"
	ledger_take load
	load_afrdma
	trace_start
	kmemleak_start
}

# Run the test in this network namespace, and compare the counts of before and after it.
test_here() {
	[ "$host" = no ] || meet_other up
	ledger_take test
	[ "$host" = no ] || meet_other taken
	rm -f "$AFR_OUT/ktap"
	echo "lab: $AFR_NAME $(uname -r) up after $(cut -d' ' -f1 /proc/uptime) s, starts: $*"
	run_script "$@"
	rc=$?
	meet_other ended
	ledger_compare test
}

end_module() {
	local report
	unload_afrdma
	ledger_compare load
	kmemleak_scan
	dmesg >"$AFR_OUT/dmesg"
	if report=$("$AFR_LAB/splat-scan.sh" "$AFR_OUT/dmesg"); then
		ledger_ok "kernel log"
	else
		echo "$report"
		echo "$report" >"$AFR_OUT/splats"
		ledger_not_ok "kernel log" "$(head -n 1 <<<"$report")"
	fi
	taint_check
}

rc=0
set_limits
if [ "$host" = yes ]; then
	mount_own || give_up "cannot mount folders of $AFR_NAME"
	set_up_network
	test_here "$@"
elif [ "$AFR_NETNS" = yes ]; then
	mount_all
	load_modules
	make_hosts
	start_module
	run_hosts
	trace_pairs
	end_module
	rc=$(cat "$run/b/exit.host") && write_verdict "$rc" b
	rc=$(cat "$run/a/exit.host")
else
	mount_all
	load_modules
	set_up_network
	start_module
	test_here "$@"
	trace_pairs
	meet_other counted
	end_module
	meet_other ledger
fi
power_off "$rc"
