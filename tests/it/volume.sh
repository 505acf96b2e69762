#!/usr/bin/env bash
# Pools and volumes, served by the daemon.
# timeout: 300
# shellcheck source=tests/it/lib.sh
. "$(dirname "$0")/lib.sh"

# pool_conf "POOL WORDS" [REACTORS] <<LUNs: one pool "tank", one target.
pool_conf() {
    local words=$1
    target_conf
    sed -i "s/^reactors 1/reactors ${2:-1}/" "$dir/conf"
    printf 'pool tank { path "%s/tank" %s }\n' "$dir" "$words" >>"$dir/conf"
}

three_volumes() {
    pool_conf "${1:-size 256M cache-memory 48M}" "${2:-1}" <<'EOF'
	lun 0 { volume tank/plain size 32M }
	lun 1 { volume tank/slow size 32M compression gzip-6 record-size 64K }
	lun 2 { volume tank/small size 32M compression lzjb record-size 4K checksum sha256 }
EOF
}

lun_state() { status | jq -r ".luns[$1].state"; }
lun_problem() { status | jq -r ".luns[$1].problem"; }
state_is() { [ "$(lun_state "$1")" = "$2" ]; }

# What each of the volumes holds afterwards, in pieces that are no whole records.
fill() {
    local lun
    for lun in 0 1 2; do
        io $lun "write -P 0x1$lun 0 1M" "write -P 0x2$lun 1052672 8k" \
            "write -P 0x3$lun 512 1024" "write -z 65536 65536" 'flush'
    done
}

holds() {
    local lun
    for lun in 0 1 2; do
        io $lun "read -P 0x1$lun 0 512" "read -P 0x3$lun 512 1024" "read -P 0x1$lun 1536 64000" \
            'read -P 0 64k 64k' "read -P 0x1$lun 128k 896k" "read -P 0x2$lun 1052672 8k" \
            'read -P 0 1060864 1M'
    done
}

test_volumes_hold_what_is_written() {
    three_volumes
    start
    [ "$(size_of 0)" = 33554432 ]
    fill
    holds
    stop
    start
    holds
    stop
}

test_volumes_are_served_by_all_reactors() {
    three_volumes 'size 256M cache-memory 48M' 2
    start
    hold a 0
    hold b 0
    [ "$(status | jq '[.sessions[].reactor] | unique | length')" = 2 ]
    say a 'write -P 0x77 0 1M'
    say b 'read -P 0x77 0 1M'
    say b 'write -P 0x78 0 64k'
    say a 'read -P 0x78 0 64k'
    fails grep -i fail "$dir/a.out" "$dir/b.out"
    let_go a
    let_go b
    stop
}

test_flushed_data_outlives_a_crash() {
    three_volumes
    start
    fill
    crash
    start
    holds
    io 0 'write -P 0x55 4M 1M' 'flush'
    crash
    start
    holds
    io 0 'read -P 0x55 4M 1M'
    stop
}

test_write_through_outlives_a_crash() {
    pool_conf 'size 64M cache-memory 32M' <<'EOF'
	lun 0 { volume tank/a size 16M cache write-through }
EOF
    start
    hold a 0
    say a 'write -P 0x21 0 300k'
    crash
    start
    io 0 'read -P 0x21 0 300k'
    stop
}

test_volume_keeps_its_identity() {
    three_volumes
    start
    identity_of 1 >"$dir/before"
    identity_of 0 >"$dir/other"
    stop
    rm -r "$dir/state/luns"
    sed -i 's/lun 1 /lun 9 /' "$dir/conf"
    start
    identity_of 9 >"$dir/after"
    cmp "$dir/before" "$dir/after"
    fails cmp -s "$dir/before" "$dir/other"
    stop
}

size_is() { [ "$(size_of "$1")" = "$2" ]; }
pool_file_is() { [ "$(stat -c %s "$dir/tank")" = "$1" ]; }

