# SPDX-License-Identifier: GPL-2.0
#
# The results of a suite on TCP, NAME.tcp, and on AF_RDMA, NAME.rdma: lines of a test and
# "pass", "fail" and so on. Of what passes on TCP, prints what does not on AF_RDMA, and what
# the file "listed" names to no purpose; what is as listed is a comment.
BEGIN {
	while ((getline <listed) > 0)
		if ($1 !~ /^#/)
			known[prefix $1] = $2
}
$2 == "begins" { next }
FILENAME ~ /tcp$/ { tcp[$1] = $2 }
FILENAME ~ /rdma$/ { rdma[$1] = $2 }
END {
	for (name in tcp) {
		if (tcp[name] != "pass")
			continue
		all++
		word = name in rdma ? rdma[name] : "not run"
		passed += word == "pass"
		if (word == "pass" && known[name] == "always")
			print "listed, but passes: " name
		else if (word != "pass" && known[name])
			print "# as listed, " word ": " name
		else if (word != "pass")
			print "passes on TCP, here " word ": " name
	}
	printf "# %d pass on TCP, %d of these on AF_RDMA\n", all, passed
}
