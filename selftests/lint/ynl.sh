#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Compare include/uapi/linux/af_rdma_netlink.h with the header that the kernel's generator makes
# from the netlink specification.
#
#   ynl.sh            compare, and print KTAP
#   ynl.sh --write    the same, but replace the header first
#
# The generator is taken from $AFRDMA_KERNEL_SOURCE, or else from a kernel source that
# selftests/lab/kernels.sh has unpacked, or else from a package such as linux-source-6.12.
set -uo pipefail
# shellcheck source=selftests/lint/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

spec=Documentation/netlink/specs/afrdma.yaml
header=include/uapi/linux/af_rdma_netlink.h
name="ynl: $header is up to date with $spec"

# Print a folder that contains tools/net/ynl and Documentation/netlink.
find_kernel() {
	local dir tarball
	for dir in ${AFRDMA_KERNEL_SOURCE:+"$AFRDMA_KERNEL_SOURCE"} \
		   "${AFRDMA_CACHE:-$HOME/.cache/afrdma}"/source-*; do
		if [ -e "$dir/tools/net/ynl/ynl-gen-c.py" ]; then
			echo "$dir"
			return
		fi
	done
	for tarball in /usr/src/linux-source-*.tar.xz; do
		[ -r "$tarball" ] || continue
		mkdir "$tmp/kernel"
		tar -xf "$tarball" -C "$tmp/kernel" --strip-components=1 --wildcards \
			'*/tools/net/ynl/*' '*/Documentation/netlink/*.yaml' 2>/dev/null
		if [ -e "$tmp/kernel/tools/net/ynl/ynl-gen-c.py" ]; then
			echo "$tmp/kernel"
			return
		fi
		rm -r "$tmp/kernel"	# this kernel has no such generator
	done
	return 1
}

# The generator takes the schema from the parent of the specification's folder. It writes the path
# of the specification into the header, relative to the folder that contains MAINTAINERS.
generate() {
	local kernel=$1 tree=$tmp/tree
	mkdir -p "$tree/Documentation/netlink/specs"
	touch "$tree/MAINTAINERS"
	cp "$kernel"/Documentation/netlink/*.yaml "$tree/Documentation/netlink/"
	cp "$src/$spec" "$tree/$spec"
	python3 "$kernel/tools/net/ynl/ynl-gen-c.py" --mode uapi --header \
		--spec "$tree/$spec" -o "$tmp/header.h" >"$tmp/wrong" 2>&1
}

if ! python3 -c 'import yaml, jsonschema' 2>/dev/null; then
	skip "$name" "packages python3-yaml and python3-jsonschema are not installed"
elif ! kernel=$(find_kernel); then
	skip "$name" "no kernel source: package linux-source-6.12"
elif ! generate "$kernel"; then
	not_ok "$name" "$tmp/wrong"
else
	[ "${1:-}" != --write ] || cp "$tmp/header.h" "$src/$header"
	# If they differ, run ynl.sh --write and commit the result.
	run "$tmp/wrong" diff -u "$src/$header" "$tmp/header.h"
	judge "$name" "$tmp/wrong"
fi
finish