test_raised_sizes_grow_by_reload() {
    three_volumes 'size 64M cache-memory 32M'
    start
    fill
    sed -i 's/plain size 32M/plain size 48M/; s/size 64M/size 128M/' "$dir/conf"
    quintain reload -c "$dir/conf"
    within 5 size_is 0 50331648
    within 5 pool_file_is 134217728
    io 0 'write -P 0x99 40M 1M' 'read -P 0x99 40M 1M'
    holds
    stop
    start
    io 0 'read -P 0x99 40M 1M'
    stop
}

test_smaller_size_and_other_blocks_are_refused() {
    three_volumes
    start
    fill
    stop
    sed -i 's/plain size 32M/plain size 16M/; s/small size 32M/small size 32M blocksize 4096/' \
        "$dir/conf"
    start
    lun_problem 0 | has 'cannot be made smaller: say size 33554432'
    lun_problem 2 | has 'say blocksize 512'
    state_is 1 ready
    stop
}

test_status_shows_pools() {
    three_volumes
    start
    within 5 pool_is 'tank open 3 null 268435456'
    [ "$(status | jq -r '.luns[0] | "\(.volume) \(.path)"')" = 'tank/plain null' ]
    stop
}

pool_is() { [ "$(status | jq -r '.pools[0] | "\(.name) \(.state) \(.volumes) \(.problem) \(.size_bytes)"')" = "$1" ]; }

test_missing_pool_takes_down_its_luns_only() {
    pool_conf 'size 64M cache-memory 32M' <<EOF
	lun 0 { volume tank/a size 16M }
	lun 1 { path "$dir/file" size 1M }
EOF
    start
    io 0 'write -P 0x42 0 64k' 'flush'
    stop
    mv "$dir/tank" "$dir/elsewhere"
    start
    state_is 0 not-ready
    state_is 1 ready
    lun_problem 0 | has 'missing but has been served before'
    fails io 0 'read 0 4k'
    io 1 'write 0 64k'
    [ ! -e "$dir/tank" ]
    mv "$dir/elsewhere" "$dir/tank"
    within 8 state_is 0 ready
    io 0 'read -P 0x42 0 64k'
    stop
}

test_damaged_pool_takes_down_its_luns_only() {
    pool_conf 'size 64M cache-memory 32M' <<EOF
	lun 0 { volume tank/a size 16M }
	lun 1 { path "$dir/file" size 1M }
EOF
    head -c 64M /dev/urandom >"$dir/tank"
    cp "$dir/tank" "$dir/before"
    start
    state_is 0 not-ready
    state_is 1 ready
    cmp "$dir/tank" "$dir/before"
    stop
}

test_pool_is_not_shared_by_daemons() {
    pool_conf 'size 64M cache-memory 32M' <<'EOF'
	lun 0 { volume tank/a size 16M }
EOF
    start
    sed "s/:$port/:$((port + 1))/; s,/state\",/state2\"," "$dir/conf" >"$dir/conf2"
    chmod 600 "$dir/conf2"
    "$program" serve -c "$dir/conf2" >"$dir/log2" 2>&1 &
    other=$!
    await_ready "$other" "$dir/log2"
    grep -q 'NOT READY' "$dir/log2"
    io 0 'write -P 1 0 64k'
    kill -TERM "$other"
    ended "$other"
    other=''
    stop
}

test_volume_taken_out_is_not_deleted() {
    three_volumes
    start
    fill
    cp "$dir/conf" "$dir/all"
    sed -i '/lun 1 /d' "$dir/conf"
    quintain reload -c "$dir/conf"
    fails io 1 'read 0 4k'
    cat "$dir/all" >"$dir/conf"
    quintain reload -c "$dir/conf"
    within 5 state_is 1 ready
    holds
    stop
}

test_pool_taken_out_is_closed() {
    pool_conf 'size 64M cache-memory 32M' <<EOF
	lun 0 { volume tank/a size 16M }
	lun 1 { path "$dir/file" size 1M }
EOF
    start
    io 0 'write -P 7 0 1M'
    cp "$dir/conf" "$dir/all"
    sed -i '/tank/d' "$dir/conf"
    quintain reload -c "$dir/conf"
    within 5 grep -q 'pool tank: closed' "$dir/log"
    cat "$dir/all" >"$dir/conf"
    quintain reload -c "$dir/conf"
    within 8 state_is 0 ready
    io 0 'read -P 7 0 1M'
    stop
}

