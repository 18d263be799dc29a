#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Build or download guest kernels, and print where they are.
#
#   kernels.sh make  NAME...   build or download, unless that has been done
#   kernels.sh dir   NAME      the KDIR to build external modules with
#   kernels.sh image NAME      the kernel to boot
#   kernels.sh initrd NAME     the initramfs to boot it with (VMs only)
#   kernels.sh root  NAME      the folder with lib/modules/RELEASE, if the kernel has modules
#   kernels.sh release NAME    the output of uname -r in the guest
#   kernels.sh source [NAME]   the unpacked sources of a kernel (default: uml)
#   kernels.sh busybox         a static busybox, for the guests to boot with
#   kernels.sh need  NAME...   the downloads of "make", one per line: PACKAGE BYTES
#   kernels.sh list            the names
#
# NAME is that of a line of the table below: User-Mode Linux (uml*), a kernel for a VM that is built
# here (kcsan*), or a kernel of Debian for a VM (vm-*). A kernel that this machine's release of
# Debian does not have is taken from a newer suite, whose package lists and packages stay in the
# cache: the machine's own package lists are not changed. If the suite does not have the package
# either, the status is 4.
#
# Debian's kernels, their headers and busybox-static are downloaded and unpacked, but not
# installed, because as packages they change what this machine boots: the headers of 6.12 depend on
# its image, whose scripts make it the default kernel, and busybox-static is added to each
# initramfs.
#
# Everything is stored in ${AFRDMA_CACHE:-$HOME/.cache/afrdma}. The folder name of a kernel that is
# built here contains the version of the sources and a hash of the configs and, for User-Mode Linux,
# of the patch; that of a kernel of Debian contains its version. A folder is valid once its file
# "complete" exists, which is written last; an incomplete folder is continued or made again.

# Functions are called through with_lock, which shellcheck does not follow.
# shellcheck disable=SC2317
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${AFRDMA_CACHE:-$HOME/.cache/afrdma}
jobs=${AFRDMA_JOBS:-$(nproc)}

# Each line has a name, a suite of Debian ("-": that of this machine) and a package. If the package
# is a source, the configs that are added to tinyconfig follow; if it is an image of a newer suite,
# the package of its source follows. linux-source-6.12 is one of packages.txt; all other packages
# are downloaded.
table() {
	cat <<-'END'
	uml		-	linux-source-6.12	uml.config
	uml-debug	-	linux-source-6.12	uml.config uml-debug.config
	uml-7.2		sid	linux-source-7.2	uml.config uml-7.2.config
	uml-7.2-debug	sid linux-source-7.2 uml.config uml-debug.config uml-7.2.config frames.config
	vm-6.12		-	linux-image-6.12-amd64
	vm-6.1		-	linux-image-amd64
	vm-7.2		sid	linux-image-amd64	linux-source-7.2
	vm-7.2-rt	sid	linux-image-rt-amd64	linux-source-7.2
	kcsan-7.2	sid	linux-source-7.2	uml.config uml-7.2.config kcsan.config
	END
}

# field NAME N [M]: words N to M (default: N) of the line of kernel NAME.
field() {
	table | awk -v name="$1" -v n="$2" -v m="${3:-$2}" '$1 == name {
		for (i = n; i <= m && i <= NF; i++)
			printf "%s%s", (i > n ? " " : ""), $i
		print ""
	}'
}

# Is kernel $1 built here?
built() { [[ $(field "$1" 3) = linux-source-* ]]; }

list() { table | awk '{ print $1 }'; }

say() { echo "kernels: $*" >&2; }
die() { say "$*"; exit 1; }

# progress LOG WHAT COMMAND...: run a long command with its output in a log; print a line every 20
# seconds. Exits if the command fails.
progress() {
	local log=$1 what=$2 pid start=$SECONDS next=20
	shift 2
	say "$what (log: $log)"
	nice -n 10 "$@" >"$log" 2>&1 </dev/null &
	pid=$!
	while kill -0 "$pid" 2>/dev/null; do
		if (( SECONDS - start >= next )); then
			next=$((next + 20))
			say "$what: $((SECONDS - start)) s, $(wc -l <"$log") steps," \
			    "$(tail -n 1 "$log" | cut -c1-50)"
		fi
		sleep 0.2
	done
	wait "$pid" || { tail -n 30 "$log" >&2; die "failed: $what (whole log: $log)"; }
	say "$what: done in $((SECONDS - start)) s"
}

