#!/usr/bin/env bash
# The control socket and the commands that use it.
# shellcheck source=tests/it/lib.sh
. "$(dirname "$0")/lib.sh"

disk() {
    target_conf <<EOF
	alias "a test"
	lun 3 { path "$dir/disk" size 1M }
EOF
}

test_status_shows_what_is_served() {
    disk
    start
    status >"$dir/json"
    [ "$(jq -r '.targets[0].name' "$dir/json")" = "$iqn" ]
    [ "$(jq -r '.targets[0].alias' "$dir/json")" = "a test" ]
    [ "$(jq -r '.targets[0].luns[0].number' "$dir/json")" = 3 ]
    [ "$(jq -r '.luns[0].size_bytes' "$dir/json")" = 1048576 ]
    [ "$(jq -r '.luns[0].state' "$dir/json")" = ready ]
    [ "$(jq -r '.portals[0].address' "$dir/json")" = "127.0.0.1:$port" ]
    [ "$(jq -r '.pid' "$dir/json")" = "$pid" ]
    [ "$(jq -r '.reactors | length' "$dir/json")" = 1 ]
    stop
}

test_status_counts_what_a_lun_did() {
    disk
    start
    io 3 'write -P 1 0 64k' flush 'read -P 1 0 64k'
    [ "$(status | jq '.luns[0].write_bytes')" = 65536 ]
    [ "$(status | jq '.luns[0].flushes >= 1')" = true ]
    stop
}

test_status_is_readable() {
    disk
    start
    quintain status -c "$dir/conf" >"$dir/out"
    grep -qE "^  LUN +STATE +SIZE" "$dir/out"
    grep -qE "ready +1 MiB +512 .* $dir/disk" "$dir/out"
    grep -qF "127.0.0.1:$port" "$dir/out"
    stop
}

test_status_shows_errors_of_the_medium_alone() {
    disk
    start
    fails iscsi-inq -e 1 -c 255 "$(url 3)" # a page that is not there
    [ "$(status | jq '.luns[0].errors >= 1')" = true ]
    [ "$(status | jq '.luns[0] | .read_errors + .write_errors')" = 0 ]
    quintain status -c "$dir/conf" >"$dir/out"
    grep -qE "ready +1 MiB +512 +0 +0 +0 +0 " "$dir/out"
    stop
}

test_status_counts_pdus() {
    disk
    start
    io 3 'read 0 4k'
    [ "$(status | jq '.server.pdus_in > 0 and .server.pdus_out > 0')" = true ]
    stop
}

test_status_shows_a_session() {
    disk
    start
    hold one 3
    [ "$(status | jq -r '.sessions[0].target')" = "$iqn" ]
    quintain status -c "$dir/conf" | has "127.0.0.1:[0-9]* *$iqn"
    let_go one
    within 5 sessions_are 0
    stop
}

test_socket_is_private_and_goes_with_the_daemon() {
    disk
    start
    [ "$(stat -c %a "$dir/state/control.sock")" = 600 ]
    [ "$(stat -c %a "$dir/state")" = 700 ]
    stop
    [ ! -e "$dir/state/control.sock" ]
}

test_socket_of_another_daemon_is_left_to_it() {
    disk
    start
    sed "s/:$port/:$((port + 1))/; s/3 {/3 { serial other/; s,/disk,/disk2," "$dir/conf" >"$dir/conf2"
    "$program" serve -c "$dir/conf2" >"$dir/log2" 2>&1 &
    other=$!
    await_ready "$other" "$dir/log2"
    grep -q 'warning.*another daemon' "$dir/log2"
    kill -TERM "$other"
    ended "$other"
    other=''
    [ "$(status | jq .pid)" = "$pid" ]
    stop
}

test_socket_of_a_crashed_daemon_is_replaced() {
    disk
    start
    crash
    [ -e "$dir/state/control.sock" ]
    start
    [ "$(status | jq .pid)" = "$pid" ]
    stop
}

test_control_socket_may_lie_elsewhere() {
    disk
    echo "control-socket \"$dir/my.sock\"" >>"$dir/conf"
    start
    quintain status --socket "$dir/my.sock" >/dev/null
    [ "$(status | jq .pid)" = "$pid" ]
    stop
}

test_reload_is_counted_and_told() {
    disk
    start
    quintain reload --socket "$dir/state/control.sock"
    [ "$(status | jq .reloads)" = 1 ]
    grep -q "reloaded: 1 target $iqn, 1 LUN" "$dir/log"
    stop
}

run_tests