test_settings_change_by_reload() {
    three_volumes
    start
    hold a 0
    sed -i 's/plain size 32M/plain size 32M compression zstd-3 record-size 128K/' "$dir/conf"
    quintain reload -c "$dir/conf"
    say a 'write -P 0x31 0 1M'
    say a 'read -P 0x31 0 1M'
    fails grep -i fail "$dir/a.out"
    let_go a
    stop
    start
    io 0 'read -P 0x31 0 1M'
    stop
}

# The words of qemu-io for a full pool: 07/27/07 is ENOSPC to it.
test_full_pool_refuses_writes_and_serves_on() {
    pool_conf 'size 32M cache-memory 32M' <<'EOF'
	lun 0 { volume tank/a size 256M compression none }
EOF
    start
    io 0 'write -P 0x11 0 1M' 'flush'
    local i out=''
    for ((i = 1; i < 40; i++)); do
        out=$(qemu-io -f raw -c "write -P $i ${i}M 1M" "$(url 0)" 2>&1) || :
        ! grep -q 'No space left' <<<"$out" || break
    done
    echo "$i: $out"
    [ "$i" -lt 33 ]
    [ "$i" -gt 8 ]
    io 0 'read -P 0x11 0 1M' 'read -P 5 5M 1M'
    io 0 'discard 5M 8M' 'flush' 'read -P 0 5M 8M'
    within 10 io 0 'write -P 0x44 5M 2M'
    io 0 'read -P 0x44 5M 2M' 'read -P 0x11 0 1M' 'flush'
    crash
    start
    io 0 'read -P 0x44 5M 2M' 'read -P 0x11 0 1M'
    stop
}

test_images_are_copied_and_compare() {
    pool_conf 'size 256M cache-memory 48M' <<'EOF'
	lun 0 { volume tank/a size 32M compression lz4 }
	lun 1 { volume tank/b size 32M blocksize 4096 compression gzip-1 record-size 128K }
EOF
    { head -c 8M /dev/urandom; seq 1000000; head -c 1M /dev/zero; } >"$dir/image"
    truncate -s 32M "$dir/image"
    start
    local lun
    for lun in 0 1; do
        timeout 60 qemu-img convert -n -f raw -O raw "$dir/image" "$(url $lun)"
        timeout 60 qemu-img compare -f raw -F raw "$dir/image" "$(url $lun)"
    done
    stop
    start
    for lun in 0 1; do
        timeout 60 qemu-img compare -f raw -F raw "$dir/image" "$(url $lun)"
    done
    stop
    timeout 60 "$program" pool check -c "$dir/conf" tank
}

# Generation G writes 8 of 64 slots, each across four records of 16K, and flushes;
# the read behind it tells that the flush has been answered.
generations() {
    local g slot
    for ((g = $1; g < $1 + 400; g++)); do
        for ((slot = g % 8 * 8; slot < g % 8 * 8 + 8; slot++)); do
            echo "write -P $((g % 250 + 1)) $((slot * 65536 + 7 * 512)) 48k"
        done
        echo flush
        echo 'read 30M 512'
    done
}

