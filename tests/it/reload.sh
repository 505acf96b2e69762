#!/usr/bin/env bash
# A reload changes what changed, and nothing else.
# shellcheck source=tests/it/lib.sh
. "$(dirname "$0")/lib.sh"

disks() { # LINE... within the target
    printf '\t%s\n' "$@" | target_conf
}

reload() { quintain reload -c "$dir/conf"; }

tsih() { status | jq -c '[.sessions[].tsih]'; }

test_reload_adds_a_lun_without_touching_a_session() {
    disks "lun 0 { path $dir/a size 4M }"
    start
    hold one 0
    local before
    before=$(tsih)
    disks "lun 0 { path $dir/a size 4M }" "lun 1 { path $dir/b size 2M }"
    reload
    [ "$(size_of 1)" = 2097152 ]
    [ "$(tsih)" = "$before" ]
    say one 'write -P 2 0 4k'
    stop
}

test_reload_removes_a_lun_and_a_file_is_free_again() {
    disks "lun 0 { path $dir/a size 4M }" "lun 1 { path $dir/b size 2M }"
    start
    disks "lun 0 { path $dir/a size 4M }"
    reload
    fails size_of 1
    [ "$(size_of 0)" = 4194304 ]
    [ "$(status | jq '.luns | length')" = 1 ]
    # The lock on it is gone: another daemon may serve it.
    printf 'state-dir %s/state2\nportal-group p { discovery-auth-group no-authentication listen 127.0.0.1:%s }\n' \
        "$dir" $((port + 1)) >"$dir/conf2"
    echo "target $iqn { auth-group no-authentication portal-group p lun 0 { path $dir/b } }" >>"$dir/conf2"
    "$program" serve -c "$dir/conf2" >"$dir/log2" 2>&1 &
    other=$!
    await_ready "$other" "$dir/log2"
    fails grep -q 'NOT READY' "$dir/log2"
    stop
}

test_reload_grows_a_disk_while_it_is_used() {
    disks "lun 0 { path $dir/a size 4M }"
    start
    hold one 0
    disks "lun 0 { path $dir/a size 8M }"
    kill -HUP "$pid"
    within 5 grep -q 'new size' "$dir/log"
    [ "$(size_of 0)" = 8388608 ]
    [ "$(stat -c %s "$dir/a")" = 8388608 ]
    say one 'write -P 2 0 4k'
    stop
}

test_reload_with_smaller_size_cuts_nothing() {
    disks "lun 0 { path $dir/a size 8M }"
    start
    io 0 'write -P 9 7M 1M' flush
    disks "lun 0 { path $dir/a size 4M }"
    reload
    grep -q 'warning: .* is smaller than before' "$dir/log"
    [ "$(size_of 0)" = 4194304 ]
    [ "$(stat -c %s "$dir/a")" = 8388608 ]
    disks "lun 0 { path $dir/a size 8M }"
    reload
    io 0 'read -P 9 7M 1M'
    stop
}

test_file_that_grew_is_seen_at_reload() {
    truncate -s 1M "$dir/a"
    disks "lun 0 { path $dir/a }"
    start
    truncate -s 3M "$dir/a"
    reload
    [ "$(size_of 0)" = 3145728 ]
    stop
}

test_file_with_errors_is_refused_whole() {
    disks "lun 0 { path $dir/a size 4M }"
    start
    hold one 0
    local before
    before=$(tsih)
    disks "lun 0 { path $dir/a size 8M }" "lun 1 { pth $dir/b size 2M }"
    fails quintain reload -c "$dir/conf" 2>"$dir/err"
    grep -q "$dir/conf:1[0-9]:[0-9]*: error: " "$dir/err"
    grep -q 'nothing has changed' "$dir/err"
    [ "$(size_of 0)" = 4194304 ]
    [ "$(tsih)" = "$before" ]
    [ "$(status | jq .reloads_refused)" = 1 ]
    say one 'write -P 2 0 4k'
    stop
}

