#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Search a kernel log for reports of bugs.
#
#   splat-scan.sh LOGFILE
#
# Ignores reports that foreign() recognises. Prints the first 31 lines of each other report and
# exits with 1; prints nothing and exits with 0 if there is none; exits with 2 if it cannot read
# LOGFILE.
set -euo pipefail

if [ $# -ne 1 ] || [ ! -r "$1" ]; then
	echo "splat-scan: cannot read '${1:-}'"
	exit 2
fi

exec awk '
# Remove log level and time stamp: bad() expects some headlines at the beginning of a line.
{
	text = $0
	sub(/^<[0-9]+>/, "", text)
	sub(/^\[ *[0-9]+\.[0-9]+\](\[[^]]*\])? */, "", text)
	line[NR] = text
}

function bad(s) {
	return s ~ /^(BUG|WARNING|INFO): / && s !~ /^INFO: (lockdep is turned off|NMI handler)/ ||
	       s ~ /(Oops|general protection fault|Kernel panic|Unable to handle kernel)/ ||
	       s ~ /(KASAN|UBSAN|KFENCE|KCSAN): / ||
	       s ~ /possible (circular|recursive|irq|deadlock|unsafe|reason)/ ||
	       s ~ /(inconsistent lock state|suspicious RCU usage|bad unlock balance)/ ||
	       s ~ /(held lock freed|lock held when returning|locks held when returning)/ ||
	       s ~ /(scheduling while atomic|sleeping function called from invalid)/ ||
	       s ~ /(blocked for more than|hung_task|soft lockup|hard LOCKUP)/ ||
	       s ~ /rcu:? .*(stall|starved)/ || s ~ /self-detected stall/ ||
	       s ~ /refcount_t: / || s ~ /ODEBUG: / ||
	       s ~ /ref_tracker: .*(leak|unreferenc|refs)/ ||
	       s ~ /unregister_netdevice: waiting/ ||
	       s ~ /list_(add|del) corruption/ ||
	       s ~ /kmemleak: [0-9]+ new suspected/ ||
	       s ~ /(Objects remaining|Slab .*still in use|kmem_cache_destroy)/ ||
	       s ~ /(Bad page state|double free|Poison overwritten|Redzone overwritten)/ ||
	       s ~ /(Attempt to release alive inet|sk_stream_kill_queues)/ ||
	       s ~ /page_pool_release_retry/ ||
	       s ~ /(---\[ cut here|segfault at .*afr)/
}

# Known reports that are not about the module, recognised by the headline and the 45 lines after it.
# Three are about User-Mode Linux:
#  - its vector network driver takes a lock both in softirqs and with softirqs enabled;
#  - os_start_secondary() frees memory on a new CPU before the kernel has made it online;
#  - at power-off, after the test has ended, close_devices() takes a mutex under a spinlock.
# One is about rdma_cm: if memory runs out while it sets up the id of a new connection, it destroys
# this id under the mutex of the listening id. The mutexes of both ids have the same lock class,
# and rdma_destroy_id() takes the second one without a nesting annotation.
function foreign(from,    i, lockdep, destroys) {
	lockdep = line[from] ~ /(possible |inconsistent lock state|suspicious RCU usage)/
	for (i = from; i <= from + 45 && i <= NR; i++) {
		if (line[i] ~ /close_devices/ ||
		    (lockdep && line[i] ~ /os_start_secondary/) ||
		    (lockdep && line[i] ~ /(vector_poll|vector_rx|vector_net_)/))
			return 1
		if (line[i] ~ /handler_mutex.*at: rdma_destroy_id/)
			destroys = line[from] ~ /possible recursive locking/
		if (destroys && line[i] ~ /handler_mutex.*at: cma_ib_req_handler/)
			return 1
	}
	return 0
}

END {
	for (i = 1; i <= NR; i++) {
		if (!bad(line[i]))
			continue
		# The headline follows "cut here".
		if (line[i] ~ /cut here/ && i < NR && bad(line[i + 1]))
			i++
		if (!foreign(i)) {
			found++
			for (j = i; j <= i + 30 && j <= NR; j++)
				print line[j]
			print ""
		}
		# A report may contain more lines that match: skip the 30 lines after its
		# headline, although another report may begin there.
		i += 30
	}
	exit found > 0
}' "$1"
