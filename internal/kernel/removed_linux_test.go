package kernel

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// A directory that was removed does not exist, whatever its filesystem says about a file without a name in it: ext4 says
// EPERM.
func TestBirthInARemovedDirectory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	dir, err := OpenDir(path)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := dir.Bear("", 0o600); !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrNoUnnamed) {
		t.Errorf("unnamed: %v", err)
	}
	if _, err := dir.Bear(".heirlock-t", 0o600); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("named: %v", err)
	}
}
