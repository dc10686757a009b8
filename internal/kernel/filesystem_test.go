package kernel

import (
	"slices"
	"strconv"
	"testing"
)

// The magic numbers are those of linux/magic.h and of the filesystems' own sources, written out once more; words are
// macOS's f_fstypename. Anything that is missing here must be unknown: it is an allow-list, and an entry that slips
// into it opens a door.
func TestKnownFilesystem(t *testing.T) {
	local := map[string]string{
		"ef53": "ext2/3/4", "58465342": "xfs", "9123683e": "btrfs", "f2f52010": "f2fs", "2fc12fc1": "zfs",
		"ca451a4e": "bcachefs", "3153464a": "jfs", "1021994": "tmpfs", "858458f6": "ramfs", "794c7630": "overlay",
		"apfs": "apfs", "hfs": "hfs",
	}
	shared := []string{
		"6969", "ff534d42", "fe534d42", "517b", "65735546", "1021997", "c36400", "5346414f", "1161970", "7461636f",
		"bd00bd0", "786f4256", "nfs", "smbfs", "afpfs", "webdav",
	}
	for typ := range filesystems {
		got := KnownFilesystem(typ)
		name, isLocal := local[typ]
		want := ScopeShared
		if isLocal {
			want = ScopeLocal
		}
		if got.Scope != want || !isLocal && !slices.Contains(shared, typ) || isLocal && got.Name != name || got.Type != typ || got.Name == "" {
			t.Errorf("%s: %+v, want %s %q", typ, got, want, name)
		}
		if n, err := strconv.ParseUint(typ, 16, 32); err == nil && strconv.FormatUint(n, 16) != typ {
			t.Errorf("%s is not written as a record writes it: %x", typ, n)
		}
	}
	if len(filesystems) != len(local)+len(shared) {
		t.Errorf("%d types are known, want %d", len(filesystems), len(local)+len(shared))
	}
	for _, typ := range []string{"", "0", "EF53", "0xef53", "00ef53", "ext4", "APFS", "xfs", "9fa0", "fuse", "187"} {
		if got, want := KnownFilesystem(typ), (Filesystem{Type: typ, Name: typ, Scope: ScopeUnknown}); got != want {
			t.Errorf("%q: %+v, want %+v", typ, got, want)
		}
	}
}
