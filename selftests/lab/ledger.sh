# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Checks that a test releases its objects: compares counts from before and after it, matches trace
# events of creation and destruction, and reads the module's reference count and the report of
# kmemleak. Also reads the taint of the kernel. guest-init.sh makes all these checks, forged.sh only
# compares counts. Each result is a KTAP line "ledger: ..."; any "not ok" fails the run.
#
# ledger_take and ledger_compare are called with the name of one of two comparisons:
#   load	before afrdma.ko is loaded and after it is unloaded
#   test	before and after the test, with the module loaded

ledger_dir=/run/afr
ledger_patience=20	# seconds for deferred work to finish

# shellcheck source=../ktap.sh
. "$AFR_SRC/selftests/ktap.sh"
ledger_ktap() { ktap_result "$@" | tee -a "$AFR_OUT/ktap"; }
ledger_ok() { ledger_ktap ok - "ledger: $1"; }
ledger_not_ok() { ledger_ktap "not ok" - "ledger: $1" "$2"; }
ledger_skip() { ledger_ktap ok - "ledger: $1" "SKIP $2"; }

# Print one line per device and type of RDMA object, such as "rdma:rxe0.qp 1".
rdma_counts() {
	rdma res 2>/dev/null | awk '{
		sub(/:$/, "", $2)
		for (i = 3; i < NF; i += 2)
			print "rdma:" $2 "." $i, $(i + 1)
	}'
}

# Print the numbers of TCP sockets in use and of orphans. Neither includes sockets in TIME_WAIT,
# which hold no object of the module.
socket_counts() {
	awk '/^TCP6?:/ {
		for (i = 2; i < NF; i += 2)
			if ($i == "inuse" || $i == "orphan")
				print "sockets:" $1 $i, $(i + 1)
	}' /proc/net/sockstat /proc/net/sockstat6
}

# SLUB counts free objects in a CPU slab as active until the cache is shrunk.
slab_counts() {
	local cache
	for cache in /sys/kernel/slab/afrdma* /sys/kernel/slab/afr_*; do
		[ -e "$cache/shrink" ] && echo 1 >"$cache/shrink"
	done
	awk '$1 ~ /^(afrdma|afr_)/ { print "slab:" $1, $2 }' /proc/slabinfo
}

module_counts() {
	local refs=/sys/module/afrdma/refcnt
	[ ! -e $refs ] || echo "module:afrdma.refcnt $(cat $refs)"
}

# Print all counts that are not 0, those of the module itself only if $1 is "test".
ledger_counts() {
	{
		rdma_counts
		socket_counts
		if [ "$1" = test ]; then
			slab_counts
			module_counts
		fi
	} | awk '$2 != 0'
}

ledger_take() { ledger_counts "$1" >"$ledger_dir/$1.before"; }

# Are the counts equal? Counts of a device that the test has deleted are ignored.
ledger_same() {
	local device
	ledger_counts "$1" >"$ledger_dir/$1.after"
	sed -n 's/^rdma:\([^.]*\).*/\1/p' "$ledger_dir/$1.before" | sort -u |
	while read -r device; do
		[ -e "/sys/class/infiniband/$device" ] ||
			sed -i "/^rdma:$device\./d" "$ledger_dir/$1.before"
	done
	cmp -s "$ledger_dir/$1.before" "$ledger_dir/$1.after"
}

# Print the counts that differ, as in "rdma:rxe0.qp was 1, is 3; ..."
ledger_differences() {
	awk 'FILENAME == ARGV[1] { was[$1] = $2; next }
	     { seen[$1] = 1
	       if (was[$1] != $2) {
		       d = d sep $1 " was " was[$1] + 0 ", is " $2
		       sep = "; "
	       } }
	     END {
	       for (k in was) if (!(k in seen)) { d = d sep k " was " was[k] ", is 0"; sep = "; " }
	       print d }' "$ledger_dir/$1.before" "$ledger_dir/$1.after"
}

ledger_compare() {
	local what="counts are as before the test" end=$((SECONDS + ledger_patience))
	[ "$1" = test ] || what="counts are as before the module was loaded"
	until ledger_same "$1"; do
		if ((SECONDS >= end)); then
			ledger_not_ok "$what" "$(ledger_differences "$1")"
			cp "$ledger_dir/$1".{before,after} "$AFR_OUT/"
			rdma res show qp >"$AFR_OUT/$1.qp" 2>&1
			ss -tanope >"$AFR_OUT/$1.ss" 2>&1
			return
		fi
		sleep 0.2
	done
	ledger_ok "$what"
}

