#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Install the packages of packages.txt that are missing, with apt-get.
#
#   deps.sh [PACKAGE...]	PACKAGEs instead of the list
#   deps.sh --check		only print which are missing; status 1 if any is
#   deps.sh --plan		print the size of the download, if any: "PACKAGES BYTES"
#
# If one of the packages would change what this machine boots, none is installed, and deps.sh fails.
# No package is removed. No service is started, unless the machine's own policy-rc.d allows it.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

say() { echo "deps: $*" >&2; }

wanted() { sed 's/#.*//' "$here/packages.txt" | xargs -n 1; }

missing() {
	local p
	# One query for all packages is faster than one for each.
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

# Run apt-get. It waits up to 600 s while another apt (unattended upgrades, another deps.sh) holds
# dpkg's lock; "update" fails at once if another one holds the lock of the package lists.
apt() {
	as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y \
		-o DPkg::Lock::Timeout=600 -o Dpkg::Use-Pty=0 "$@"
}

tmp=$(mktemp -d)
policy=/usr/sbin/policy-rc.d
ours=		# set if this script created the policy
clean_up() {
	rm -rf "$tmp"
	[ -z "$ours" ] || as_root rm -f "$policy"
}
trap clean_up EXIT

# The package of a server starts the server when it is installed, unless a policy forbids that.
start_no_service() {
	[ ! -e "$policy" ] || return 0
	printf '#!/bin/sh\nexit 101\n' >"$tmp/policy"
	ours=yes
	as_root install -m 755 "$tmp/policy" "$policy"
}

command -v apt-get >/dev/null || {
	say "no apt-get: install these by hand: $(wanted | xargs)"
	exit 1
}

what=install
case ${1:-} in
--check | --plan)
	what=${1#--}
	shift ;;
esac
if [ $# -gt 0 ]; then
	want=("$@")
else
	mapfile -t want < <(wanted)
fi
mapfile -t need < <(missing "${want[@]}")
[ ${#need[@]} -gt 0 ] || exit 0

say "missing: ${need[*]}"
[ "$what" != check ] || exit 1

# Packages that change what the machine boots: kernels, tools that build an initramfs or are copied
# into it, DKMS modules, boot loaders.
boot='linux-image-[^ ]*|initramfs-tools[^ ]*|dracut[^ ]*|busybox[^ ]*|dkms|[^ ]*-dkms|grub[^ ]*'
boot+='|systemd-boot[^ ]*'
options=(install --no-install-recommends --no-remove)

# Fail if the planned installation, with all dependencies, contains a package that matches $boot.
spare_the_boot() {
	local names
	names=$(sed -nE "s/^Inst ($boot) .*/\1/p" "$tmp/plan" | xargs)
	[ -z "$names" ] || {
		say "not installed, because $names would be installed as well and change" \
		    "what this machine boots: ${need[*]}"
		exit 1
	}
}

simulate() { apt-get -q -s "${options[@]}" "${need[@]}" >"$tmp/plan" 2>"$tmp/wrong"; }

# If the simulation fails, the package lists may be missing (new container) or outdated: update them
# and simulate again.
simulate || { apt update >&2 && simulate; } || {
	cat "$tmp/wrong" >&2
	say "apt-get cannot install: ${need[*]}"
	exit 1
}
spare_the_boot
if [ "$what" = plan ]; then
	apt-get -qq --print-uris "${options[@]}" "${need[@]}" |
		awk '{ bytes += $3 } END { printf "%d %d\n", NR, bytes }'
	exit
fi

install_all() { apt "${options[@]}" "${need[@]}"; }
start_no_service
install_all >&2 || { apt update >&2 && simulate && spare_the_boot && install_all >&2; } || {
	say "apt-get could not install: ${need[*]}"
	exit 1
}
