package kernel

import (
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// The types that linux/magic.h names, by its own names.
func TestFilesystemMagic(t *testing.T) {
	for magic, want := range map[uint64]struct {
		name  string
		scope Scope
	}{
		unix.EXT4_SUPER_MAGIC:      {"ext2/3/4", ScopeLocal},
		unix.XFS_SUPER_MAGIC:       {"xfs", ScopeLocal},
		unix.BTRFS_SUPER_MAGIC:     {"btrfs", ScopeLocal},
		unix.F2FS_SUPER_MAGIC:      {"f2fs", ScopeLocal},
		unix.TMPFS_MAGIC:           {"tmpfs", ScopeLocal},
		unix.RAMFS_MAGIC:           {"ramfs", ScopeLocal},
		unix.OVERLAYFS_SUPER_MAGIC: {"overlay", ScopeLocal},
		unix.NFS_SUPER_MAGIC:       {"nfs", ScopeShared},
		unix.CIFS_SUPER_MAGIC:      {"cifs", ScopeShared},
		unix.SMB2_SUPER_MAGIC:      {"smb2", ScopeShared},
		unix.SMB_SUPER_MAGIC:       {"smb", ScopeShared},
		unix.FUSE_SUPER_MAGIC:      {"fuse", ScopeShared},
		unix.V9FS_MAGIC:            {"9p", ScopeShared},
		unix.CEPH_SUPER_MAGIC:      {"ceph", ScopeShared},
		unix.AFS_SUPER_MAGIC:       {"afs", ScopeShared},
		unix.OCFS2_SUPER_MAGIC:     {"ocfs2", ScopeShared},
		unix.PROC_SUPER_MAGIC:      {"9fa0", ScopeUnknown},
	} {
		typ := strconv.FormatUint(magic, 16)
		if got := KnownFilesystem(typ); got.Name != want.name || got.Scope != want.scope {
			t.Errorf("%s: %s %s, want %+v", typ, got.Name, got.Scope, want)
		}
	}
}
