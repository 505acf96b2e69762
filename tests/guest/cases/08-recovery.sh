#!tests/guest/boot
# shellcheck shell=bash source=tests/guest/lib.sh
# timeout: 240
# The target is killed and started again, twice, under a verified run of fio:
# the session comes back and nothing is lost.
start_iscsid
discover >/dev/null || die "discovery"
setting node.session.timeo.replacement_timeout 60
setting 'node.conn[0].timeo.noop_out_interval' 2
setting 'node.conn[0].timeo.noop_out_timeout' 2
login >/dev/null || die "login"
use_disk
verify recovery --rw=randwrite --bs=16k --iodepth=8 --size=128M --rate=8m >/tmp/fio.log 2>&1 &
fio=$!
for round in 1 2; do
    sleep 4
    check "io_runs_before_kill_$round" kill -0 $fio
    check "target_is_killed_$round" host kill
    sleep 2
    check "target_starts_$round" host start
    check "session_is_back_$round" within 60 logged_in
done
wait $fio
check fio_saw_no_error_and_verified_all test $? = 0
tail -n 20 /tmp/fio.log | sed 's/^/# /'
check session_is_up logged_in
finish
