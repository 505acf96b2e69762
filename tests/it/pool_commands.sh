#!/usr/bin/env bash
# quintain pool and quintain volume, without a daemon and with one.
# shellcheck source=tests/it/lib.sh
. "$(dirname "$0")/lib.sh"

q() { timeout 60 "$program" "$@"; }

# A sparse image of 40 MiB and a bit, with data at both ends and in between.
image() {
    truncate -s 41943552 "$1"
    dd if=/dev/urandom of="$1" bs=64k count=40 conv=notrunc status=none
    dd if="$program" of="$1" bs=4096 seek=3001 count=500 conv=notrunc status=none
    dd if=/dev/urandom of="$1" bs=512 seek=81920 count=1 conv=notrunc status=none
}

made() {
    q pool create "$dir/pool" --size 128M
}

# The command fails, and says the words on stderr.
refused() {
    local words=$1
    shift
    fails "$@" 2>"$dir/err" >"$dir/out"
    grep -qF -- "$words" "$dir/err" || { cat "$dir/err"; return 1; }
}

volume_of() { q volume info "$1" --json; }

test_pool_create_makes_a_thin_file() {
    made
    [ "$(q pool status "$dir/pool" --json | jq '.pools[0].size_bytes')" = 134217728 ]
    [ "$(du -k "$dir/pool" | cut -f1)" -lt 65536 ]
    q pool check "$dir/pool" | has ': 0 faults'
}

test_pool_create_refuses_what_holds_something() {
    made
    refused 'holds something' q pool create "$dir/pool" --size 128M
    refused '--size' q pool create "$dir/none"
    [ ! -e "$dir/none" ]
    q pool create "$dir/pool" --force
}

test_pool_create_takes_an_empty_file_whole() {
    truncate -s 32M "$dir/empty"
    q pool create "$dir/empty"
    [ "$(q pool status "$dir/empty" --json | jq '.pools[0].size_bytes')" = 33554432 ]
}

test_volume_import_and_export_give_the_image_back() {
    made
    image "$dir/image"
    q volume import "$dir/pool/disk" "$dir/image" --compression gzip-1 --record-size 64K
    [ "$(volume_of "$dir/pool/disk" | jq -r .compression)" = gzip-1 ]
    [ "$(volume_of "$dir/pool/disk" | jq .mapped_bytes)" -lt 8000000 ] # its holes are none of it
    q volume export "$dir/pool/disk" "$dir/copy"
    cmp "$dir/image" "$dir/copy"
    [ "$(du -k "$dir/copy" | cut -f1)" -lt 8000 ]
    q pool check "$dir/pool" --deep | has ': 0 faults'
}

test_volume_import_replaces_a_volume_only_when_told() {
    made
    image "$dir/image"
    dd if=/dev/urandom of="$dir/other" bs=1M count=41 status=none
    q volume import "$dir/pool/disk" "$dir/other"
    refused '--overwrite' q volume import "$dir/pool/disk" "$dir/image"
    q volume import "$dir/pool/disk" "$dir/image" --overwrite
    q volume export "$dir/pool/disk" "$dir/copy"
    cmp -n 41943552 "$dir/image" "$dir/copy"
    [ "$(tail -c +41943553 "$dir/copy" | tr -d '\0' | wc -c)" = 0 ]
}

test_volume_import_goes_on_where_it_ended() {
    made
    image "$dir/image"
    q volume create "$dir/pool/disk" --size 16M
    refused 'grow' q volume import "$dir/pool/disk" "$dir/image" --overwrite
    q pool create "$dir/small" --size 16M
    dd if=/dev/urandom of="$dir/large" bs=1M count=24 status=none
    refused 'the pool is full' q volume import "$dir/small/disk" "$dir/large"
    q pool grow "$dir/small" 64M
    q volume import "$dir/small/disk" "$dir/large" --resume "$(grep -oE -- '--resume [0-9]+' "$dir/err" | cut -d' ' -f2)"
    q volume export "$dir/small/disk" "$dir/copy"
    cmp "$dir/large" "$dir/copy"
}

test_volume_export_replaces_a_file_only_when_told() {
    made
    q volume create "$dir/pool/disk" --size 1M
    echo precious >"$dir/copy"
    refused 'exists' q volume export "$dir/pool/disk" "$dir/copy"
    grep -qx precious "$dir/copy"
    refused 'the pool itself' q volume export "$dir/pool/disk" "$dir/pool" --overwrite
    q volume export "$dir/pool/disk" "$dir/copy" --overwrite
    [ "$(stat -c %s "$dir/copy")" = 1048576 ]
}

