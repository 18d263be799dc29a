# SPDX-License-Identifier: GPL-2.0
#
# Compare the results of a suite on TCP (first file) and on another family (second file). Each line
# of them is the name of a test and "pass", "fail" and so on. Variables: "suite", its name, and
# "listed", the file of known differences. Prints the tests that pass on TCP but not on the other
# family, and tests that pass although "listed" says that they always fail; differences that are
# listed are printed as comments.
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
			print "passes on TCP, but here " word ": " name
	}
	printf "# %d of %d that pass on TCP\n", passed, all
}
