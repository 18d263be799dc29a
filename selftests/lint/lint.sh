#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Static checks of the sources.
#
#   lint.sh [NAME...]	layers planted circles style shell ynl symbols sparse mutations, and for the
#			documents: docs html wire_doc gen_reference gen_support
#			gen_troubleshooting man doc_names internals;
#			default: all
#
# Prints KTAP: the lines of each script, indented, and a line with its result.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[ $# -gt 0 ] || set -- layers planted circles style shell ynl symbols sparse \
	docs html wire_doc gen_reference gen_support gen_troubleshooting man doc_names internals \
	mutations

# shellcheck source=../ktap.sh
. "$here/../ktap.sh"
ktap_version
ktap_plan $#
count=0
failed=0
for name; do
	count=$((count + 1))
	script=$here/$name.sh
	[ -e "$script" ] || script=$here/$name.py
	# Each line is written at once: check.sh ends a stage that writes nothing for five minutes.
	PYTHONUNBUFFERED=1 "$script" 2>&1 | sed -u 's/^/    /'
	if [ "${PIPESTATUS[0]}" -eq 0 ]; then
		ktap_result ok $count "$name"
	else
		ktap_result "not ok" $count "$name"
		failed=1
	fi
done
exit $failed
