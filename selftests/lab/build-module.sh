#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Build afrdma.ko for one guest kernel and print its path.
#
#   build-module.sh NAME [MAKE ARGUMENT...]
#
# NAME as in kernels.sh. The source tree is not written to: Kbuild, net/ and include/ are copied to
# build/NAME, but only files whose content has changed, so that a second run has nothing to do.
# AFRDMA_BUILD is the folder for builds, build by default; use another one for a variant (W=1,
# LLVM=1). AFRDMA_SRC is the tree to build, by default the one that contains this script.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
src=${AFRDMA_SRC:-$(cd "$here/../.." && pwd)}
[ $# -ge 1 ] || { sed -n '3,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "$0" >&2; exit 2; }
name=$1
shift

[ -e "$src/Kbuild" ] || { echo "build-module: no Kbuild in $src" >&2; exit 1; }
kdir=$("$here/kernels.sh" dir "$name")
out=${AFRDMA_BUILD:-$src/build}/$name
mkdir -p "$out"
out=$(cd "$out" && pwd)

exec 9>"$out/.lock"
flock 9

# Objects built for another kernel cannot be used.
if [ "$(cat "$out/.kdir" 2>/dev/null)" != "$kdir" ]; then
	find "$out" -mindepth 1 ! -name .lock -delete
	echo "$kdir" >"$out/.kdir"
fi

# Compare contents, not times: a file that git checks out may be older than its object. In
# build/NAME only sources that no longer exist are deleted.
parts=()
for part in Kbuild net include; do
	if [ -e "$src/$part" ]; then parts+=("$src/$part"); fi
done
rsync -rlp --checksum --delete --prune-empty-dirs \
	--exclude='*.mod.c' --include='*/' --include='*.[chS]' --include='Kbuild' \
	--include='Makefile' --include='Kconfig' --exclude='*' "${parts[@]}" "$out/"

args=(-C "$kdir" "M=$out" "-j$(nproc)")
case $name in
uml*)	args+=(ARCH=um) ;;
esac
# A debug kernel gets a module with its own checks.
case $name in
*debug*)	args+=(CONFIG_AFRDMA_DEBUG=y) ;;
esac
# The headers need the compiler of their kernel, which is the default gcc of the release.
nice -n 5 make "${args[@]}" "$@" modules >&2

ko=$(find "$out" -name afrdma.ko | head -n 1)
[ -n "$ko" ] || { echo "build-module: the build produced no afrdma.ko" >&2; exit 1; }
echo "$ko"
