package journals

import (
	"context"
	"fmt"
	"runtime"

	"github.com/heirlock/heirlock/bench/timings/account"
	"github.com/heirlock/heirlock/journal"
)

const (
	openFiles     = 8
	openFileBytes = 64 << 20
)

// Open is the time to open a journal with 8 files of 64 MiB, against Verify over the same files.
func Open(dir string, rounds int) error {
	path, err := filled(dir, 0, openFiles, openFileBytes, openFiles*openFileBytes-openFileBytes/4)
	if err != nil {
		return err
	}
	files, err := journal.Files(path)
	if err != nil {
		return err
	}
	took := map[string][]float64{}
	for round := range rounds {
		ways := []func() (float64, error){
			func() (float64, error) {
				return timed(runtime.NumCPU(), func() error { return verifyAll(files...) })
			},
			func() (float64, error) { return opened(path, len(files)) },
		}
		names := []string{"Verify", "Open"}
		for i := range ways {
			i = (i + round) % len(ways)
			v, err := ways[i]()
			if err != nil {
				return err
			}
			took[names[i]] = append(took[names[i]], v)
		}
	}
	ratio := account.Ratio(took, "Open", "Verify")
	account.Show(account.Section{
		Title:   fmt.Sprintf("opening a journal with %d files of 64 MiB", len(files)),
		Columns: []string{"", "ms", "÷ Verify"},
		Rows: [][]string{
			{"Verify", fmt.Sprintf("%.0f", account.Median(took["Verify"])/1e6), "1.00"},
			{"Open", fmt.Sprintf("%.0f", account.Median(took["Open"])/1e6), fmt.Sprintf("%.2f", ratio)},
		},
	})
	account.Goal("open of 8 × 64 MiB, ÷ Verify", ratio, "≤", 1.2)
	return nil
}

// opened is how long Open takes; the journal is closed again.
func opened(path string, files int) (took float64, err error) {
	var j *journal.Journal[event]
	took, err = timed(runtime.NumCPU(), func() (err error) {
		j, err = journal.Open(path, journal.Options[event]{
			MaxEventBytes: 64 << 10, MaxPendingItems: 1 << 16, MaxPendingBytes: 16 << 20, MaxFileBytes: openFileBytes, MaxFiles: openFiles,
		})
		return err
	})
	if err != nil {
		return 0, err
	}
	if s := j.Status(); s.Recovery.Files != files || s.Recovery.Anomalies > 0 {
		return 0, fmt.Errorf("opened: %s", j)
	}
	return took, j.Close(context.Background())
}