# with_lock NAME COMMAND...: run COMMAND, which makes an entry (a folder of the cache), under lock
# NAME, so that no two processes make it at once. COMMAND returns at once if the entry is complete,
# for example because another process has made it while this one waited for the lock.
with_lock() {
	local lock=$cache/$1.lock
	shift
	mkdir -p "$cache"
	(
		flock -n 9 || { say "waiting for another run to finish $lock"; flock 9; }
		"$@"
	) 9>"$lock"
}

### Packages

# use_suite SUITE: sets "apt" to options that make apt-get and apt-cache use the package lists of a
# suite of Debian. SUITE "-" is that of this machine.
use_suite() {
	local dir=$cache/apt-$1
	# As root, apt would change to a user that cannot write in the cache: let it stay root.
	apt=(-o APT::Sandbox::User=root)
	[ "$1" = - ] || apt+=(-o Dir::State::Lists="$dir/lists" -o Dir::Cache="$dir"
		-o Dir::Etc::SourceList="$dir/$1.sources" -o Dir::Etc::SourceParts=-)
}

# Make the package lists of suite $1, from the mirror that this machine uses for Debian.
make_lists() {
	local suite=$1 dir=$cache/apt-$1 uri
	[ ! -e "$dir/complete" ] || return 0
	# shellcheck disable=SC2016 # apt expands these
	uri=$(apt-get indextargets --format '$(ORIGIN) $(COMPONENT) $(REPO_URI)' |
		sed -n 's/^Debian main //p' | grep -v -- '-security' | head -n 1)
	[ -n "$uri" ] || { say "apt knows no mirror of Debian: no kernel of $suite"; return 4; }
	mkdir -p "$dir/lists/partial" "$dir/archives/partial"
	cat >"$dir/$suite.sources" <<-END
	Types: deb
	URIs: $uri
	Suites: $suite
	Components: main
	Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
	END
	use_suite "$suite"
	# If the update fails, no kernel of the suite is available. progress() calls exit then: the
	# subshell keeps this from ending the script.
	(progress "$dir.log" "package lists of $suite" apt-get "${apt[@]}" -q update) || return 4
	touch "$dir/complete"
}

# The version of package $2 in suite $1. It is stored in the cache, so that a kernel is not built
# again whenever the suite changes. To get the newest version, remove the file apt-SUITE.PACKAGE and
# the folder apt-SUITE (package lists) from the cache.
suite_version() {
	local stored=$cache/apt-$1.$2 version
	if [ ! -s "$stored" ]; then
		with_lock "apt-$1" make_lists "$1" || return
		use_suite "$1"
		version=$(apt-cache "${apt[@]}" policy "$2" | sed -n 's/^ *Candidate: //p')
		case $version in
		"" | "(none)")
			say "Debian's suite $1 has no package $2"
			return 4 ;;
		esac
		echo "$version" >"$stored"
	fi
	cat "$stored"
}

### Sources

# The package with the source of kernel $1.
source_package() {
	if built "$1"; then
		field "$1" 3
	else
		field "$1" 4
	fi
}

source_version() {
	local suite package
	suite=$(field "$1" 2)
	package=$(source_package "$1")
	if [ "$suite" != - ]; then
		suite_version "$suite" "$package"
	else
		dpkg-query -W -f='${Version}' "$package" 2>/dev/null ||
			die "package $package is missing: run $here/deps.sh"
	fi
}

# The patch to apply to the source of kernel $1, PACKAGE.patch in this folder; may be missing. It
# may change arch/um only: Debian builds its kernels without it, and a kernel for a VM that is built
# here is not built again when the patch changes, see built_entry().
source_patch() { echo "$here/$(source_package "$1").patch"; }

source_entry() {
	local version patch hash=
	version=$(source_version "$1") || return
	patch=$(source_patch "$1")
	[ ! -e "$patch" ] || hash=-$(sha256sum <"$patch" | cut -c1-6)
	echo "$cache/source-$(tr ':~+' '---' <<<"$version")$hash"
}

