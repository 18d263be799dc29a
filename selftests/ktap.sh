# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Functions that write KTAP. Everything in shell that prints a result uses them.
#
# ktap_version, ktap_plan COUNT
#			print the version line; print the number of tests
# ktap_result RESULT NUMBER NAME [NOTE]
#			print one line. RESULT is ok or "not ok"; NUMBER may be "-"; NOTE follows
#			the name behind "#": a reason, or SKIP and a reason

ktap_version() { echo "KTAP version 1"; }
ktap_plan() { echo "1..$1"; }
ktap_result() { echo "$1 $2 $3${4+ # $4}"; }
