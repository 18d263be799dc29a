#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# All that can be said about the sources without running them.
#
#   lint.sh [NAME...]	layers style shell ynl symbols sparse mutations, and of the documents
#			docs wire_doc gen_reference gen_support doc_names internals; all by default
#
# KTAP: one line per script, its own lines indented before it.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[ $# -gt 0 ] || set -- layers style shell ynl symbols sparse \
	docs wire_doc gen_reference gen_support doc_names internals mutations

echo "KTAP version 1"
echo "1..$#"
count=0
failed=0
for name; do
	count=$((count + 1))
	script=$here/$name.sh
	[ -e "$script" ] || script=$here/$name.py
	"$script" 2>&1 | sed 's/^/    /'
	if [ "${PIPESTATUS[0]}" -eq 0 ]; then
		echo "ok $count $name"
	else
		echo "not ok $count $name"
		failed=1
	fi
done
exit $failed
