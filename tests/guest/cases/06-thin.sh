#!tests/guest/boot
# shellcheck shell=bash source=tests/guest/lib.sh
# timeout: 120
# Thin provisioning: discard, zeroing, which blocks are mapped.
connect
SG=$(generic "$DISK")
check lun_is_thin prints 'lbpme=1' sg_readcap -l "$DISK"
check writing_works dd if=/dev/urandom of="$DISK" bs=1M count=16 oflag=direct
check discard_works blkdiscard -o 0 -l 8M "$DISK"
check discarded_reads_as_zeros cmp -n 8388608 "$DISK" /dev/zero
check the_rest_is_kept refused cmp -n 1048576 -i 8388608:0 "$DISK" /dev/zero
check discarded_is_unmapped prints 'deallocated|unmapped' sg_get_lba_status --lba=0 "$SG"
check written_is_mapped prints '(^|[^a-z])mapped' sg_get_lba_status --lba=16384 "$SG"
check unmap_command_works sg_unmap --lba=16384 --num=16 "$SG"
check zeroing_works blkdiscard -z -o 8M -l 4M "$DISK"
check zeroed_reads_as_zeros cmp -n 4194304 -i 8388608:0 "$DISK" /dev/zero
check whole_disk_is_discarded blkdiscard "$DISK"
finish
