#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Build afrdma.ko for one guest kernel and print its path.
#
#   build-module.sh NAME [MAKE ARGUMENT...]
#
# NAME is a kernel of kernels.sh. No objects are made next to the source files: Kbuild, net/ and
# include/ are copied to $AFRDMA_BUILD/NAME and compiled there. Only files whose content has changed
# are copied, so that a second run has nothing to compile.
# AFRDMA_BUILD defaults to the folder "build" of the tree; set another folder for a variant (W=1,
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

# rsync compares contents, and a file that it copies gets the current time: make compiles it even if
# its time in the source tree is older than that of its object. Sources that no longer exist in the
# tree are deleted from build/NAME, objects are not.
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
# With a debug kernel, the module is built with its debug checks.
case $name in
*debug*)	args+=(CONFIG_AFRDMA_DEBUG=y) ;;
esac
# The compiler is Debian's default gcc, as for the kernel, unless an argument selects another one.
nice -n 5 make "${args[@]}" "$@" modules >&2

ko=$(find "$out" -name afrdma.ko | head -n 1)
[ -n "$ko" ] || { echo "build-module: the build produced no afrdma.ko" >&2; exit 1; }
echo "$ko"