ledger_refcount() {
	local refs=0
	[ ! -e /sys/module/afrdma/refcnt ] || refs=$(cat /sys/module/afrdma/refcnt)
	if [ "$refs" = 0 ]; then
		ledger_ok "module references"
	else
		ledger_not_ok "module references" "afrdma has $refs references left"
	fi
}

### Trace: each X_create must have an X_destroy

# The ledger has its own trace instance, so tests can use the global trace buffer and other
# instances.
trace=/sys/kernel/tracing/instances/ledger

trace_start() {
	local event any=no
	[ -d /sys/kernel/tracing/events/afrdma ] || return 0
	mkdir $trace 2>/dev/null || return 0
	echo 16384 >$trace/buffer_size_kb
	for event in "$trace"/events/afrdma/*_{create,destroy}; do
		[ -e "$event/enable" ] || continue
		echo 1 >"$event/enable"
		any=yes
	done
	[ $any = yes ] || rmdir $trace
}

trace_pairs() {
	local lost left end=$((SECONDS + ledger_patience))
	[ -d $trace ] || return 0
	# Destruction may be deferred (RCU, work): wait for it.
	until left=$(trace_unpaired) && [ -z "$left" ]; do
		((SECONDS < end)) || break
		sleep 0.2
	done
	cp $trace/trace "$AFR_OUT/trace"
	lost=$(cat $trace/per_cpu/cpu*/stats |
		awk '/^(commit )?overrun:/ { n += $NF } END { print n + 0 }')
	if [ "$lost" -gt 0 ]; then
		ledger_skip "created is destroyed" "the trace lost $lost events"
	elif [ -n "$left" ]; then
		ledger_not_ok "created is destroyed" "$left"
	else
		ledger_ok "created is destroyed ($(grep -c '_create: ' $trace/trace) objects)"
	fi
	echo 0 >$trace/events/afrdma/enable
	rmdir $trace
}

# Print at most ten objects, each a PREFIX and an id, for which the number of events
# "PREFIX_create: ... id=NUMBER ..." differs from that of events "PREFIX_destroy: ...".
trace_unpaired() {
	awk 'match($0, /[a-z0-9_]+_(create|destroy): /) {
		event = substr($0, RSTART, RLENGTH - 2)
		if (!match($0, /[ :]id=[0-9a-fx]+/))
			next
		id = substr($0, RSTART + 4, RLENGTH - 4)
		what = event
		sub(/_(create|destroy)$/, "", what)
		count[what " id=" id] += (event ~ /_create$/) ? 1 : -1
	     }
	     END {
		for (k in count) {
			if (!count[k] || ++n > 10)
				continue
			d = d sep k
			d = d (count[k] > 0 ? " never destroyed" : " destroyed, never created")
			sep = "; "
		}
		if (n > 10)
			d = d "; and " n - 10 " more"
		print d
	     }' $trace/trace
}

### Memory leaks

kmemleak=/sys/kernel/debug/kmemleak

kmemleak_start() {
	[ -e $kmemleak ] || return 0
	echo scan=off >$kmemleak
	# "clear" discards the leaks of the boot that this single scan reports. Most leaks are
	# reported by a second scan only, see kmemleak_scan(): such leaks of the boot are not
	# discarded.
	echo scan >$kmemleak
	echo clear >$kmemleak
}

# A scan reports an unreferenced object only if the object is at least five seconds old and the
# checksum of its contents is the one that kmemleak has stored, 0 at first; a scan that finds
# another checksum stores it. So most leaks are reported by the second scan only.
kmemleak_scan() {
	[ -e $kmemleak ] || return 0
	sleep 5.5
	echo scan >$kmemleak
	sleep 1
	echo scan >$kmemleak
	cat $kmemleak >"$AFR_OUT/kmemleak"
	if [ -s "$AFR_OUT/kmemleak" ]; then
		ledger_not_ok "kmemleak" "$(grep -c '^unreferenced' "$AFR_OUT/kmemleak") objects: $(
			sed -n 's/^ *\(\[<.*>\]\|\)\([a-z0-9_.]*+0x.*\)/\2/p' "$AFR_OUT/kmemleak" |
			head -n 4 | xargs)"
	else
		ledger_ok "kmemleak"
	fi
}

# A line of the log may be lost, but not the taint bit that a bad page, an oops, a warning or a soft
# lockup sets.
taint_check() {
	local taint
	taint=$(cat /proc/sys/kernel/tainted)
	if ((taint & (1 << 5 | 1 << 7 | 1 << 9 | 1 << 14))); then
		ledger_not_ok "taint" "the kernel has recorded a bug: taint $taint"
	else
		ledger_ok "taint"
	fi
}
