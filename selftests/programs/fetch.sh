#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Get what the programs need: the packages of packages.txt, and the test suites that are only in
# Debian's source packages or in the kernel sources, built in folders below
# ${AFRDMA_CACHE:-$HOME/.cache/afrdma}/programs. "sources" does not change the package lists of the
# system.
#
#	fetch.sh packages [ROW...]	install all packages, or those for the ROWs
#	fetch.sh sources		download suites: vsock, redis, memcached, libuv, socat
#	fetch.sh where			print the folder of the suites
#
# If a suite is not available, that is printed and the suite is skipped; it is not a failure.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
lab=$here/../lab
cache=${AFRDMA_CACHE:-$HOME/.cache/afrdma}/programs
say() { echo "fetch: $*" >&2; }

packages() {
	local names
	mapfile -t names < <(awk -v rows="$*" '
		/^#/ || !NF { next }
		rows == "" { print $1; next }
		{
			name = $1
			gsub(/[,:]/, " ")
			for (i = 2; i <= NF; i++)
				if (index(" " rows " ", " " $i " ")) {
					print name
					next
				}
		}' "$here/packages.txt")
	"$lab/deps.sh" "${names[@]}"
}

# apt-get with package lists of its own, which contain the source packages of the archives that this
# machine uses.
apt() {
	command apt-get -q -y -o Dir::Etc::SourceList=/dev/null \
		-o Dir::Etc::SourceParts="$cache/apt/parts" \
		-o Dir::State::Lists="$cache/apt/lists" -o Dir::Cache="$cache/apt" \
		-o APT::Sandbox::User=root "$@"
}

# Fetch the package lists of apt(), once.
source_lists() {
	local list
	[ ! -e "$cache/apt/done" ] || return 0
	mkdir -p "$cache/apt/lists/partial" "$cache/apt/archives/partial" "$cache/apt/parts"
	for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list \
		/etc/apt/sources.list.d/*.sources; do
		[ ! -e "$list" ] ||
			sed -E 's/^(Types:.*)/Types: deb-src/;s/^deb([ \t])/deb-src\1/' "$list" \
				>"$cache/apt/parts/${list##*/}"
	done
	apt update >"$cache/apt/log" 2>&1 && touch "$cache/apt/done"
}

# vsock_uring_test is built only if liburing is installed; without it, only vsock_test is run.
build_vsock() {
	local include
	include=$("$lab/kernels.sh" source)/tools/include
	make CPPFLAGS="-I$include" vsock_test &&
		{ make CPPFLAGS="-I$include" vsock_uring_test || :; }
}
build_redis() { :; }		# the suite uses the packaged server
build_memcached() {
	./configure --disable-docs && make -j"$(nproc)" memcached-debug timedrun sizes
}
build_socat() { :; }
build_libuv1() {
	cmake -B build -DBUILD_TESTING=ON -DCMAKE_BUILD_TYPE=Release &&
		make -C build -j"$(nproc)" uv_run_tests_a
}

# unpack SUITE: put its sources into a new folder below the current one
unpack() {
	local tree
	case $1 in
	vsock)	tree=$("$lab/kernels.sh" source) && cp -r "$tree/tools/testing/vsock" . ;;
	*)	apt source "$1" ;;
	esac
}

# one SUITE: unpack it as $cache/SUITE, and build it there
one() {
	local name=$1 dir
	[ ! -e "$cache/$name/.built" ] || return 0
	rm -rf "${cache:?}/$name" "$cache/tmp.$name"
	mkdir -p "$cache/tmp.$name"
	(cd "$cache/tmp.$name" && unpack "$name") >"$cache/$name.log" 2>&1 || return
	dir=$(find "$cache/tmp.$name" -mindepth 1 -maxdepth 1 -type d | head -n 1)
	mv "$dir" "$cache/$name" && rm -rf "$cache/tmp.$name"
	(cd "$cache/$name" && "build_$name" && touch .built) >>"$cache/$name.log" 2>&1
}

sources() {
	local name names=(vsock redis memcached libuv1 socat)
	mkdir -p "$cache"
	source_lists || { say "no source packages available: $cache/apt/log"; names=(vsock); }
	for name in "${names[@]}"; do
		one "$name" || say "suite of $name not available: $cache/$name.log"
	done
}

case ${1:-} in
packages | sources)	"$@" ;;
where)			echo "$cache" ;;
*)
	sed -n '3,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
	exit 2 ;;
esac