# slots_hold LUN FLUSHED: generation FLUSHED + 1 may be there, each write whole.
slots_hold() {
    local lun=$1 flushed=$2 slot g at
    local commands=() maybe=()
    for ((slot = 0; slot < 64; slot++)); do
        g=$((flushed - (flushed - slot / 8 + 8) % 8))
        at="$((slot * 65536 + 7 * 512)) 48k"
        if [ $(((flushed + 1) % 8)) = $((slot / 8)) ]; then
            maybe+=("read -P $(((flushed + 1) % 250 + 1)) $at"
                "read -P $([ $g -gt 0 ] && echo $((g % 250 + 1)) || echo 0) $at")
        else
            commands+=("read -P $([ $g -gt 0 ] && echo $((g % 250 + 1)) || echo 0) $at")
        fi
    done
    io "$lun" "${commands[@]}"
    for ((slot = 0; slot < ${#maybe[@]}; slot += 2)); do
        io "$lun" "${maybe[slot]}" >/dev/null || io "$lun" "${maybe[slot + 1]}"
    done
}

# ROUNDS=100 for a long run.
test_flushed_data_outlives_crashes_under_load() {
    local round lun log n flushed=(0 0 0) loads=() all=0
    three_volumes 'size 256M cache-memory 48M' 2
    for ((round = 0; round < ${ROUNDS:-10}; round++)); do
        start
        loads=()
        for lun in 0 1 2; do
            slots_hold $lun "${flushed[lun]}"
            generations $((flushed[lun] + 1)) >"$dir/load$lun.in"
        done
        for lun in 0 1 2; do
            # Without timeout(1): killed, it would leave a client that goes on.
            qemu-io -f raw "$(url $lun)" <"$dir/load$lun.in" >"$dir/load$lun.out" 2>&1 &
            loads+=($!)
        done
        sleep "0.$((RANDOM % 7 + 2))"
        crash
        kill -KILL "${loads[@]}" 2>/dev/null || :
        wait "${loads[@]}" 2>/dev/null || :
        for lun in 0 1 2; do
            log=$dir/load$lun.out
            fails grep -i 'fail' "$log"
            n=$(grep -c 'read 512/512' "$log" || :)
            flushed[lun]=$((flushed[lun] + n))
            all=$((all + n))
        done
    done
    echo "$all generations were flushed"
    [ "$all" -gt "$round" ]
    timeout 60 "$program" pool check -c "$dir/conf" tank
    start
    for lun in 0 1 2; do slots_hold $lun "${flushed[lun]}"; done
    stop
}

free_is_above() { [ "$(status | jq '.pools[0].available_bytes')" -gt "$1" ]; }
free_is_below() { [ "$(status | jq '.pools[0].available_bytes')" -lt "$1" ]; }

test_discard_gives_space_back_to_the_pool() {
    pool_conf 'size 128M cache-memory 32M' <<'EOF'
	lun 0 { volume tank/a size 64M compression none }
EOF
    start
    local before
    before=$(status | jq '.pools[0].available_bytes')
    io 0 'write -P 0x61 0 48M' 'flush'
    within 10 free_is_below $((before - 40 * 1048576))
    io 0 'discard 0 48M' 'flush'
    within 20 free_is_above $((before - 8 * 1048576))
    io 0 'read -P 0 0 48M'
    stop
}

test_corrupt_byte_fails_its_record_only() {
    pool_conf 'size 64M cache-memory 32M' <<'EOF'
	lun 0 { volume tank/a size 16M compression none record-size 16K }
EOF
    head -c 1M /dev/urandom >"$dir/random"
    start
    io 0 "write -s $dir/random 1M 1M" 'write -P 0x11 0 1M' 'write -P 0x22 2M 1M' 'flush'
    stop
    # A piece of the record at 1M + 512K, where it lies in the pool.
    local piece at byte
    piece=$(od -An -v -tx1 -j $((524288 + 4096)) -N 16 "$dir/random" | sed 's/ /\\x/g')
    at=$(LC_ALL=C grep -obUaP -m 1 "$piece" "$dir/tank" | head -n 1 | cut -d: -f1)
    byte=$(od -An -tx1 -j "$at" -N 1 "$dir/tank" | tr -d ' ')
    printf '%b' "\\x$(printf %02x $((0x$byte ^ 1)))" |
        dd of="$dir/tank" bs=1 seek="$at" conv=notrunc status=none
    start
    state_is 0 ready
    fails io 0 'read 1576960 512'
    fails io 0 'read 1M 1M'
    io 0 'read -P 0x11 0 1M' 'read -P 0x22 2M 1M' 'read 1M 512k' "read $((1572864 + 16384)) 507904"
    io 0 'write -P 0x33 1572864 16k' 'read -P 0x33 1572864 16k' 'read 1M 1M'
    stop
}

run_tests
