package journal

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sys/unix"

	"github.com/heirlock/heirlock"
)

func init() { roles["few"] = fewRole }

// fewRole opens the journal args[0], which has more files than this process may open, and prints what it found.
func fewRole(args []string) int {
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 40, Max: 40}); err != nil {
		fmt.Println("error", err)
		return 1
	}
	opts := stormOptions(heirlock.Refuse)
	opts.MaxFiles = 100
	j, err := Open(args[0], opts)
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	fmt.Println("open", j)
	if err := j.Close(context.Background()); err != nil {
		fmt.Println("error", err)
		return 1
	}
	return 0
}

// A journal of more files than descriptors opens, and its report is exact across them: an epoch that goes on, one that
// begins, gaps on the edges of files, the first and the last anomaly.
func TestMoreFilesThanDescriptors(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "j")
	for n := range 90 {
		epoch, sequence := epochA, uint64(2*(90-n))
		if n < 30 {
			epoch, sequence = epochB, uint64(2*(30-n)-1)
		}
		if n < 20 {
			sequence += 5 // a gap between j.20 and j.19
		}
		text := frameText(epoch, sequence, "0") + frameText(epoch, sequence+1, "0")
		switch n {
		case 77, 41, 3:
			text = text[:len(text)-3] + "\n"
		}
		inFile(t, filepath.Join(dir, generationName("j", int64(n))), text)
	}
	if err := os.Link(path+".1", path+".95"); err != nil { // counts once, under its newest name
		t.Fatal(err)
	}
	want, err := Verify(t.Context(), []string{path}, ReadOptions[jsontext.Value]{Generations: true})
	if err != nil || want.Files != 90 || want.Anomalies != 3 || want.Epochs != 2 || want.Gaps != 4 || want.First.File != path+".77" || want.Last.File != path+".3" {
		t.Fatalf("verified %+v, %v", want, err)
	}
	a := play(t, "few", path)
	status := a.expect("open")
	if code := a.wait(); code != 0 {
		t.Fatalf("exit status %d", code)
	}
	var got struct {
		Recovery Report `json:"recovery"`
	}
	if err := json.Unmarshal([]byte(status), &got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got.Recovery, want) {
		t.Errorf("found %+v, want %+v", got.Recovery, want)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 91 {
		t.Errorf("%d files are left, %v", len(files), err)
	}
}
