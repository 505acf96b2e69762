#!/usr/bin/env bash
# A file system that hangs takes the LUNs on it, and nothing else.  hang.c plays
# it: calls about files below $dir/slow/ do not end while $dir/hang exists.
# timeout: 240
# shellcheck source=tests/it/lib.sh
. "$(dirname "$0")/lib.sh"

# Runs a command, or start, with the file system that may hang.
hanging() {
    LD_PRELOAD=$base/hang.so HANG_BELOW=$dir/slow/ HANG_WHILE=$dir/hang HANG_LOG=$dir/hung \
        ASAN_OPTIONS=${ASAN_OPTIONS:-}:verify_asan_link_order=0 "$@"
}

# LUN 0 on the file system that may hang, with these words, and LUN 1 not.
disks() {
    mkdir -p "$dir/slow"
    target_conf <<EOC
	lun 0 { path "$dir/slow/disk" $* }
	lun 1 { path "$dir/healthy" size 1M }
EOC
}

healthy_only() {
    mkdir -p "$dir/slow"
    target_conf <<<"lun 1 { path \"$dir/healthy\" size 1M }"
}

# The calls that hang or hung.
calls() { [ ! -e "$dir/hung" ] || cat "$dir/hung"; }
calls_are() { [ "$(calls | wc -l)" = "$1" ] || { calls; return 1; }; }

slow() { status | jq -r ".luns[] | select(.path == \"$dir/slow/disk\") | .$1"; }
slow_is() { [ "$(slow state)" = "$1" ]; }
slow_waits() { [ "$(slow problem)" = "its store does not open (waiting for $dir/slow/disk)" ]; }

# Runs a command, which must not take longer.
in_time() {
    local begin=$EPOCHREALTIME limit=$1
    shift
    "$@"
    echo "$* took $(bc <<<"$EPOCHREALTIME - $begin") s"
    [ "$(bc <<<"$EPOCHREALTIME - $begin < $limit")" = 1 ]
}

# What must go on while LUN 0 hangs.
others_are_served() {
    in_time 1 slow_is not-ready
    io 1 'write -P 1 0 4k' 'read -P 1 0 4k'
    fails io 0 'read 0 4k'
}

reload() { in_time "$1" quintain reload -c "$dir/conf"; }

stop_in_time() {
    in_time 5 stop
    grep -q "$dir/slow/disk is stuck" "$dir/log"
}

test_hang_at_the_start_holds_up_its_lun_only() {
    disks size 1M
    touch "$dir/hang"
    in_time 6 hanging start
    slow_waits
    others_are_served
    sleep 3 # it is not tried again meanwhile
    calls_are 1
    rm "$dir/hang"
    within 8 slow_is ready
    io 0 'write -P 2 0 4k' 'read -P 2 0 4k'
    in_time 5 stop
}

test_hang_at_a_retry_holds_up_its_lun_only() {
    disks
    hanging start
    slow_is not-ready
    touch "$dir/hang"
    within 8 slow_waits
    others_are_served
    sleep 3
    calls_are 1
    truncate -s 1M "$dir/slow/disk"
    rm "$dir/hang"
    within 8 slow_is ready
    io 0 'read 0 4k'
    in_time 5 stop
}

test_hang_at_a_reload_holds_up_its_lun_only() {
    healthy_only
    hanging start
    touch "$dir/hang"
    disks size 1M
    reload 6
    slow_waits
    others_are_served
    stop_in_time
}

test_reloads_do_not_pile_up_behind_a_hang() {
    disks size 1M
    touch "$dir/hang"
    hanging start
    reload 2
    reload 2
    healthy_only
    reload 2
    [ "$(slow state)" = '' ]
    io 1 'read 0 4k'
    disks size 2M
    reload 2
    slow_waits
    calls_are 1
    rm "$dir/hang"
    within 8 slow_is ready
    [ "$(size_of 0)" = 2097152 ]
    in_time 5 stop
}

