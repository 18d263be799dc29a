#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash disable=SC2093
#
# /init in the initramfs of a VM: mounts the root file system of the host over 9p and starts
# guest-init.sh there. With afr_probe=1 this script only prints a line and powers off: the line
# tells "run" that KVM works.
export PATH=/bin
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
if [ -n "${afr_probe:-}" ]; then
	echo "lab: probe ok"
	poweroff -f
fi
for m in /modules/*.ko; do
	insmod "$m" 2>/dev/null
done
mount -t 9p -o trans=virtio,version=9p2000.L,cache=loose,msize=262144,ro root /host ||
	echo "lab: cannot mount the host's root"
umount /dev /sys /proc
exec switch_root /host "${afr_init:?}"
echo "lab: cannot start guest-init.sh"
poweroff -f
