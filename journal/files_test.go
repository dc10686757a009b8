package journal

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

func TestFilesOldestFirst(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.Mkdir("d", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"j", "j.1", "j.2", "j.10", "j.01", "j.0", "j.", "j.-1", "j.+1", "j.1x", "j.1.1", "j.1000000", "j.20261130", "jj.1", "j.lock", "j.1.quarantined-" + epochA, "j.quarantined-" + epochA} {
		inFile(t, "d/"+name, "")
	}
	for _, path := range []string{"d/j", "./d/../d/j", filepath.Join(dir, "d/j")} {
		files, err := Files(path)
		if want := []string{path + ".10", path + ".2", path + ".1", path}; err != nil || !slices.Equal(files, want) {
			t.Errorf("%q, %v, want %q", files, err, want)
		}
	}
	t.Chdir("d")
	if files, err := Files("j.1"); err != nil || !slices.Equal(files, []string{"j.1.1", "j.1"}) {
		t.Errorf("%q, %v", files, err)
	}
	if err := os.Remove("j"); err != nil {
		t.Fatal(err)
	}
	if files, err := Files("j"); err != nil || !slices.Equal(files, []string{"j.10", "j.2", "j.1"}) {
		t.Errorf("without the active file: %q, %v", files, err)
	}
	for path, want := range map[string]error{"none": fs.ErrNotExist, "no/j": fs.ErrNotExist, "": syscall.EINVAL, "../d/": syscall.EINVAL, "..": syscall.EINVAL, "a\x00b": syscall.EINVAL} {
		files, err := Files(path)
		var named *fs.PathError
		if !errors.Is(err, want) || !errors.As(err, &named) || named.Path != path || files != nil {
			t.Errorf("%q: %q, %v", path, files, err)
		}
	}
}

// What cannot be read is an error that names the file, and comes before the first frame; nothing is hung on, and nothing
// stays open.
func TestUnsafeFiles(t *testing.T) {
	dir := t.TempDir()
	good := inFile(t, filepath.Join(dir, "good"), frameText(epochA, 1, "0"))
	if err := os.Mkdir(filepath.Join(dir, "directory"), 0o700); err != nil {
		t.Fatal(err)
	}
	symlink(t, "good", filepath.Join(dir, "symlink"))
	symlink(t, "nothing", filepath.Join(dir, "dangling"))
	kinds := map[string]string{"missing": "", "directory": "directory", "symlink": "symlink", "dangling": "symlink", "none/j": ""}
	for name, kind := range special(t, dir) {
		kinds[name] = kind
	}
	before := descriptors(t)
	for name, kind := range kinds {
		path := filepath.Join(dir, name)
		for _, generations := range []bool{false, true} {
			opts := ReadOptions[jsontext.Value]{Generations: generations}
			records, err := reading(t, []string{good, path}, opts)
			if len(records) > 0 {
				t.Errorf("%s: read before the error: %q", name, records)
			}
			_, verr := Verify(t.Context(), []string{good, path}, opts)
			for _, err := range []error{err, verr} {
				var named *fs.PathError
				if !errors.As(err, &named) || named.Path != path || kind == "" && !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), kind) {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
		if err := os.Rename(path, filepath.Join(dir, "good.3")); err != nil {
			continue // the missing ones
		}
		if _, err := reading(t, []string{good}, ReadOptions[jsontext.Value]{Generations: true}); !strings.Contains(err.Error(), kind) || !strings.Contains(err.Error(), "good.3") {
			t.Errorf("%s as a generation: %v", name, err)
		}
		if err := os.Remove(filepath.Join(dir, "good.3")); err != nil {
			t.Fatal(err)
		}
	}
	if after := descriptors(t); !slices.Equal(after, before) {
		t.Errorf("open before: %q, after: %q", before, after)
	}
}

func symlink(t *testing.T, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name); err != nil {
		t.Fatal(err)
	}
}

