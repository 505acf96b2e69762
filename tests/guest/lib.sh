# shellcheck shell=bash
# Stands before every case, in the guest.  PORTAL and IQN are set by boot.
set -u
fails=0

# check NAME COMMAND...: the case goes on when it fails; finish counts.
check() {
    local name=$1 output status=0
    shift
    output=$("$@" 2>&1) || status=$?
    if [ "$status" = 0 ]; then
        echo "ok $name"
    else
        tail -n 10 <<<"$output" | sed 's/^/    /'
        echo "FAIL $name (status $status)"
        fails=$((fails + 1))
    fi
}
# A command that cannot be run (126, 127) refuses nothing.
refused() {
    local status=0
    "$@" || status=$?
    [ "$status" != 0 ] && [ "$status" -lt 126 ]
}
# prints REGEX COMMAND...: it succeeds and its output matches.
prints() {
    local regex=$1 output status=0
    shift
    output=$("$@" 2>&1) || status=$?
    echo "$output"
    [ "$status" = 0 ] && grep -qE -- "$regex" <<<"$output"
}
die() {
    echo "FAIL $*"
    exit 1
}
finish() {
    [ "$fails" = 0 ]
    exit
}
# within SECONDS COMMAND...: waits until it succeeds.
within() {
    local tries=$(($1 * 10))
    shift
    while ! "$@" >/dev/null 2>&1; do
        tries=$((tries - 1))
        [ $tries -gt 0 ] || return 1
        sleep 0.1
    done
}
# host WORD...: has the host run tests/guest/target WORD... and tells its status.
# Standard input is the line to the host, in both directions.
host() {
    local status
    echo "GUEST-HOST $*" >&0
    read -r status
    return "$status"
}

start_iscsid() {
    sed -i 's/^node.startup.*/node.startup = manual/; s/^iscsid.startup/#&/' /etc/iscsi/iscsid.conf
    iscsid -f >/tmp/iscsid.log 2>&1 </dev/null &
    # 21: it answers, there is no session
    within 10 sh -c 'iscsiadm -m session; [ $? = 21 ]' || die "iscsid does not start"
}
discover() { iscsiadm -m discovery -t sendtargets -p "$PORTAL"; }
# setting NAME VALUE [IQN]: in the node record
setting() { iscsiadm -m node -T "${3:-$IQN}" -o update -n "$1" -v "$2"; }
login() { iscsiadm -m node -T "${1:-$IQN}" -p "$PORTAL" --login; }
logout() { iscsiadm -m node -T "${1:-$IQN}" -p "$PORTAL" --logout; }
logged_in() { iscsiadm -m session -P 1 | grep -q 'Session State: LOGGED_IN'; }

# disk LUN [IQN]: waits for it and prints its device node.
disk() {
    local tries session block
    for ((tries = 0; tries < 300; tries++)); do
        for session in /sys/class/iscsi_session/session*; do
            [ "$(cat "$session/targetname" 2>/dev/null)" = "${2:-$IQN}" ] || continue
            for block in "$session"/device/target*/*:"$1"/block/*; do
                [ -b "/dev/${block##*/}" ] && echo "/dev/${block##*/}" && return
            done
        done
        sleep 0.1
    done
    return 1
}
generic() { basename "$(echo /sys/block/"${1##*/}"/device/scsi_generic/sg*)" | sed 's,^,/dev/,'; }

# DISK is LUN 0 from now on (its name may change with a login).
use_disk() { DISK=$(disk 0) || die "no LUN 0"; }

# The usual beginning: one session; DISK is its LUN 0.
connect() {
    start_iscsid
    discover >/dev/null || die "discovery"
    login "$IQN" >/dev/null || die "login"
    use_disk
}
# verify NAME OPTION...: fio writes and reads back with checksums.
verify() {
    local name=$1
    shift
    fio --name="$name" --filename="$DISK" --direct=1 --ioengine=libaio --verify=crc32c \
        --do_verify=1 --verify_fatal=1 "$@"
}