# The look at the path does not hang, so that it is the LUN's own job that does.
test_removed_lun_lets_go_of_the_store_that_opens_late() {
    disks size 1M
    touch "$dir/hang"
    HANG_CALL=open hanging start
    slow_waits
    calls | has '^open '
    healthy_only
    reload 2
    rm "$dir/hang"
    within 8 grep -q "$dir/slow/disk: created" "$dir/log"
    in_time 5 stop
    grep -q 'stopped: all stores are flushed and closed' "$dir/log"
}

test_lun_that_comes_back_waits_for_its_old_store() {
    disks size 1M
    touch "$dir/hang"
    HANG_CALL=open hanging start
    healthy_only
    reload 2
    disks size 1M
    reload 2
    slow_waits
    calls_are 1
    rm "$dir/hang"
    within 8 slow_is ready
    fails grep 'is in use' "$dir/log"
    in_time 5 stop
}

test_settings_that_change_during_a_hang_count() {
    disks size 1M
    truncate -s 1M "$dir/slow/disk"
    touch "$dir/hang"
    HANG_CALL=open hanging start
    disks size 1M read-only yes
    reload 2
    rm "$dir/hang"
    within 8 slow_is ready
    io_flags=-r io 0 'read 0 4k'
    fails io 0 'write 0 4k'
    in_time 5 stop
}

test_identity_is_the_same_after_a_hang() {
    disks size 1M
    start
    identity_of 0 >"$dir/before"
    stop
    touch "$dir/hang"
    hanging start
    slow_waits
    rm "$dir/hang"
    within 8 slow_is ready
    identity_of 0 >"$dir/after"
    cmp "$dir/before" "$dir/after"
    stop
}

slow_size_is() { [ "$(slow size_bytes)" = "$1" ]; }

# First a look at the path hangs, then a call on the open file does.
resize_hangs() {
    disks size 1M
    HANG_CALL=$1 hanging start
    touch "$dir/hang"
    disks size 2M
    reload 4
    disks size 3M
    reload 2
    calls_are 1
    in_time 1 slow_size_is 1048576
    io 0 'write -P 3 0 4k' 'read -P 3 0 4k'
    rm "$dir/hang"
    within 8 slow_size_is 3145728
    in_time 5 stop
}

test_resize_behind_a_look_that_hangs_is_made_later() { resize_hangs stat; }

test_resize_that_hangs_keeps_the_lun_served() { resize_hangs fstat; }

test_removed_lun_whose_resize_hangs_is_closed_later() {
    disks size 1M
    HANG_CALL=fstat hanging start
    touch "$dir/hang"
    disks size 2M
    reload 4
    healthy_only
    reload 4
    disks size 2M
    reload 2
    slow_waits
    rm "$dir/hang"
    within 8 slow_is ready
    slow_size_is 2097152
    in_time 5 stop
}

test_end_names_what_hangs_and_leaves_it() {
    disks size 1M
    touch "$dir/hang"
    hanging start
    io 1 'write -P 5 0 4k'
    stop_in_time
}

test_end_does_not_wait_for_a_reload_that_waits() {
    healthy_only
    hanging start
    touch "$dir/hang"
    disks size 1M
    kill -HUP "$pid"
    within 5 calls_are 1
    stop_in_time
}

test_check_does_not_wait_for_a_hang() {
    disks size 1M
    touch "$dir/hang"
    in_time 4 hanging quintain check "$dir/conf" >"$dir/out" 2>&1
    grep -q "warning: $dir/slow/disk cannot be looked at: its file system does not answer" "$dir/out"
}

test_status_looks_at_no_store() {
    disks size 1M
    start
    touch "$dir/hang"
    in_time 1 hanging quintain status -c "$dir/conf" >"$dir/out"
    calls_are 0
    rm "$dir/hang"
    stop
}

compiler=${CC:-cc}
command -v "$compiler" >/dev/null || { echo "SKIP hang: no compiler for the file system that hangs"; exit 0; }
"$compiler" -std=c17 -D_GNU_SOURCE -O1 -Wall -Wextra -shared -fPIC -o "$base/hang.so" "$(dirname "$0")/hang.c" ||
    { echo "FAIL hang: hang.c does not build"; exit 1; }
run_tests
