# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Functions for scripts of this folder and of other folders, to print KTAP lines and to find
# scripts of the kernel source. Sourcing this file prints "KTAP version 1", sets src to the source
# tree, and sets tmp to a folder that is deleted at exit.
#
# ok NAME, not_ok NAME [FILE], skip NAME WHY	print one line, and below it the errors in FILE
# judge NAME FILE	ok if FILE is empty, otherwise not_ok
# run FILE COMMAND...	write all output to FILE, or the status if COMMAND fails without output
# finish		print the plan and return the exit status
# kernel_scripts	print a folder with checkpatch.pl and kernel-doc, or return 1

# shellcheck disable=SC2034 # used by the scripts that source this file
src=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
lint_count=0
lint_failed=0
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# shellcheck source=../ktap.sh
. "$src/selftests/ktap.sh"
ktap_version

ok() {
	lint_count=$((lint_count + 1))
	ktap_result ok $lint_count "$1"
}

not_ok() {
	lint_count=$((lint_count + 1))
	lint_failed=$((lint_failed + 1))
	ktap_result "not ok" $lint_count "$1"
	[ $# -lt 2 ] || sed 's/^/# /' "$2"
}

skip() {
	lint_count=$((lint_count + 1))
	ktap_result ok $lint_count "$1" "SKIP $2"
}

judge() {
	if [ -s "$2" ]; then not_ok "$1" "$2"; else ok "$1"; fi
}

run() {
	local file=$1 status=0
	shift
	"$@" >"$file" 2>&1 || status=$?
	[ $status -eq 0 ] || [ -s "$file" ] || echo "$1 failed with $status" >"$file"
}

finish() {
	ktap_plan $lint_count
	[ $lint_failed -eq 0 ]
}

# kernel_scripts prints a folder with checkpatch.pl and kernel-doc: "scripts" of
# $AFRDMA_KERNEL_SOURCE, or else of the kernel source that the lab has unpacked. If neither has
# both files, it unpacks them into the cache, once, from the distribution's source package.
kernel_scripts() {
	local cache=${AFRDMA_CACHE:-$HOME/.cache/afrdma} dir tarball
	for dir in ${AFRDMA_KERNEL_SOURCE:+"$AFRDMA_KERNEL_SOURCE/scripts"} \
		   "$cache"/source-*/scripts "$cache/scripts"; do
		if [ -x "$dir/checkpatch.pl" ] && [ -x "$dir/kernel-doc" ]; then
			echo "$dir"
			return
		fi
	done
	for tarball in /usr/src/linux-source-*.tar.xz; do
		[ -r "$tarball" ] || continue
		mkdir -p "$cache/scripts.new"
		tar -xJf "$tarball" -C "$cache/scripts.new" --strip-components=2 --wildcards \
			'*/scripts/checkpatch.pl' '*/scripts/kernel-doc' \
			'*/scripts/spelling.txt' '*/scripts/const_structs.checkpatch'
		mv "$cache/scripts.new" "$cache/scripts"
		echo "$cache/scripts"
		return
	done
	return 1
}
