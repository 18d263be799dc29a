#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Install what packages.txt names and is missing, with apt-get.
#
#   deps.sh [PACKAGE...]	PACKAGEs instead of the list
#   deps.sh --check		only say what is missing
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

say() { echo "deps: $*" >&2; }

wanted() { sed 's/#.*//' "$here/packages.txt" | xargs -n 1; }

missing() {
	local p
	# One query for all: this runs before every build.
	dpkg-query -W -f='${db:Status-Status} ${Package}\n' 2>/dev/null |
		sed -n 's/^installed //p' | sort -u >"$tmp/have"
	for p in "$@"; do
		grep -qxF -- "$p" "$tmp/have" || echo "$p"
	done
}

as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	elif sudo -n true 2>/dev/null; then
		sudo -n "$@"
	else
		say "installing needs root: run 'sudo $here/deps.sh'"
		exit 1
	fi
}

# Another apt may be at work (unattended upgrades, a second run): wait for it.
apt() {
	as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y \
		-o DPkg::Lock::Timeout=600 -o Dpkg::Use-Pty=0 "$@"
}

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

command -v apt-get >/dev/null || {
	say "no apt-get: install these by hand: $(wanted | xargs)"
	exit 1
}

check=no
if [ "${1:-}" = --check ]; then
	check=yes
	shift
fi
if [ $# -gt 0 ]; then
	want=("$@")
else
	mapfile -t want < <(wanted)
fi
mapfile -t need < <(missing "${want[@]}")
[ ${#need[@]} -gt 0 ] || exit 0

say "missing: ${need[*]}"
[ $check = no ] || exit 1

# Package lists may be absent (fresh container) or too old to fetch from.
install() { apt install --no-install-recommends "${need[@]}"; }
apt-get -q -s install --no-install-recommends "${need[@]}" >/dev/null 2>&1 || apt update >&2
install >&2 || { apt update >&2 && install >&2; } || {
	say "apt-get could not install: ${need[*]}"
	exit 1
}