# unpack_source NAME DIR: unpack the source of kernel NAME in DIR.
unpack_source() {
	local suite package dir=$2 tarball
	suite=$(field "$1" 2)
	package=$(source_package "$1")
	tarball=/usr/src/$package.tar.xz
	[ ! -e "$dir/complete" ] || return 0
	if [ "$suite" != - ]; then
		fetch "$suite" "$cache/$package" "$package" true
		tarball=$cache/$package/root$tarball
	fi
	[ -r "$tarball" ] || die "no $tarball: run $here/deps.sh"
	rm -rf "$dir" && mkdir -p "$dir"
	progress "$dir.log" "unpack $tarball" \
		tar -xf "$tarball" -C "$dir" --strip-components=1
	[ ! -e "$(source_patch "$1")" ] || patch -s -d "$dir" -p 1 <"$(source_patch "$1")" ||
		die "$(source_patch "$1") cannot be applied to $dir"
	[ "$suite" = - ] || rm -rf "${cache:?}/$package"
	touch "$dir/complete"
}

make_source() {
	local src
	src=$(source_entry "$1") || return
	with_lock "source-$(source_package "$1")" unpack_source "$1" "$src"
}

### Kernels built here

configs_of() { field "$1" 4 99 | xargs -n 1 printf '%s/%s\n' "$here"; }

built_entry() {
	local hash configs patch version
	mapfile -t configs < <(configs_of "$1")
	patch=$(source_patch "$1")
	[[ $1 != uml* ]] || [ ! -e "$patch" ] || configs+=("$patch")
	hash=$(cat "${configs[@]}" | sha256sum | cut -c1-12)
	version=$(source_version "$1") || return
	echo "$cache/$1-$(tr ':~+' '---' <<<"$version")-$hash"
}

# Kconfig silently drops an option whose dependencies are not met. It silently turns on an option
# that a config turns off, if another option selects it. Report such options, and fail if there
# are any.
check_config() {
	local config=$1 line bad=0
	shift
	# If an option has two lines, the last one counts.
	while read -r line; do
		case $line in
		*=n)	line="# ${line%=n} is not set" ;;
		esac
		case $line in
		"# CONFIG_"*" is not set")
			local opt=${line#\# }
			opt=${opt% is not set}
			! grep -q "^$opt=" "$config" && continue ;;
		*)	grep -qxF "$line" "$config" && continue ;;
		esac
		say "not accepted by this kernel: $line"
		bad=1
	done < <(cat "$@" | awk '
		match($0, /CONFIG_[A-Za-z0-9_]+/) && /^(CONFIG_|# CONFIG_)/ {
			opt = substr($0, RSTART, RLENGTH)
			if (!(opt in at)) { at[opt] = ++n }
			val[at[opt]] = $0
		}
		END { for (i = 1; i <= n; i++) print val[i] }')
	return "$bad"
}

# In a kernel with KCSAN, only the module is instrumented: everything else would be too slow in an
# emulated VM. So KCSAN finds a race only if the module is at least one side of it.
build_kernel() {
	local name=$1 dir=$2 src=$3 configs args=(ARCH=x86_64 KCSAN_SANITIZE=n)
	[ ! -e "$dir/complete" ] || return 0
	mapfile -t configs < <(configs_of "$name")
	[[ $name != uml* ]] || args=(ARCH=um)
	mkdir -p "$dir"
	if [ ! -e "$dir/configured" ]; then
		progress "$dir.log" "configure $name" \
			make -C "$src" O="$dir" "${args[@]}" tinyconfig
		cat "${configs[@]}" >>"$dir/.config"
		progress "$dir.log" "configure $name" \
			make -C "$src" O="$dir" "${args[@]}" olddefconfig
		check_config "$dir/.config" "${configs[@]}" ||
			die "the kernel config of $name does not contain all requested options"
		touch "$dir/configured"
	fi
	progress "$dir.log" "build $name (4 to 15 minutes on two cores)" \
		make -C "$dir" "${args[@]}" -j"$jobs" all
	# External modules need headers, scripts and Module.symvers, but no objects.
	find "$dir" -path "$dir/scripts" -prune -o \
		\( -name '*.o' -o -name '*.a' -o -name '.*.cmd' \) -type f -print0 |
		xargs -0 rm -f
	rm -f "$dir/vmlinux"		# the guest boots "linux" or bzImage
	touch "$dir/complete"
}

