#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# The packages that the tests install must not change what the machine boots. Prints KTAP. Nothing
# is installed: apt simulates the installation on a machine without any package.
set -uo pipefail
# shellcheck source=selftests/lint/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lint/lib.sh"
cd "$src" || exit 1

mkdir -p "$tmp/dpkg/info" "$tmp/dpkg/updates" "$tmp/bin"
: >"$tmp/dpkg/status"
echo "Dir::State::status \"$tmp/dpkg/status\";" >"$tmp/apt.conf"
export APT_CONFIG=$tmp/apt.conf DPKG_ADMINDIR=$tmp/dpkg
export PATH=$tmp/bin:$PATH

# Calls of apt-get that change nothing are passed on; all others are only recorded.
cat >"$tmp/bin/apt-get" <<END
#!/bin/bash
case " \$* " in
*" -s "* | *" --print-uris "*)	exec $(command -v apt-get) "\$@" ;;
*)	echo "apt-get \$*" >>"$tmp/calls" ;;
esac
END
# shellcheck disable=SC2016 # expanded by the script that is written
printf '#!/bin/bash\n[ "$1" = -n ] && shift\nexec "$@"\n' >"$tmp/bin/sudo"
chmod 755 "$tmp/bin"/*

deps=selftests/lab/deps.sh
boots='linux-image|initramfs|dracut|dkms|grub|busybox'
for list in selftests/*/packages.txt; do
	name="packages: $list installs nothing that changes the boot"
	mapfile -t names < <(sed 's/[#[:space:]].*//' "$list" | grep .)
	if ! apt-get -s install --no-install-recommends "${names[@]}" >"$tmp/plan" 2>&1; then
		skip "$name" "$(grep -m 1 '^E:' "$tmp/plan")"
		continue
	fi
	grep -E "^Inst [^ ]*($boots)" "$tmp/plan" >"$tmp/wrong"
	judge "$name" "$tmp/wrong"
done

# refused PACKAGE WHAT: deps.sh must fail, name WHAT as the reason, and install nothing
refused() {
	local name="packages: deps.sh does not install $1, because of $2" rc
	apt-cache show "$1" >/dev/null 2>&1 || { skip "$name" "apt does not know it"; return; }
	: >"$tmp/calls"
	"$deps" "$1" >"$tmp/output" 2>&1
	rc=$?
	{
		[ $rc -ne 0 ] || echo "status 0"
		grep -q "^deps: not installed, because .*$2.* would be installed as well" \
			"$tmp/output" || cat "$tmp/output"
		cat "$tmp/calls"
	} >"$tmp/wrong"
	judge "$name" "$tmp/wrong"
}
refused linux-headers-6.12-amd64 linux-image-6.12
refused linux-image-amd64 initramfs-tools
refused busybox-static busybox-static
refused dkms dkms
finish
