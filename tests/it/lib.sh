# lib.sh: what the whole-daemon tests share.  Not run by itself.
#
# A script sources this file, defines functions test_SUBJECT_BEHAVIOUR, and ends
# with run_tests.  Each test runs in a shell and a directory of its own ($dir)
# under "set -e": the first command that fails ends it, and is shown together
# with the daemon's log.  "skip REASON" leaves a test.
#
#   quintain ARG...        the program
#   conf <<EOF             writes $dir/conf: state-dir, the portal group "pg" at
#                          127.0.0.1:$port and what comes on stdin
#   start [ARG]...         serves (-c $dir/conf by default), waits for "ready"
#   stop, crash            SIGTERM and SIGKILL; both wait for the end
#   url LUN                the URL for libiscsi's tools and qemu
#   io LUN COMMAND...      qemu-io commands; io_flags=-r opens it read-only
#   hold NAME LUN [IQN]    opens a session that stays; "say NAME COMMAND" is its
#                          next qemu-io command, "let_go NAME" ends it
#   sessions_are N         true when the daemon has N sessions
#   has PATTERN            grep without words that reads all: with -q the writer of
#                          a pipe may be killed by SIGPIPE, which fails the pipe
#   fails COMMAND...       true when the command fails
#   within SECONDS COMMAND repeats until it succeeds
# shellcheck shell=bash
set -uo pipefail

program=$(realpath "${QUINTAIN:-build/quintain}")
base=$(realpath "${TEST_TMP:?}")
port=${TEST_PORT:?}
iqn=iqn.2026-11.org.quintain:test

quintain() { "$program" "$@"; }

conf() {
    {
        printf 'state-dir "%s/state"\nreactors 1\n' "$dir"
        printf 'portal-group pg {\n\tdiscovery-auth-group no-authentication\n'
        printf '\tlisten 127.0.0.1:%s\n}\n' "$port"
        cat
    } >"$dir/conf"
    chmod 600 "$dir/conf"
}

# One target with these words, all its LUNs on stdin.
target_conf() {
    { printf 'target %s {\n\tauth-group no-authentication\n\tportal-group pg\n' "$iqn"; cat; echo '}'; } | conf
}

alive() { kill -0 "$1" 2>/dev/null; }

# Waits for "ready" in the log of process $1, for as long as it lives.
await_ready() {
    local tries
    for ((tries = 0; tries < 300; tries++)); do
        ! grep -q ' is ready: ' "$2" || return 0
        alive "$1" || break
        sleep 0.05
    done
    echo "not ready:"
    cat "$2"
    return 1
}

start() {
    [ $# -gt 0 ] || set -- -c "$dir/conf"
    : >"$dir/log"
    "$program" serve "$@" >>"$dir/log" 2>&1 </dev/null &
    pid=$!
    await_ready "$pid" "$dir/log"
}

# Waits for a process to end; its status.
ended() {
    local tries
    for ((tries = 0; tries < 120; tries++)); do
        alive "$1" || break
        sleep 0.05
    done
    ! alive "$1" || { echo "process $1 did not end within 6 s"; return 99; }
    wait "$1"
}

stop() {
    local status=0
    kill -TERM "$pid"
    ended "$pid" || status=$?
    pid=''
    [ $status = 0 ] || { echo "status $status"; return 1; }
}

crash() {
    kill -KILL "$pid"
    wait "$pid" 2>/dev/null || :
    pid=''
}

url() { echo "iscsi://127.0.0.1:$port/${2:-$iqn}/$1"; }

# qemu-io ends with 0 whatever happened in some versions: its words count.
io() {
    local lun=$1 out command commands=()
    shift
    [ -z "${io_flags:-}" ] || commands=("$io_flags")
    for command; do commands+=(-c "$command"); done
    out=$(timeout 30 qemu-io -f raw "${commands[@]}" "$(url "$lun")" 2>&1) || { echo "$out"; return 1; }
    ! grep -qiE 'fail|error|denied|can.t open' <<<"$out" || { echo "$out"; return 1; }
}

declare -A held_pid held_fd
hold() {
    local fd
    mkfifo "$dir/$1.in"
    : >"$dir/$1.out" # there before the shell of qemu-io makes it
    qemu-io -f raw "$(url "$2" "${3:-$iqn}")" <"$dir/$1.in" >>"$dir/$1.out" 2>&1 &
    held_pid[$1]=$!
    exec {fd}>"$dir/$1.in"
    held_fd[$1]=$fd
    say "$1" 'read 0 4k'
}

say() {
    local before
    before=$(grep -c 'ops;' "$dir/$1.out" || :)
    echo "$2" >&"${held_fd[$1]}"
    within 10 said_more "$dir/$1.out" "$before"
}

said_more() {
    [ "$(grep -c 'ops;' "$1")" -gt "$2" ] || { cat "$1"; return 1; }
}

let_go() {
    local fd=${held_fd[$1]}
    exec {fd}>&-
    kill -KILL "${held_pid[$1]}" 2>/dev/null || :
    wait "${held_pid[$1]}" 2>/dev/null || :
    unset "held_pid[$1]"
}

sessions_are() { [ "$(status | jq '.sessions | length')" = "$1" ]; }

size_of() { timeout 20 iscsi-readcapacity16 -s "$(url "$@")"; }

identity_of() { timeout 20 iscsi-inq -e 1 -c 131 "$(url "$1")"; }

status() { quintain status --json -c "$dir/conf"; }

has() { grep "$@" >/dev/null; }

fails() {
    if "$@"; then
        echo "succeeds: $*"
        return 1
    fi
}

within() {
    local end=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        [ $SECONDS -le $end ] || { "$@"; return; }
        sleep 0.1
    done
}

skip() {
    echo "SKIP-REASON $*"
    exit 77
}

need_root() { [ "$(id -u)" = 0 ] || skip "no root"; }

cleanup() {
    local name
    for name in "${!held_pid[@]}"; do let_go "$name"; done
    [ -z "${pid:-}" ] || ! alive "$pid" || crash
    [ -z "${other:-}" ] || ! alive "$other" || { kill -KILL "$other"; wait "$other" 2>/dev/null || :; }
    [ -z "${mounted:-}" ] || umount "$mounted"
}

run_one() {
    dir=$base/$1 pid='' other='' mounted=''
    mkdir -p "$dir"
    export XDG_STATE_HOME=$dir/xdg
    trap cleanup EXIT
    trap 'echo "line $LINENO: $BASH_COMMAND"' ERR
    set -eE
    "$1"
}

run_tests() {
    local name status failed=0
    while read -r name; do
        (run_one "$name") >"$base/out" 2>&1
        status=$?
        if [ $status = 0 ]; then
            echo "ok ${name#test_}"
        elif [ $status = 77 ]; then
            echo "SKIP ${name#test_}: $(sed -n 's/^SKIP-REASON //p' "$base/out")"
        else
            cat "$base/out"
            [ ! -s "$base/$name/log" ] || sed 's/^/  log: /' "$base/$name/log"
            echo "FAIL ${name#test_}"
            failed=1
        fi
    done < <(declare -F | sed -n 's/^declare -f \(test_.*\)/\1/p')
    return $failed
}
