#!tests/guest/boot
# shellcheck shell=bash source=tests/guest/lib.sh
# timeout: 180
# CHAP one way and both ways, each algorithm, and what has to be refused.
start_iscsid
check discovery_works discover
one=$IQN-chap both=$IQN-mutual
check login_without_chap_is_refused refused login "$one"
for t in "$one" "$both"; do
    setting node.session.auth.authmethod CHAP "$t"
    setting node.session.auth.username user "$t"
    setting node.session.auth.password secretsecret1 "$t"
done
check one_way_chap_logs_in login "$one"
check disk_of_a_chap_session_reads dd if="$(disk 0 "$one")" of=/dev/null bs=1M count=1 iflag=direct
check one_way_chap_logs_out logout "$one"

setting node.session.auth.password wrongwrongwrong "$one"
check wrong_secret_is_refused refused login "$one"
setting node.session.auth.password secretsecret1 "$one"
setting node.session.auth.username nobody "$one"
check wrong_name_is_refused refused login "$one"
setting node.session.auth.username user "$one"

setting node.session.auth.username_in target "$both"
setting node.session.auth.password_in secretsecret2 "$both"
for algorithm in MD5 SHA1 SHA256 SHA3-256; do
    setting node.session.auth.chap_algs "$algorithm" "$one"
    check "chap_${algorithm}_logs_in" login "$one"
    check "chap_${algorithm}_logs_out" logout "$one"
    setting node.session.auth.chap_algs "$algorithm" "$both"
    check "mutual_chap_${algorithm}_logs_in" login "$both"
    check "mutual_chap_${algorithm}_logs_out" logout "$both"
done
setting node.session.auth.password_in badbadbadbad1 "$both"
check initiator_refuses_a_target_with_another_secret refused login "$both"
finish