test_portal_that_cannot_be_bound_changes_nothing() {
    disks "lun 0 { path $dir/a size 4M }"
    start
    disks "lun 0 { path $dir/a size 8M }" "lun 1 { path $dir/b size 1M }"
    # An address that no interface of this host has (RFC 5737).
    sed -i "s/listen 127.*/&\n\tlisten 192.0.2.77:$port/" "$dir/conf"
    fails quintain reload -c "$dir/conf" 2>"$dir/err"
    grep -q '192.0.2.77' "$dir/err"
    [ "$(size_of 0)" = 4194304 ]
    fails size_of 1
    [ "$(status | jq '.luns | length')" = 1 ]
    stop
}

test_portal_may_go_from_every_address_to_one_and_back() {
    local address
    one() {
        printf 'state-dir %s/state\ncontrol-socket %s/control.sock\n' "$dir" "$dir"
        printf 'portal-group pg { discovery-auth-group no-authentication listen %s:%s }\n' "$1" "$port"
        echo "target $iqn { auth-group no-authentication portal-group pg lun 0 { path $dir/a size 4M } }"
    }
    one 0.0.0.0 >"$dir/conf"
    start
    for address in 127.0.0.1 0.0.0.0; do
        one "$address" >"$dir/conf"
        reload
        [ "$(size_of 0)" = 4194304 ]
    done
    stop
}

test_file_that_was_deleted_is_told_at_reload() {
    disks "lun 0 { path $dir/a size 4M }"
    start
    rm "$dir/a"
    reload
    grep -q "$dir/a: the file has been deleted" "$dir/log"
    stop
}

test_portal_is_added_and_removed() {
    disks "lun 0 { path $dir/a size 4M }"
    start
    sed -i "s/listen 127.*/&\n\tlisten 127.0.0.1:$((port + 1))/" "$dir/conf"
    reload
    timeout 10 iscsi-ls "iscsi://127.0.0.1:$((port + 1))" | has "$iqn"
    disks "lun 0 { path $dir/a size 4M }"
    reload
    fails timeout 10 iscsi-ls "iscsi://127.0.0.1:$((port + 1))"
    [ "$(size_of 0)" = 4194304 ]
    stop
}

test_removed_target_ends_its_sessions_only() {
    conf <<EOF
lun one { path $dir/a size 4M }
target $iqn { auth-group no-authentication portal-group pg lun 0 one }
target $iqn-two { auth-group no-authentication portal-group pg lun 0 one }
EOF
    start
    hold one 0
    hold two 0 "$iqn-two"
    sessions_are 2
    conf <<EOF
lun one { path $dir/a size 4M }
target $iqn { auth-group no-authentication portal-group pg lun 0 one }
EOF
    reload
    [ "$(status | jq -c '[.sessions[].target] | unique')" = "[\"$iqn\"]" ]
    say one 'write -P 2 0 4k'
    fails size_of 0 "$iqn-two"
    stop
}

test_new_name_for_a_path_keeps_the_disk() {
    conf <<EOF
lun one { path $dir/a size 4M }
target $iqn { auth-group no-authentication portal-group pg lun 0 one }
EOF
    start
    hold one 0
    identity_of 0 >"$dir/before"
    sed -i 's/lun one/lun uno/; s/lun 0 one/lun 0 uno/' "$dir/conf"
    reload
    identity_of 0 >"$dir/after"
    cmp "$dir/before" "$dir/after"
    say one 'write -P 2 0 4k'
    stop
}

test_other_path_under_a_number_is_another_disk() {
    disks "lun 0 { path $dir/a size 4M }"
    start
    identity_of 0 >"$dir/before"
    disks "lun 0 { path $dir/b size 4M }"
    reload
    identity_of 0 >"$dir/after"
    fails cmp -s "$dir/before" "$dir/after"
    stop
}

test_store_is_opened_again_for_new_settings() {
    disks "lun 0 { path $dir/a size 4M }"
    start
    io 0 'write -P 3 0 4k'
    disks "lun 0 { path $dir/a size 4M read-only yes }"
    reload
    fails io 0 'write -P 4 0 4k'
    io_flags=-r io 0 'read -P 3 0 4k'
    stop
}

run_tests
