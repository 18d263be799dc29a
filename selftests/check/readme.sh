#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# README.md must contain the list of packages of selftests/lab/packages.txt and the table of kernels
# that kernel_table.py prints, and the paths in the source tree and the make targets that README.md
# has in backquotes must exist.
#
#	readme.sh		check: KTAP
#	readme.sh --write	write the list and the table
# shellcheck disable=SC2317 # put() calls the functions that print blocks
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=selftests/ktap.sh
. selftests/ktap.sh

packages() {
	echo '| Package | For |'
	echo '|---------|-----|'
	awk '!/^#/ && match($0, /#/) {
		name = $1
		why = substr($0, RSTART + 1)
		sub(/^ */, "", why)
		print "| " name " | " why " |"
	}' selftests/lab/packages.txt
}

kernels() {
	echo
	selftests/check/kernel_table.py
}

# put BLOCK: copy stdin to stdout, with the output of the function BLOCK between the lines that mark
# its place.
put() {
	"$1" >"$tmp/block"
	awk -v begin="<!-- $1: made by selftests/check/readme.sh -->" -v end="<!-- $1 end -->" \
		-v block="$tmp/block" '
		$0 == end { within = 0 }
		!within { print }
		$0 == begin { while ((getline line <block) > 0) print line; within = 1 }'
}

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
put packages <README.md >"$tmp/with-packages"
put kernels <"$tmp/with-packages" >"$tmp/README.md"
if [ "${1:-}" = --write ]; then
	cat "$tmp/README.md" >README.md
	exit
fi

failed=0
name="README: the list of packages and the table of kernels are up to date"
if diff -u README.md "$tmp/README.md" >"$tmp/diff"; then
	ktap_result ok 1 "$name"
else
	ktap_result "not ok" 1 "$name"
	sed 's/^/# /' "$tmp/diff"
	failed=1
fi

# The Makefile passes the NAME of a target check-NAME on to check.sh, so "make -n" accepts any NAME.
known() {
	case $1 in
	check-quick | check-full | check-all)	;;
	check-*)	grep -q "^${1#check-} " "$tmp/stages" ;;
	*)		make -n "$1" >/dev/null 2>&1 ;;
	esac
}
selftests/check.sh list >"$tmp/stages"

# Print the relative paths outside build/ and the make targets that README.md has in backquotes and
# that do not exist.
# shellcheck disable=SC2016 # backquotes of Markdown
{
	grep -oE '`[A-Za-z._]+/[A-Za-z0-9._/-]*`' README.md | tr -d '`' | grep -v '^build/' |
		while IFS= read -r path; do [ -e "$path" ] || echo "$path"; done
	grep -oE '`make [a-z-]+`' README.md | tr -d '`' | cut -d ' ' -f 2 |
		while IFS= read -r target; do
			known "$target" || echo "make $target"
		done
} >"$tmp/wrong"
name="README: all paths and make targets exist"
if [ -s "$tmp/wrong" ]; then
	ktap_result "not ok" 2 "$name"
	sed 's/^/# /' "$tmp/wrong"
	failed=1
else
	ktap_result ok 2 "$name"
fi
exit $failed
