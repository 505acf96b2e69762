#!tests/guest/boot
# shellcheck shell=bash source=tests/guest/lib.sh
# timeout: 120
# Discovery, login, two LUNs, reading and writing, logout, login again.
start_iscsid
check discovery_names_the_target prints "^$PORTAL,[0-9]+ $IQN\$" discover
check discovery_names_each_target_once prints '^3$' sh -c "iscsiadm -m discovery -t st -p $PORTAL | wc -l"
check login_succeeds login
check lun_0_appears disk 0
check lun_1_appears disk 1
use_disk
check session_is_logged_in logged_in
check inquiry_names_a_disk prints 'PDT=0' sg_inq "$(generic "$DISK")"
check device_id_has_naa prints 'NAA' sg_vpd -p di "$(generic "$DISK")"
check luns_differ_in_identity refused cmp \
    <(sg_vpd -p di "$(generic "$DISK")") <(sg_vpd -p di "$(generic "$(disk 1)")")
dd if=/dev/urandom of=/tmp/data bs=1M count=16 2>/dev/null
check writing_works dd if=/tmp/data of="$DISK" bs=1M oflag=direct
check reading_gives_what_was_written cmp -n 16777216 /tmp/data "$DISK"
check logout_succeeds logout
check disk_is_gone test ! -b "$DISK"
for round in 1 2 3; do
    check "login_again_$round" login
    check "logout_again_$round" logout
done
finish
