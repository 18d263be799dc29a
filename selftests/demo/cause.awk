# SPDX-License-Identifier: GPL-2.0
#
# What went wrong first, in words, from the log of a run and then, as a second file, the
# story that the guests told. What the kernels said is no cause: each says much that is
# harmless, such as "module verification failed". The ranks: a guest that ended without a
# verdict, what the script in a guest has found, what the lab has, an error of a command,
# the last words of a script of ours.

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
	print last ? last : final ? final : "nothing was said"
}
