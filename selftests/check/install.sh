#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests "make -j" and "make install", and compiles programs with the installed headers. Prints
# KTAP. Nothing is written outside build/ and a temporary folder.
set -uo pipefail
# shellcheck source=selftests/lint/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lint/lib.sh"
cd "$src" || exit 1

# try NAME COMMAND...: ok if the command succeeds without a warning.
try() {
	local name=$1
	shift
	: >"$tmp/wrong"
	if ! "$@" >"$tmp/out" 2>&1 || grep -q 'warning: ' "$tmp/out"; then
		tail -n 12 "$tmp/out" >"$tmp/wrong"
		[ -s "$tmp/wrong" ] || echo "failed without output: $*" >"$tmp/wrong"
	fi
	judge "$name" "$tmp/wrong"
}

# A stand-in for the kernel build: two targets that wait for each other, so that the build succeeds
# only if it runs two jobs at once.
mkdir "$tmp/kernel"
cat >"$tmp/kernel/Makefile" <<'END'
modules: one other
one other:
	touch $@.runs
	for i in $$(seq 100); do [ ! -e one.runs ] || [ ! -e other.runs ] || exit 0; \
		sleep 0.1; done; exit 1
END
try "install: make -j2 gives the module's build two jobs" make -j2 KDIR="$tmp/kernel" modules

dest=$tmp/dest
try "install: make install" make install DESTDIR="$dest"

# Compile the example programs of afrdma.rst, unchanged, and tools/examples, with the headers that
# "make install" has installed instead of those in include/uapi.
awk -v to="$tmp/manual" '
	/^\.\. code-block:: c$/ { out = to (++n) ".c"; next }
	/^[^ ]/ { out = "" }
	out { sub(/^  /, ""); print >out }' Documentation/networking/afrdma.rst
for cc in gcc clang; do
	for file in "$tmp"/manual*.c; do
		try "install: $(basename "$file" .c) of afrdma.rst, $cc" "$cc" -Wall -Wextra \
			-Werror -I"$dest/usr/local/include" -c -o "${file%.c}.o" "$file"
	done
	try "install: tools/examples, $cc" make -s -B -C tools/examples CC=$cc O="$tmp/$cc" \
		CPPFLAGS="-Werror -I$dest/usr/local/include"
done
finish
