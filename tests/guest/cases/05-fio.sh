#!tests/guest/boot
# shellcheck shell=bash source=tests/guest/lib.sh
# timeout: 240
# fio's verification over several patterns.
connect
check sequential_1m verify a --size=32M --rw=write --bs=1M --iodepth=4
check random_4k_deep verify b --size=32M --rw=randwrite --bs=4k --iodepth=32
check random_odd_sizes verify c --size=32M --rw=randwrite --bsrange=512-256k --blockalign=512 --iodepth=16
check mix_with_fsync verify d --size=32M --rw=randrw --bs=8k --iodepth=8 --fsync=16
check mix_with_trim verify e --size=32M --rw=randtrimwrite --bs=64k --iodepth=4
finish
