# SPDX-License-Identifier: GPL-2.0
#
# Read a log, count the KTAP lines in it.  Out come lines that check.sh reads:
#	pass N		how many passed
#	fail NAME	one a failure, then "#..." lines: what was said about it
#	skip NAME # SKIP WHY
#
# Nested KTAP: the line that sums up a block of indented ones is no test of its
# own, unless it says that something failed which none of them did.
# The lab prints the lines of two guests with "a: " and "b: " before them: one
# name in both guests of a run is one test, which fails if it fails in either.  A run
# that fails without a "not ok" is a failure by the name of its script, with what the
# lab says of it and the end of that guest's console, which "a| " and "b| " follow.

function settle(	i, name)
{
	for (i = 1; i <= guests; i++) {
		name = guest[i]
		count(verdict[name], name, told[name])
		delete verdict[name]
		delete told[name]
	}
	guests = 0
}

function count(what, name, more)
{
	if (what == "pass")
		passed++
	else
		print what " " name more
	failures += what == "fail"
}

# What ran is the first word with a slash. Rows of faults have their own line, which follows.
# The kernel's last words, too: they are long.
function ran_badly(	i, script)
{
	for (i = 1; i <= NF && $i !~ /\//; i++)
		;
	script = $i
	sub(/^.*\//, "", script)
	sub(/:$/, "", script)
	if (script == "faults.py")
		return
	print "fail " script
	print "# " why
	for (i = lines - 60 > 0 ? lines - 60 : 0; i < lines; i++)
		print "# " console[loser, i]
}

function from_guest(what, name)
{
	if (!(name in verdict)) {
		guest[++guests] = name
		verdict[name] = what
	} else if (what == "fail" || verdict[name] == "skip") {
		verdict[name] = what
	}
}

# The end of a console, shown after a failure, says again what was counted.
/^---- [ab]: end of the console/ { echo = 1 }
/^lab: ([ab] failed|PASS|FAIL|SKIP)/ { echo = 0 }
echo { next }

/^[ab]\| / && !/^[ab]\| (ok|#)/ { console[substr($0, 1, 1), heard[substr($0, 1, 1)]++] = $0 }

# A run begins, and whatever was counted before is none of it.
/^lab: .*\), [12] guests, / { failures = 0 }

# Who was killed because the other one died has nothing to say.
/^lab: [ab] failed: / && (!why || why ~ /killed: the other guest/) {
	why = substr($0, 6)
	loser = substr($0, 6, 1)
	next
}
/^lab: [ab] failed: / && !/killed: the other guest/ { why = why "\n# " substr($0, 6) }

# What is said about a failure stands below it; count() prints in order.
failing && /^ *([ab]: +)?#/ {
	line = $0
	sub(/^ *([ab]: +)?# ?/, "", line)
	if (said++ < 12) {
		if (in_guest)
			told[failing] = told[failing] "\n# " line
		else
			print "# " line
	}
	next
}

/^ *([ab]: +)?(not )?ok([ \t]|$)/ {
	line = $0
	in_guest = sub(/^ *[ab]: +/, "", line)
	match(line, /^ */)
	depth = RLENGTH
	sub(/^ +/, "", line)
	what = line ~ /^not/ ? "fail" : line ~ /# *[Ss][Kk][Ii][Pp]/ ? "skip" : "pass"
	sub(/^(not )?ok *[0-9]* *(- )?/, "", line)
	failing = what == "fail" ? line : ""
	said = 0
	if (in_guest) {
		from_guest(what, line)
	} else if (depth < deepest) {
		if (what == "fail" && !inner_failed)
			count(what, line)
		else
			failing = ""
		deepest = depth
		inner_failed = 0
	} else {
		deepest = depth
		if (depth && what == "fail")
			inner_failed = 1
		count(what, line)
	}
	next
}

{ failing = "" }

/^lab: (PASS|FAIL|SKIP) / {
	settle()
	lines = heard[loser]
	if ($2 == "FAIL" && !failures)
		ran_badly()
	failures = 0
	why = ""
	heard["a"] = heard["b"] = 0
}

END {
	settle()
	print "pass " passed + 0
}
