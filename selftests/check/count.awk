# SPDX-License-Identifier: GPL-2.0
#
# Count the KTAP lines in a log. Prints lines for check.sh:
#	pass N		number of tests that passed
#	fail NAME	one per failure, followed by "#..." lines, its diagnostics
#	skip NAME # SKIP WHY
#
# Nested KTAP: the line that summarises a block of indented lines is not a test of its own, unless
# it reports a failure that none of them reported.
# The lab prints the lines of the two guests with "a: " and "b: " in front. A name that occurs in
# both guests of a run is one test, which fails if it fails in either. A run that fails without a
# "not ok" line is a failure named after its script, with the lab's reason and the end of the
# console of that guest; console lines begin with "a| " and "b| ".

function settle(	i, name)
{
	for (i = 1; i <= guests; i++) {
		name = guest[i]
		count(verdict[name], name, details[name])
		delete verdict[name]
		delete details[name]
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

# Report a run that failed without a "not ok" line. Its script is the first word with a slash. Runs
# that faults.py starts are left out, since faults.py then prints a KTAP line for each of its rows.
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

# The end of a console that is shown after a failure repeats lines that were counted already.
/^---- [ab]: end of the console/ { echo = 1 }
/^lab: ([ab] failed|PASS|FAIL|SKIP)/ { echo = 0 }
echo { next }

/^[ab]\| / && !/^[ab]\| (ok|#)/ { console[substr($0, 1, 1), heard[substr($0, 1, 1)]++] = $0 }

# A new run begins: earlier failures do not belong to it.
/^lab: .*\), [12] guests, / { failures = 0 }

# A guest that the lab killed because the other one had died is not the cause of the failure.
/^lab: [ab] failed: / && (!why || why ~ /killed: the other guest/) {
	why = substr($0, 6)
	loser = substr($0, 6, 1)
	next
}
/^lab: [ab] failed: / && !/killed: the other guest/ { why = why "\n# " substr($0, 6) }

# Diagnostics follow their failure. Those of a guest are kept until settle() prints the result.
failing && /^ *([ab]: +)?#/ {
	line = $0
	sub(/^ *([ab]: +)?# ?/, "", line)
	if (shown++ < 12) {
		if (in_guest)
			details[failing] = details[failing] "\n# " line
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
	shown = 0
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
