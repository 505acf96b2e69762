#!tests/guest/boot
# shellcheck shell=bash source=tests/guest/lib.sh
# timeout: 120
# LUN 1 grows while it is in use: a new size in the file, SIGHUP, a rescan.
connect
grown=$(disk 1) || die "no LUN 1"
size() { blockdev --getsize64 "$grown"; }
old=$(size)
new=$((old / 1048576 + 256))
verify during --size=64M --rw=randwrite --bs=16k --iodepth=4 --rate=8m >/tmp/fio.log 2>&1 &
fio=$!
check target_reloads host resize $new
sleep 1
check rescan_works iscsiadm -m session -R
grown_to() { [ "$(size)" = $((new * 1048576)) ]; }
check new_size_is_seen within 10 grown_to
check new_end_is_writable dd if=/dev/zero of="$grown" bs=1M seek=$((new - 1)) count=1 oflag=direct
wait $fio
check io_on_the_other_lun_is_untouched test $? = 0
finish
