# SPDX-License-Identifier: GPL-2.0
#
# The results of a suite on TCP, the first file, and on another family: lines of a test and
# "pass", "fail" and so on. Of what passes on TCP, prints what does not there, and what the
# file "listed" names to no purpose, of "suite"; what is as listed is a comment.
BEGIN {
	while ((getline <listed) > 0)
		if (index($1, suite "/") == 1)
			known[substr($1, length(suite) + 2)] = $2
}
$2 == "begins" { next }
FILENAME == ARGV[1] { tcp[$1] = $2; next }
{ there[$1] = $2 }
END {
	for (name in tcp) {
		if (tcp[name] != "pass")
			continue
		all++
		word = name in there ? there[name] : "not run"
		passed += word == "pass"
		if (word == "pass" && known[name] == "always")
			print "listed, but passes: " name
		else if (word != "pass" && known[name])
			print "# as listed, " word ": " name
		else if (word != "pass")
			print "passes on TCP, here " word ": " name
	}
	printf "# %d of %d that pass on TCP\n", passed, all
}
