#!/usr/bin/env bash
# Stores that are missing, lost, full, or somebody else's.
# shellcheck source=tests/it/lib.sh
. "$(dirname "$0")/lib.sh"

disk() {
    target_conf <<EOF
	lun 0 { path "$1" ${2:-} }
	lun 1 { path "$dir/healthy" size 1M }
EOF
}

lun_state() { status | jq -r ".luns[] | select(.path == \"$1\") | .state"; }
state_is() { [ "$(lun_state "$1")" = "$2" ]; }

test_missing_path_gets_ready_later() {
    disk "$dir/late"
    quintain check "$dir/conf" 2>&1 | has warning
    start
    grep -q 'NOT READY' "$dir/log"
    state_is "$dir/late" not-ready
    fails io 0 'read 0 4k'
    [ "$(size_of 1)" = 1048576 ]
    truncate -s 2M "$dir/late"
    within 8 state_is "$dir/late" ready
    [ "$(size_of 0)" = 2097152 ]
    stop
}

test_missing_directory_gets_its_own_identity_later() {
    mkdir "$dir/mnt"
    disk "$dir/mnt/disk" 'size 1M'
    start
    identity_of 0 >"$dir/before"
    stop
    mv "$dir/mnt" "$dir/unmounted"
    start
    state_is "$dir/mnt/disk" not-ready
    mv "$dir/unmounted" "$dir/mnt"
    within 8 state_is "$dir/mnt/disk" ready
    identity_of 0 >"$dir/after"
    cmp "$dir/before" "$dir/after"
    stop
}

test_lost_file_is_not_begun_anew() {
    disk "$dir/disk" 'size 1M'
    start
    stop
    rm "$dir/disk"
    start
    state_is "$dir/disk" not-ready
    [ ! -e "$dir/disk" ]
    local file
    file=$(grep -o "remove $dir/state/luns/[0-9a-f]*.json" "$dir/log" | head -1 | cut -d' ' -f2)
    rm "$file"
    within 8 state_is "$dir/disk" ready
    stop
}

test_damaged_state_is_left_alone() {
    disk "$dir/disk" 'size 1M'
    start
    stop
    local file
    file=$(grep -l '/disk"' "$dir"/state/luns/*)
    echo '{ "version": 1, ' >"$file"
    start
    state_is "$dir/disk" not-ready
    grep -q 'is damaged' "$dir/log"
    [ "$(cat "$file")" = '{ "version": 1, ' ]
    [ "$(size_of 1)" = 1048576 ]
    stop
}

test_two_daemons_do_not_share_a_file() {
    disk "$dir/disk" 'size 1M'
    start
    sed "s/:$port/:$((port + 1))/; s,/state\",/state2\"," "$dir/conf" >"$dir/conf2"
    "$program" serve -c "$dir/conf2" >"$dir/log2" 2>&1 &
    other=$!
    await_ready "$other" "$dir/log2"
    grep -q "LUN .*NOT READY.*$dir/disk" "$dir/log2"
    fails timeout 10 iscsi-readcapacity16 -s "iscsi://127.0.0.1:$((port + 1))/$iqn/0"
    io 0 'write -P 1 0 4k'
    stop
    kill -TERM "$other"
    ended "$other"
    other=''
}

test_full_disk_fails_the_write_and_keeps_the_session() {
    need_root
    mkdir "$dir/small"
    mount -t tmpfs -o size=1M none "$dir/small" || skip "no tmpfs may be mounted"
    mounted=$dir/small
    disk "$dir/small/disk" 'size 8M'
    start
    timeout 30 qemu-io -f raw -c 'write -P 1 0 64k' -c 'write -P 2 0 4M' -c 'read -P 1 0 64k' \
        -c 'write -P 3 0 4k' "$(url 0)" >"$dir/out" 2>&1 || :
    grep -qi 'no space' "$dir/out"
    io 0 'read 0 64k'
    io 1 'write -P 1 0 4k'
    stop
}

test_ramdisk_keeps_identity_and_loses_data() {
    conf <<EOF
lun ram { backend ramdisk size 1M }
target $iqn { auth-group no-authentication portal-group pg lun 0 ram }
EOF
    start
    identity_of 0 >"$dir/before"
    io 0 'write -P 7 0 4k' 'read -P 7 0 4k'
    stop
    start
    identity_of 0 >"$dir/after"
    cmp "$dir/before" "$dir/after"
    io 0 'read -P 0 0 4k'
    stop
}

run_tests
