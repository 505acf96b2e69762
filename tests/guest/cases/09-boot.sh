#!/usr/bin/env bash
# timeout: 120
# An image copied in with qemu-img boots from the LUN: by iPXE's initiator and
# by the one in qemu.  Runs on this machine; the "image" is a boot sector that
# prints a line on the serial port and switches the machine off.
set -euo pipefail
guest=$(dirname "$(realpath "$0")")/..
export IQN=${IQN:-iqn.2026-11.org.quintain:boot} TEST_PORT=${TEST_PORT:-23990}
dir=$(mktemp -d)
export TEST_TMP=${TEST_TMP:-$dir}
target=${GUEST_TARGET:-$guest/target} lun=${LUN:-0}
failed=0

skip() {
    echo "SKIP 09-boot: $1"
    exit 0
}
for program in qemu-system-x86_64 qemu-img; do
    command -v $program >/dev/null || skip "no $program"
done
compgen -G '/usr/lib/*/qemu/block-iscsi.so' >/dev/null || skip "qemu without iSCSI (package qemu-block-extra)"
trap '"$target" kill 2>/dev/null || :; rm -rf "$dir"' EXIT
trap 'exit 143' INT TERM
"$target" start

# cld; ds = 0; si = text; dx = COM1; each byte out; then the debug exit port.
printf '\xfc\x31\xc0\x8e\xd8\xbe\x19\x7c\xba\xf8\x03\xac\x84\xc0\x74\x03\xee\xeb\xf8\xb0\x31\xe6\xf4\xfa\xf4' >"$dir/image"
printf 'BOOTED FROM THE LUN\r\n' >>"$dir/image"
truncate -s 510 "$dir/image"
printf '\x55\xaa' >>"$dir/image"
truncate -s 1M "$dir/image"

# boots NAME QEMU-ARGUMENT...
boots() {
    local name=$1 output
    shift
    output=$(timeout 50 qemu-system-x86_64 -M pc -accel tcg -m 256 -nodefaults -display none -serial stdio \
        -no-reboot -device isa-debug-exit,iobase=0xf4,iosize=4 "$@" 2>&1 </dev/null) || :
    if grep -q 'BOOTED FROM THE LUN' <<<"$output"; then
        echo "ok $name"
    else
        tail -n 20 <<<"$output" | sed 's/^/    /'
        echo "FAIL $name"
        failed=1
    fi
}

url=iscsi://127.0.0.1:$TEST_PORT/$IQN/$lun
if qemu-img convert -n -f raw -O raw "$dir/image" "$url"; then
    echo "ok qemu_img_copies_in"
else
    echo "FAIL qemu_img_copies_in"
    failed=1
fi
boots qemu_boots_from_the_lun -drive "file=$url,format=raw,if=virtio"

if [ -e /usr/lib/ipxe/ipxe.lkrn ]; then
    cat >"$dir/script" <<IPXE
#!ipxe
dhcp
set initiator-iqn iqn.2026-11.org.quintain:ipxe
sanboot iscsi:10.0.2.2::$TEST_PORT:$(printf %x "$lun"):$IQN
IPXE
    boots ipxe_boots_from_the_lun -kernel /usr/lib/ipxe/ipxe.lkrn -initrd "$dir/script" \
        -netdev user,id=net -device virtio-net-pci,netdev=net
else
    echo "SKIP ipxe_boots_from_the_lun: no /usr/lib/ipxe/ipxe.lkrn (package ipxe)"
fi
exit $failed
