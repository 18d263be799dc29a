#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# include/uapi/linux/af_rdma_netlink.h is made from the netlink spec by the
# kernel's generator: make it again and compare.
#
#   ynl.sh            check: KTAP
#   ynl.sh --write    write the header
#
# The generator is looked for in $YNL_KERNEL, in the kernel source that
# selftests/lab/kernels.sh unpacks, and in the package linux-source-6.12.
set -euo pipefail

src=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
spec=Documentation/netlink/specs/afrdma.yaml
header=include/uapi/linux/af_rdma_netlink.h
tarball=/usr/src/linux-source-6.12.tar.xz
name="$header is what the generator makes of $spec"

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

skip() {
	echo "ok 1 $name # SKIP $*"
	exit 0
}

fail() {
	echo "not ok 1 $name"
	echo "# $*"
	exit 1
}

# Print a folder that holds tools/net/ynl and Documentation/netlink.
find_kernel() {
	local dir
	for dir in ${YNL_KERNEL:+"$YNL_KERNEL"} \
		   "${AFRDMA_CACHE:-$HOME/.cache/afrdma}"/source-*; do
		if [ -e "$dir/tools/net/ynl/ynl-gen-c.py" ]; then
			echo "$dir"
			return
		fi
	done
	[ -r "$tarball" ] || return 1
	mkdir "$tmp/kernel"
	tar -xf "$tarball" -C "$tmp/kernel" --strip-components=1 --wildcards \
		'*/tools/net/ynl/*' '*/Documentation/netlink/*.yaml'
	echo "$tmp/kernel"
}

echo "TAP version 13"
echo "1..1"
python3 -c 'import yaml, jsonschema' 2>/dev/null ||
	skip "packages python3-yaml and python3-jsonschema are not installed"
kernel=$(find_kernel) || skip "no kernel source: package linux-source-6.12"

# The generator takes paths from a kernel tree, which it knows by this file.
tree=$tmp/tree
mkdir -p "$tree/Documentation/netlink/specs"
touch "$tree/MAINTAINERS"
cp "$kernel"/Documentation/netlink/*.yaml "$tree/Documentation/netlink/"
cp "$src/$spec" "$tree/$spec"
python3 "$kernel/tools/net/ynl/ynl-gen-c.py" --mode uapi --header \
	--spec "$tree/$spec" -o "$tmp/header.h" >"$tmp/log" 2>&1 ||
	fail "the generator refused the spec: $(tail -n 1 "$tmp/log")"

if [ "${1:-}" = --write ]; then
	cp "$tmp/header.h" "$src/$header"
fi
if ! diff -u "$src/$header" "$tmp/header.h" >"$tmp/diff"; then
	sed 's/^/# /' "$tmp/diff"
	fail "run selftests/lint/ynl.sh --write and commit the result"
fi
echo "ok 1 $name"
