#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Check the syntax of the documents: every .rst file with docutils, every man page with groff. The
# man pages must name the version of af_rdma.h. index.rst has directives of Sphinx: see html.sh.
set -uo pipefail
# shellcheck source=selftests/lint/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

cd "$src" || exit 1
mapfile -t pages < <(git ls-files --cached --others --exclude-standard '*.rst' |
	grep -vx Documentation/index.rst)
[ ${#pages[@]} -gt 0 ] || exit 1
for page in "${pages[@]}"; do
	if ! command -v rst2html >/dev/null; then
		skip "$page" "package python3-docutils is not installed"
		continue
	fi
	run "$tmp/wrong" rst2html --report=2 "$page" /dev/null
	judge "$page" "$tmp/wrong"
done

for page in Documentation/man/*.[1-9]; do
	if ! command -v groff >/dev/null; then
		skip "$page" "package groff-base is not installed"
		continue
	fi
	run "$tmp/wrong" groff -man -Tutf8 -ww -z "$page"
	judge "$page" "$tmp/wrong"
done

version=$(sed -n 's/^#define AFRDMA_VERSION[[:blank:]]*"\(.*\)"$/\1/p' include/uapi/linux/af_rdma.h)
grep -L "\"AF_RDMA $version\"" Documentation/man/*.[1-9] >"$tmp/wrong"
judge "the manual pages are of version $version, as af_rdma.h" "$tmp/wrong"
finish
