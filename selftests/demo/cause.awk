# SPDX-License-Identifier: GPL-2.0
#
# Print the first cause of a failure. Input: the log of a run, and then the report of the guests.
# Kernel messages are not considered, since many are harmless, such as "module verification failed".
# By rank: a guest without a verdict, a failure of the script in a guest, a failure found by the
# lab, an error of a command; otherwise the last line of one of our scripts.

function is(rank, what)
{
	if (!(rank in cause))
		cause[rank] = what
}

/^---- [ab]: end of the console/ { console = 1 }
/^lab: |^[ab]: (not )?ok - / { console = 0 }
console || /^([ab]\| )?\[ *[0-9]+\.[0-9]+\]/ { next }

/^lab: [ab] failed: / {
	if (!/: (not ok|killed: the other guest|the script exited)/)
		is(1, "host " substr($0, 6, 1) substr($0, 14))
	next
}
/^ *FAILED on host / { sub(/^ *FAILED on /, ""); is(2, $0); next }
/^[ab]: not ok - / { is(3, "host " substr($0, 1, 3) substr($0, 13)); next }
/(^|[^A-Za-z-])[Ee]rror:|^E: |\*\*\* |^[^ ]*dpkg: error|No space left on device|command not found/ {
	is(4, $0)
}
/^(lab|kernels|deps|build-module): / && !/\(log: |: done in |^lab: (PASS|FAIL|SKIP|waiting) / {
	last = $0
}
/[^ ]/ { final = $0 }

END {
	for (rank = 1; rank <= 4; rank++)
		if (rank in cause) {
			print cause[rank]
			exit
		}
	print last ? last : final ? final : "no output"
}