make_built() {
	local dir src
	dir=$(built_entry "$1") || return
	src=$(source_entry "$1")
	[ ! -e "$dir/complete" ] || return 0
	make_source "$1"
	with_lock "$1" build_kernel "$1" "$dir" "$src"
}

### Debian's own kernels

declare -A vm_packages

# The package in the table is a metapackage: it depends on the newest kernel of a series. A complete
# kernel of this machine's suite is used until the machine's package lists change. A complete kernel
# of a newer suite is used until it is removed from the cache, as suite_version() keeps the version
# of its source.
vm_package() {
	local meta pkg suite
	# Calls of apt take long: do not call it again if make_vm has stored the name.
	if [ -n "${vm_packages[$1]:-}" ]; then
		echo "${vm_packages[$1]}"
		return
	fi
	meta=$(field "$1" 3)
	suite=$(field "$1" 2)
	if [ "$suite" != - ] || [ "$cache/$1.package" -nt /var/lib/apt/lists ]; then
		pkg=$(cat "$cache/$1.package" 2>/dev/null) && [ -e "$cache/$pkg/complete" ] &&
			echo "$pkg" && return
	fi
	[ "$suite" = - ] || with_lock "apt-$suite" make_lists "$suite" || return
	use_suite "$suite"
	pkg=$(apt-cache "${apt[@]}" depends --no-recommends --no-suggests "$meta" 2>/dev/null |
		sed -n 's/^ *Depends: \(linux-image-[0-9].*\)$/\1/p' | head -n 1)
	# Without package lists, use the kernel that was downloaded before.
	if [ -z "$pkg" ] && [ -e "$cache/$1.package" ]; then
		pkg=$(cat "$cache/$1.package")
	fi
	if [ -z "$pkg" ] && [ "$suite" != - ]; then
		say "Debian's suite $suite has no package $meta"
		return 4
	fi
	[ -n "$pkg" ] || die "apt does not know $meta: run $here/deps.sh"
	echo "$pkg"
}

vm_release() {
	local pkg
	pkg=$(vm_package "$1")
	echo "${pkg#linux-image-}"
}

# fetch SUITE ENTRY "PACKAGE..." COMMAND...: download the packages, unpack them below ENTRY/root,
# and run the command there.
fetch() {
	local suite=$1 dir=$2 packages deb
	read -r -a packages <<<"$3"
	shift 3
	[ ! -e "$dir/complete" ] || return 0
	rm -rf "$dir" && mkdir -p "$dir/root"
	use_suite "$suite"
	(cd "$dir" && progress "$dir.log" "download ${packages[*]}" \
		apt-get "${apt[@]}" download "${packages[@]}")
	for deb in "$dir"/*.deb; do
		progress "$dir.log" "unpack $(basename "$deb")" dpkg -x "$deb" "$dir/root"
	done
	rm -f "$dir"/*.deb
	(cd "$dir/root" && "$@")
	touch "$dir/complete"
}

# Print the packages of the image of kernel $1: package $2 and, if Debian has divided the image into
# several packages, the others.
image_packages() {
	echo "$2"
	use_suite "$(field "$1" 2)"
	apt-cache "${apt[@]}" depends --no-recommends --no-suggests "$2" 2>/dev/null |
		sed -n 's/^ *Depends: //p' | grep -F -- "-${2#linux-image-}" || true
}

# Prepare the unpacked image of release $1, the current folder, for modprobe and boot. Divided
# packages have all files in usr/lib/modules: link lib and boot/vmlinuz-RELEASE to them.
prepare_image() {
	local release=$1
	if [ ! -e "boot/vmlinuz-$release" ]; then
		ln -s usr/lib lib
		mkdir boot
		ln -s "../lib/modules/$release/vmlinuz" "boot/vmlinuz-$release"
	fi
	progress "$PWD.log" "depmod $release" depmod -b "$PWD" "$release"
}

fetch_image() {
	local name=$1 pkg=$2
	[ -e "$cache/$pkg/complete" ] ||
		fetch "$(field "$name" 2)" "$cache/$pkg" \
			"$(image_packages "$name" "$pkg" | xargs)" \
			prepare_image "${pkg#linux-image-}"
	echo "$pkg" >"$cache/$name.package"
}

headers_entry() { echo "$cache/linux-headers-$(vm_release "$1")"; }

# Print the package of the headers of kernel $1, and the linux-headers and linux-kbuild packages
# that it depends on.
headers_packages() {
	local pkg
	pkg=linux-headers-$(vm_release "$1")
	echo "$pkg"
	use_suite "$(field "$1" 2)"
	apt-cache "${apt[@]}" depends --no-recommends --no-suggests "$pkg" 2>/dev/null |
		sed -nE 's/^ *Depends: (linux-(headers|kbuild)-.*)$/\1/p'
}

# One Makefile of the headers includes another by its absolute path: adapt that path. All other
# paths that a build uses are relative.
relocate_headers() {
	sed -i "s|^include /usr/|include $PWD/usr/|" usr/src/linux-headers-*/Makefile
}

