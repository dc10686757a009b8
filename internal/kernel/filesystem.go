package kernel

// Filesystem is what fstatfs(2) said about the filesystem of one file.
type Filesystem struct {
	Type  string // the type as a record names it: statfs magic in hex on Linux, type name elsewhere; "" if unknown
	Name  string // the type as a human names it
	Scope Scope

	NameMax int // longest name in bytes, 0 where it is not known
}

// Scope says who can reach a filesystem.
type Scope string

// The scopes. Only ScopeLocal lets evidence that is about one kernel speak for the file's owner.
const (
	ScopeLocal   Scope = "local"
	ScopeShared  Scope = "shared"
	ScopeUnknown Scope = "unknown"
)

type fsName struct {
	name  string
	scope Scope
}

// filesystems names the types that heirlock knows. It is an allow-list: what is missing is ScopeUnknown, and
// proves nothing. Magic numbers are those of linux/magic.h and of statfs(2).
var filesystems = map[string]fsName{
	"ef53":     {"ext2/3/4", ScopeLocal},
	"58465342": {"xfs", ScopeLocal},
	"9123683e": {"btrfs", ScopeLocal},
	"f2f52010": {"f2fs", ScopeLocal},
	"2fc12fc1": {"zfs", ScopeLocal},
	"ca451a4e": {"bcachefs", ScopeLocal},
	"3153464a": {"jfs", ScopeLocal},
	"1021994":  {"tmpfs", ScopeLocal},
	"858458f6": {"ramfs", ScopeLocal},
	"794c7630": {"overlay", ScopeLocal},
	"apfs":     {"apfs", ScopeLocal},
	"hfs":      {"hfs", ScopeLocal},

	"6969":     {"nfs", ScopeShared},
	"ff534d42": {"cifs", ScopeShared},
	"fe534d42": {"smb2", ScopeShared},
	"517b":     {"smb", ScopeShared},
	"65735546": {"fuse", ScopeShared},
	"1021997":  {"9p", ScopeShared},
	"c36400":   {"ceph", ScopeShared},
	"5346414f": {"afs", ScopeShared},
	"1161970":  {"gfs2", ScopeShared},
	"7461636f": {"ocfs2", ScopeShared},
	"bd00bd0":  {"lustre", ScopeShared},
	"786f4256": {"vboxsf", ScopeShared},
	"nfs":      {"nfs", ScopeShared},
	"smbfs":    {"smbfs", ScopeShared},
	"afpfs":    {"afpfs", ScopeShared},
	"webdav":   {"webdav", ScopeShared},
}

// KnownFilesystem completes a type as a record names it.
func KnownFilesystem(typ string) Filesystem {
	if known, ok := filesystems[typ]; ok {
		return Filesystem{Type: typ, Name: known.name, Scope: known.scope}
	}
	return Filesystem{Type: typ, Name: typ, Scope: ScopeUnknown}
}