test_volumes_are_made_changed_and_deleted() {
    made
    q volume create "$dir/pool/a" --size 10M --block-size 4096 --checksum sha256
    refused 'already' q volume create "$dir/pool/a" --size 10M
    q volume set "$dir/pool/a" --compression zstd-3 --record-size 64K
    q volume grow "$dir/pool/a" 20M
    refused 'shrink' q volume grow "$dir/pool/a" 10M
    volume_of "$dir/pool/a" >"$dir/json"
    [ "$(jq -r '"\(.size_bytes) \(.block_size) \(.record_size) \(.compression) \(.checksum)"' "$dir/json")" = \
        "20971520 4096 65536 zstd-3 sha256" ]
    q volume list "$dir/pool" | has -E '^  a +20 MiB'
    q volume delete "$dir/pool/a"
    [ "$(q volume list "$dir/pool" --json | jq '.volumes | length')" = 0 ]
    refused 'no volume' q volume delete "$dir/pool/a"
}

test_pool_check_finds_what_was_changed() {
    made
    dd if=/dev/urandom of="$dir/image" bs=1M count=8 status=none
    q volume import "$dir/pool/disk" "$dir/image" --compression none
    # Somewhere in the data: each segment has 256 KiB.
    printf 'x' | dd of="$dir/pool" bs=1 seek=$((3 * 1048576 + 70000)) conv=notrunc status=none
    local status=0
    q pool check "$dir/pool" --deep >"$dir/out" || status=$?
    [ $status = 1 ]
    has -E ': [1-9][0-9]* faults?;' "$dir/out"
    refused 'damaged' q volume export "$dir/pool/disk" "$dir/copy"
    [ ! -e "$dir/copy" ]
}

# ---- while a daemon has it ----

served() {
    {
        printf 'pool tank {\n\tpath "%s/tank"\n\tsize 64M\n\tcache-memory 32M\n}\n' "$dir"
        printf 'target %s {\n\tauth-group no-authentication\n\tportal-group pg\n' "$iqn"
        printf '\tlun 0 { volume tank/disk size 8M }\n}\n'
    } | conf
    start
    within 10 lun_is_ready
}

lun_is_ready() { [ "$(status | jq -r '.luns[0].state')" = ready ]; }

pool_size() { q pool status tank -c "$dir/conf" --json | jq '.pools[0].size_bytes'; }

test_pool_of_a_daemon_is_asked_for_and_grown() {
    served
    [ "$(q pool status -c "$dir/conf" --json | jq -r '.pools[0].daemon')" = true ]
    [ "$(pool_size)" = 67108864 ]
    q pool grow tank 128M -c "$dir/conf"
    [ "$(pool_size)" = 134217728 ]
    q pool status "$dir/tank" -c "$dir/conf" | has 'served'
    io 0 'write -P 7 0 64k' 'read -P 7 0 64k'
    stop
    [ "$(q pool status tank -c "$dir/conf" --json | jq -r '.pools[0].daemon')" = false ]
    q pool check tank -c "$dir/conf" | has ': 0 faults'
}

test_volumes_of_a_daemon_are_made_changed_and_deleted() {
    served
    q volume create tank/more --size 10M -c "$dir/conf"
    q volume grow tank/more 20M -c "$dir/conf"
    q volume set tank/more --compression gzip -c "$dir/conf"
    [ "$(q volume info tank/more --json -c "$dir/conf" | jq -r '"\(.size_bytes) \(.compression)"')" = "20971520 gzip-6" ]
    [ "$(q volume list tank --json -c "$dir/conf" | jq -r '[.volumes[].name] | join(" ")')" = "disk more" ]
    q volume delete tank/more -c "$dir/conf"
    refused 'no volume' q volume info tank/more -c "$dir/conf"
    stop
}

test_volumes_that_are_luns_are_as_the_configuration_says() {
    served
    refused 'take it out there' q volume delete tank/disk -c "$dir/conf"
    refused 'raise its size there' q volume grow "$dir/tank/disk" 16M --socket "$dir/state/control.sock"
    refused 'change it there' q volume set tank/disk --compression lzjb -c "$dir/conf"
    stop
    refused 'take it out there' q volume delete tank/disk -c "$dir/conf"
}

test_pool_of_a_daemon_is_not_checked_or_copied() {
    served
    refused 'served by the daemon' q pool check tank -c "$dir/conf"
    refused 'served by the daemon' q volume export tank/disk "$dir/copy" -c "$dir/conf"
    [ ! -e "$dir/copy" ]
    # Nor by one who does not know of it.
    refused 'is in use' q volume create "$dir/tank/x" --size 1M --socket "$dir/none.sock"
    stop
}

run_tests