# The tools in the headers of a newer suite do not run here, as they need its libc. So the build
# folder is made from the source, with the config, the release and the symbols of the headers.
make_build_folder() {
	local name=$1 release=$2 headers=$3 dir=$4 src
	[ ! -e "$dir/complete" ] || return 0
	make_source "$name" || return
	src=$(source_entry "$name")
	headers=$headers/root/usr/src/linux-headers-$release
	rm -rf "$dir" && mkdir -p "$dir"
	cp "$headers/.config" "$headers/Module.symvers" "$dir"
	echo "${release#"$(make -s -C "$src" kernelversion)"}" >"$dir/localversion"
	progress "$dir.log" "configure $release" make -C "$src" O="$dir" olddefconfig
	progress "$dir.log" "build the tools for modules of $release" \
		make -C "$src" O="$dir" -j"$jobs" modules_prepare
	[ "$(cat "$dir/include/config/kernel.release")" = "$release" ] ||
		die "the source in $src is not that of $release: remove one of them from $cache"
	touch "$dir/complete"
}

build_entry() { echo "$cache/build-$(vm_release "$1")"; }

make_vm() {
	local name=$1 pkg headers
	pkg=$(vm_package "$name") || return
	vm_packages[$name]=$pkg
	with_lock "$name" fetch_image "$name" "$pkg"
	headers=$(headers_entry "$name")
	[ -e "$headers/complete" ] || with_lock "$name" \
		fetch "$(field "$name" 2)" "$headers" "$(headers_packages "$name" | xargs)" \
			relocate_headers
	[ "$(field "$name" 2)" = - ] || with_lock "$name" make_build_folder "$name" \
		"$(vm_release "$name")" "$headers" "$(build_entry "$name")"
}

### Places of a kernel that has been made

# A kernel that is built here has no modules.
root_of() {
	if built "$1"; then
		built_entry "$1"
	else
		echo "$cache/$(vm_package "$1")/root"
	fi
}

release_of() {
	if built "$1"; then
		cat "$(built_entry "$1")/include/config/kernel.release"
	else
		vm_release "$1"
	fi
}

image_of() {
	if ! built "$1"; then
		echo "$(root_of "$1")/boot/vmlinuz-$(vm_release "$1")"
	elif [[ $1 = uml* ]]; then
		echo "$(built_entry "$1")/linux"
	else
		echo "$(built_entry "$1")/arch/x86/boot/bzImage"
	fi
}

dir_of() {
	if built "$1"; then
		built_entry "$1"
	elif [ "$(field "$1" 2)" = - ]; then
		echo "$(headers_entry "$1")/root/usr/src/linux-headers-$(vm_release "$1")"
	else
		build_entry "$1"
	fi
}

### The initramfs

make_busybox() {
	[ -e "$cache/busybox/complete" ] ||
		with_lock busybox fetch - "$cache/busybox" busybox-static test -x bin/busybox
}