// A generation is read with all the others, each inode once.
func TestGenerationsEachOnce(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "j")
	var want []string
	for i, name := range []string{"j.40", "j.21", "j.2", "j.1", "j"} { // 21 is behind more missing names than are tried
		content := frameText(epochA, uint64(i+7), "0")
		inFile(t, filepath.Join(dir, name), content)
		want = append(want, name)
	}
	if err := os.Link(filepath.Join(dir, "j.1"), filepath.Join(dir, "j.30")); err != nil {
		t.Fatal(err)
	}
	inFile(t, filepath.Join(dir, "j.1.quarantined-"+epochA), "no JSON")
	inFile(t, filepath.Join(dir, "j.01"), "no JSON")
	var got []string
	sequence := uint64(7)
	for rec, err := range Read(t.Context(), []string{path}, ReadOptions[jsontext.Value]{Generations: true}) {
		if err != nil || rec.Gap != nil || rec.Sequence != sequence {
			t.Fatal(told(rec), err)
		}
		got = append(got, filepath.Base(rec.File))
		sequence++
	}
	if !slices.Equal(got, want) {
		t.Errorf("read %q, want %q", got, want)
	}
	if report, err := Verify(t.Context(), []string{path}, ReadOptions[jsontext.Value]{Generations: true}); err != nil || report.Files != 5 || report.Frames != 5 || report.Gaps != 0 {
		t.Errorf("verified %+v, %v", report, err)
	}
	// Two journals in one call: each begins where it begins.
	other := inFile(t, filepath.Join(dir, "other"), frameText(epochB, 99, "0"))
	var journals []string
	for rec, err := range Read(t.Context(), []string{path, other}, ReadOptions[jsontext.Value]{Generations: true}) {
		if err != nil || rec.Gap != nil {
			t.Error(told(rec), err)
		}
		journals = append(journals, rec.Epoch[:1])
	}
	if strings.Join(journals, "") != "000007" {
		t.Errorf("read epochs %q", journals)
	}
	if report, err := Verify(t.Context(), []string{path, other}, ReadOptions[jsontext.Value]{Generations: true}); err != nil || report.Frames != 6 || report.Gaps != 0 || report.Epochs != 2 {
		t.Errorf("verified two %+v, %v", report, err)
	}
}

// A year or a port behind the name is no generation, unless it begins as one. A hole of up to fifteen numbers can be one
// of ours, and what is behind it is read, whatever it is.
func TestForeignNumbers(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "j")
	generations := ReadOptions[jsontext.Value]{Generations: true}
	both := func(frames uint64, anomalies int, suffixes ...string) {
		t.Helper()
		var want []string
		for _, s := range suffixes {
			want = append(want, path+s)
		}
		if files, err := Files(path); err != nil || !slices.Equal(files, want) {
			t.Errorf("files %q, %v, want %q", files, err, want)
		}
		report, err := Verify(t.Context(), []string{path}, generations)
		if err != nil || report.Files != len(want) || report.Frames != frames || report.Anomalies != uint64(anomalies) {
			t.Errorf("verified %+v, %v, want %d frames, %d anomalies", report, err, frames, anomalies)
		}
	}
	inFile(t, path+".2024", "2024-01-01 started\n")
	if _, err := Files(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("files of a stranger alone: %v", err)
	}
	if _, err := Verify(t.Context(), []string{path}, generations); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a stranger alone: %v", err)
	}
	inFile(t, path+".1", frameText(epochA, 2, "0"))
	inFile(t, path, frameText(epochA, 3, "0"))
	inFile(t, path+".18", "port 18\n")
	both(2, 0, ".1", "")
	inFile(t, path+".3000", frameText(epochA, 1, "0"))
	inFile(t, path+".3001", "damaged\n")
	both(3, 1, ".3001", ".3000", ".1", "")
	inFile(t, path+".17", "damaged\n")
	both(3, 3, ".3001", ".3000", ".18", ".17", ".1", "")
	if err := os.Mkdir(path+".8080", 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Verify(t.Context(), []string{path}, generations); err == nil || !strings.Contains(err.Error(), "j.8080: ") {
		t.Errorf("a directory: %v", err)
	}
}
