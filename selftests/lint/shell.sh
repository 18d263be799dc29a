#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Run shellcheck over every shell script, and parse every Python file.
set -euo pipefail
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$src"

# Scripts are recognised by their first line, libraries by their shellcheck directive.
scripts() {
	git ls-files -co --exclude-standard | while IFS= read -r file; do
		[ -f "$file" ] || continue
		head -n 3 "$file" | grep -qE "^#!.*\b$1|^# shellcheck shell=" 2>/dev/null &&
			echo "$file"
	done || true
}

mapfile -t files < <(scripts '(ba)?sh\b')
[ ${#files[@]} -gt 0 ]
if command -v shellcheck >/dev/null; then
	run "$tmp/shell" shellcheck -x -P SCRIPTDIR -f gcc -e SC1091 "${files[@]}"
	judge "shell: shellcheck over ${#files[@]} scripts" "$tmp/shell"
else
	skip "shell: shellcheck" "no shellcheck"
fi

mapfile -t files < <(git ls-files -co --exclude-standard | while IFS= read -r file; do
	[ -f "$file" ] || continue
	head -n 1 "$file" | tr -d '\0' | grep -q '^#!.*python' && echo "$file"
	case $file in *.py) echo "$file" ;; esac
done | sort -u)
[ ${#files[@]} -gt 0 ]
run "$tmp/python" python3 - "${files[@]}" <<'END'
import ast, sys
for name in sys.argv[1:]:
    try:
        ast.parse(open(name).read(), name)
    except SyntaxError as error:
        print(f"{name}:{error.lineno}: {error.msg}")
END
judge "shell: ${#files[@]} Python files parse" "$tmp/python"
finish
