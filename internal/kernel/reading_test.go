package kernel

import (
	"io"
	"os"
	"path/filepath"
	"testing"
)

// A read is as long as was asked for, or says that the file ended.
func TestReadAt(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte("0123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	st, err := d.Stat("f")
	if err != nil {
		t.Fatal(err)
	}
	f, _, err := d.Open("f", st, false)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, c := range []struct {
		off  int64
		size int
		want string
		err  error
	}{{0, 10, "0123456789", nil}, {3, 4, "3456", nil}, {8, 4, "89", io.EOF}, {10, 1, "", io.EOF}, {99, 1, "", io.EOF}, {5, 0, "", nil}} {
		p := make([]byte, c.size)
		if n, err := f.ReadAt(p, c.off); string(p[:n]) != c.want || err != c.err {
			t.Errorf("%d bytes at %d: %q, %v, want %q, %v", c.size, c.off, p[:n], err, c.want, c.err)
		}
	}
}
