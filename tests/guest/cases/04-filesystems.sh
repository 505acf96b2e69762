#!tests/guest/boot
# shellcheck shell=bash source=tests/guest/lib.sh
# timeout: 240
# ext4 and xfs: make, fill, unmount, log in anew, check, read again.
connect
for fs in ext4 xfs; do
    case $fs in
    ext4) make=(mkfs.ext4 -q -F) fsck=(fsck.ext4 -fn) ;;
    xfs) make=(mkfs.xfs -q -f) fsck=(xfs_repair -n) ;;
    esac
    check "${fs}_is_made" "${make[@]}" "$DISK"
    check "${fs}_mounts" mount -t $fs "$DISK" /mnt
    for ((i = 1; i <= 20; i++)); do head -c $((i * 100000)) /dev/urandom >/mnt/file$i; done
    mkdir /mnt/many
    for ((i = 1; i <= 300; i++)); do : >/mnt/many/$i; done
    (cd /mnt && sha256sum file* >/tmp/sums)
    check "${fs}_unmounts" umount /mnt
    check "${fs}_logout" logout
    check "${fs}_login" login
    use_disk
    check "${fs}_is_clean" "${fsck[@]}" "$DISK"
    check "${fs}_mounts_again" mount -t $fs "$DISK" /mnt
    check "${fs}_data_is_the_same" sh -c 'cd /mnt && sha256sum --quiet -c /tmp/sums'
    check "${fs}_has_all_files" prints '^300$' sh -c 'ls /mnt/many | wc -l'
    check "${fs}_trims" prints trimmed fstrim -v /mnt
    check "${fs}_unmounts_again" umount /mnt
done
finish
