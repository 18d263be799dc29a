#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Build the documents as "make html" does, into a folder that is deleted: no warnings, and a page
# for each .rst file of Documentation, which index.rst must lead to.
set -uo pipefail
# shellcheck source=selftests/lint/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

cd "$src" || exit 1
if ! command -v sphinx-build >/dev/null; then
	skip "sphinx builds the documents without warnings" "package python3-sphinx is not installed"
	skip "each document is a page" "package python3-sphinx is not installed"
	finish
	exit
fi

run "$tmp/wrong" sphinx-build -W --keep-going -q -b html Documentation "$tmp/html"
judge "sphinx builds the documents without warnings" "$tmp/wrong"

git ls-files -co --exclude-standard 'Documentation/*.rst' | while IFS= read -r page; do
	html=$tmp/html/${page#Documentation/}
	[ -s "${html%.rst}.html" ] || echo "$page"
done >"$tmp/missing"
judge "each document is a page" "$tmp/missing"
finish
