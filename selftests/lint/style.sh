#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Check the kernel style: checkpatch --strict, kernel-doc, sizes, bit-fields, SPDX lines, and words
# that a finished file must not contain.
#
#   style.sh [FILE...]	limit checkpatch, kernel-doc and functions.py to FILEs, but no other check
set -euo pipefail
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$src"

# Types of checkpatch messages that are ignored in a file.
excused() {
	# A macro that is applied to each row of a list need not use all columns.
	echo MACRO_ARG_UNUSED
	case ${1##*/} in
	# Tracepoints have a different layout.
	trace.h)	echo PARENTHESIS_ALIGNMENT OPEN_ENDED_LINE ;;
	# Some row macros use an argument in offsetof() and again in sizeof_field().
	byzantine_frame.c)	echo MACRO_ARG_REUSE ;;
	# Macros that expand to a list of rows cannot be enclosed in parentheses, and the strings
	# in the rows are not split. afr_netns_least() names a member of a structure twice.
	netns.h | reason.h | support.h)
			echo COMPLEX_MACRO LONG_LINE LONG_LINE_STRING MACRO_ARG_REUSE ;;
	# Here, the macro for one row expands to an array element, or to a case with a return.
	netns.c | reason.c)
			echo BRACKET_SPACE COMPLEX_MACRO MACRO_WITH_FLOW_CONTROL \
				TRAILING_SEMICOLON ;;
	# The list of frame types is a macro; the macros for one row of it expand to an enumerator, to
	# "+ 1", or to a member of a union.
	frame.h)	echo COMPLEX_MACRO LONG_LINE LONG_LINE_STRING TRAILING_SEMICOLON ;;
	# Two macros begin with a comma: they add a parameter or an argument if the kernel has it.
	compat.h)	echo COMPLEX_MACRO SPACING ;;
	# checkpatch mistakes a function with for_each_ in its name for a loop.
	group.c)	echo OPEN_BRACE ;;
	# sk_err is positive.
	close.c | wait.c | sendmsg.c)	echo USE_NEGATIVE_ERRNO ;;
	esac
	# The files in proto/ are also compiled in user space, where portable.h replaces the types
	# and macros of the kernel that these files use. They avoid all other macros of the kernel.
	# wire.h splits the magic into several strings, since "\xf7AF" would be one escape sequence.
	[[ $1 != */proto/* ]] ||
		echo BIT_MACRO ARRAY_SIZE MINMAX STRING_FRAGMENTS PREFER_KERNEL_TYPES \
			PREFER_DEFINED_ATTRIBUTE_MACRO CAMELCASE CONSTANT_COMPARISON MACRO_ARG_REUSE
}

check_patch() {
	local scripts=$1 file types
	shift
	for file in "$@"; do
		types=$(excused "$file" | tr -s ' \n' ',')
		run "$tmp/file" "$scripts/checkpatch.pl" --strict --no-tree --no-summary --terse \
			--show-types --ignore "${types%,}" -f "$file"
		cat "$tmp/file"
	done
}

if [ $# -gt 0 ]; then
	c_files=("$@")
else
	# Files that git knows, and new files that git does not ignore.
	mapfile -t c_files < <(git ls-files -co --exclude-standard \
		'net/afrdma/*.[ch]' 'include/uapi/linux/af_rdma.h')
	[ ${#c_files[@]} -gt 0 ]
fi

if scripts=$(kernel_scripts); then
	check_patch "$scripts" "${c_files[@]}" >"$tmp/checkpatch"
	judge "style: checkpatch --strict" "$tmp/checkpatch"
	# Check the kernel-doc comments that exist; functions.py checks that none is missing.
	run "$tmp/kernel-doc" "$scripts/kernel-doc" -none -Wreturn "${c_files[@]}"
	judge "style: kernel-doc" "$tmp/kernel-doc"
else
	skip "style: checkpatch --strict" "no kernel source (package linux-source-6.12)"
	skip "style: kernel-doc" "no kernel source (package linux-source-6.12)"
fi

[ $# -gt 0 ] || mapfile -t -O ${#c_files[@]} c_files < <(git ls-files -co --exclude-standard \
	'tools/*.[ch]' 'selftests/*.[ch]')
run "$tmp/functions" python3 "$src/selftests/lint/functions.py" "${c_files[@]}"
grep -qE '^(not )?ok ' "$tmp/functions" || not_ok "style: functions.py runs" "$tmp/functions"
while IFS= read -r line; do
	case $line in
	"ok "*)		ok "${line#ok [0-9]* }" ;;
	"not ok "*)	not_ok "${line#not ok [0-9]* }" ;;
	"#"*)		echo "$line" ;;
	esac
done <"$tmp/functions"

# No bit-fields in the module: two contexts must not write bit-fields of the same word at once.
type='(bool|u8|u16|u32|u64|int|unsigned( int| long)?)'
git grep -nE "^[[:space:]]+${type}[[:space:]]+\w+[[:space:]]*:[[:space:]]*[0-9]" \
	-- 'net/afrdma/*.[ch]' >"$tmp/bit-fields" || [ $? -eq 1 ]	# 1: no match
judge "style: no bit-fields" "$tmp/bit-fields"

# Long files should be split, in whatever language.
git ls-files -co --exclude-standard -z net include tools selftests | xargs -0 wc -l |
	awk '$1 > 700 && $2 != "total" { print $2 ":701: " $1 " lines" }' >"$tmp/long"
judge "style: no file has more than 700 lines" "$tmp/long"

# Files with these names have a comment syntax, and must name their license in the first three
# lines. C files also need a copyright line in the first five lines, unless they are generated.
git ls-files -co --exclude-standard | while IFS= read -r file; do
	case $file in
	*.[chS] | *.py | *.sh | *.lua | *.rst | *.yaml | *.yml | *.config | *.pml | */Makefile | \
	*/Kconfig | */Kbuild | Makefile | Kbuild)
		[ -e "$file" ] || continue
		head -n 3 "$file" | grep -q 'SPDX-License-Identifier: ' ||
			echo "$file:1: no SPDX line"
		[[ $file != *.[ch] ]] || head -n 5 "$file" | grep -q 'Copyright (C)\|YNL-GEN' ||
			echo "$file:1: no copyright line" ;;
	esac
done >"$tmp/spdx"
judge "style: SPDX and copyright lines" "$tmp/spdx"

# The words below have a letter in brackets, as in TO[D]O, so that grep does not find them in this
# file.
git ls-files -co --exclude-standard | grep -v -e '^COPYING$' | tr '\n' '\0' >"$tmp/names"
xargs -0 grep -nIE \
	-e '\b(TO[D]O|FIX[M]E|XX[X]|HA[C]K)\b|\b(white|black)[l]ist|\bBUG_O[N]\b' \
	-e '(^|[[:space:]"=:(])/(root|wor[k]|home)/[a-z]' \
	<"$tmp/names" >"$tmp/words" || [ $? -eq 123 ]	# grep: no match
judge "style: no open tasks, local paths or banned words" "$tmp/words"

finish
