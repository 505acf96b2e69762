#!tests/guest/boot
# shellcheck shell=bash source=tests/guest/lib.sh
# timeout: 240
# Header and data digests, each combination, under verified data.
start_iscsid
check discovery_works discover
negotiated() { iscsiadm -m session -P 2 | tr -d '\n'; }
for header in None CRC32C; do
    for data in None CRC32C; do
        setting 'node.conn[0].iscsi.HeaderDigest' $header
        setting 'node.conn[0].iscsi.DataDigest' $data
        check "login_header_${header}_data_${data}" login
        check "negotiated_header_${header}_data_${data}" \
            prints "HeaderDigest: $header.*DataDigest: $data" negotiated
        use_disk
        check "data_is_right_header_${header}_data_${data}" verify digest \
            --rw=randwrite --bsrange=4k-256k --size=16M --iodepth=8
        check "logout_header_${header}_data_${data}" logout
    done
done
finish