# The initramfs of a VM: busybox, vm-init.sh as /init, and the modules to mount the root of the
# host. Its name contains the release, and a hash of busybox and vm-init.sh.
initrd_vm() {
	local name=$1 root release init busybox hash out tmp module n=0
	init=$here/vm-init.sh
	make_busybox
	busybox=$cache/busybox/root/bin/busybox
	root=$(root_of "$name")
	release=$(release_of "$name")
	hash=$(cat "$init" "$busybox" | sha256sum | cut -c1-12)
	out=$cache/initrd-$release-$hash
	if [ ! -e "$out" ]; then
		tmp=$(mktemp -d "$cache/initrd.XXXXXX")
		mkdir -p "$tmp/tree"/{bin,dev,proc,sys,modules,host}
		cp "$busybox" "$tmp/tree/bin/"
		cp "$init" "$tmp/tree/init"
		# Copy modules in the order of their dependencies. Some or all may be built in.
		[ ! -d "$root/lib/modules" ] || for module in virtio_pci 9pnet_virtio 9p; do
			modprobe -d "$root" -S "$release" --show-depends "$module"
		done | sed -n 's/^insmod \([^ ]*\).*/\1/p' | awk '!seen[$0]++' |
		while read -r module; do
			n=$((n + 1))
			case $module in
			*.xz)	xz -dc "$module" ;;
			*.zst)	zstd -qdc "$module" ;;
			*)	cat "$module" ;;
			esac >"$tmp/tree/modules/$(printf '%02d' $n).ko"
		done
		(cd "$tmp/tree" && find . | cpio --quiet -o -H newc | gzip -1) >"$tmp/initrd"
		mv "$tmp/initrd" "$out"
		rm -rf "$tmp"
	fi
	echo "$out"
}

### The commands

# "grep -q" could exit before "list" has written all names. SIGPIPE would then end "list", and with
# pipefail the check would fail.
known() {
	list | grep -xF -- "$1" >/dev/null || die "no such kernel: '$1' (known: $(list | xargs))"
}

# The packages of suite $1 that still have to be downloaded for NAMEs, one per line.
wanted_packages() {
	local suite=$1 name
	shift
	[ "$suite" != - ] || [ -e "$cache/busybox/complete" ] || echo busybox-static
	for name; do
		known "$name"
		[ "$(field "$name" 2)" = "$suite" ] || continue
		if ! built "$name"; then
			[ -e "$cache/$(vm_package "$name")/complete" ] ||
				image_packages "$name" "$(vm_package "$name")"
			[ -e "$(headers_entry "$name")/complete" ] || headers_packages "$name"
		fi
		[ "$suite" = - ] || [ -e "$(source_entry "$name")/complete" ] ||
			source_package "$name"
	done
}

need() {
	local suite packages
	for suite in $(table | awk '{ print $2 }' | sort -u); do
		mapfile -t packages < <(wanted_packages "$suite" "$@" | sort -u)
		[ ${#packages[@]} -gt 0 ] || continue
		use_suite "$suite"
		apt-get "${apt[@]}" -qq --print-uris download "${packages[@]}" |
			sed -E "s/^'[^']*' ([^_ ]+)_[^ ]* ([0-9]+) .*/\1 \2/"
	done
}

make_one() {
	known "$1"
	make_busybox
	if built "$1"; then
		make_built "$1"
	else
		make_vm "$1"
	fi
}

main() {
	local command=${1:-help} name
	[ $# -eq 0 ] || shift
	case $command in
	list)	list ;;
	make)
		for name in "$@"; do make_one "$name"; done ;;
	dir)
		make_one "$1"
		dir_of "$1" ;;
	image)
		make_one "$1"
		image_of "$1" ;;
	initrd)
		make_one "$1"
		[[ $1 = uml* ]] || initrd_vm "$1" ;;
	root)
		make_one "$1"
		root_of "$1" ;;
	release)
		make_one "$1"
		release_of "$1" ;;
	source)
		known "${1:-uml}"
		make_source "${1:-uml}"
		source_entry "${1:-uml}" ;;
	busybox)
		make_busybox
		echo "$cache/busybox/root/bin/busybox" ;;
	need)	need "$@" ;;
	*)
		sed -n '3,/^$/{/^$/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
		[ "$command" = help ] || exit 2 ;;
	esac
}

# "exit" is on the line of "main", so that bash does not read this file again after a long build,
# during which the file may have been edited.
main "$@"; exit
