package journals

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"

	"github.com/heirlock/heirlock/bench/timings/account"
	"github.com/heirlock/heirlock/bench/timings/role"
)

// readReport is the memory of a process that read a file.
type readReport struct {
	Heap     uint64 // bytes of objects at most, garbage included, looked at every millisecond
	Resident int64  // bytes at most, VmHWM
	Seconds  float64
}

// heapMost is 1 MiB more than the heap below which Go's collector does not run.
const heapMost = 5

// Memory is that of a fresh process that reads 64 MiB, and of one that reads so many GiB: the size makes no difference.
func Memory(dir string, gib int) error {
	s := account.Section{
		Title:   "memory of a process that reads a journal of one file",
		Columns: []string{"", "file, MiB", "heap at most, KiB", "resident at most (VmHWM), KiB", "s"},
	}
	heap := map[string]float64{} // of the larger file
	for _, bytes := range []int64{64 << 20, int64(gib) << 30} {
		at, err := os.MkdirTemp(dir, "memory-")
		if err != nil {
			return err
		}
		path, err := filled(at, 0, 1, bytes+(1<<20), bytes)
		if err != nil {
			return err
		}
		for _, way := range []string{"Read", "Verify"} {
			r, err := readApart(way, path)
			if err != nil {
				return fmt.Errorf("%s: %w", way, err)
			}
			heap[way] = float64(r.Heap) / (1 << 20)
			s.Rows = append(s.Rows, []string{way, fmt.Sprint(bytes >> 20), fmt.Sprint(r.Heap >> 10), fmt.Sprint(r.Resident >> 10), account.Figure(r.Seconds)})
		}
		if err := os.RemoveAll(at); err != nil {
			return err
		}
	}
	account.Show(s)
	for _, way := range []string{"Read", "Verify"} {
		account.Goal(fmt.Sprintf("memory of %s over %d GiB, heap at most, MiB", way, gib), heap[way], "≤", heapMost)
	}
	return nil
}

func readApart(way, path string) (r readReport, err error) {
	cmd, err := role.Command("reader", []string{way, path})
	if err != nil {
		return r, err
	}
	text, err := cmd.Output()
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(text, &r)
}

// Reader is the role of the process that reads, and says what memory it had.
func Reader(args []string) error {
	done, most := make(chan struct{}), make(chan uint64)
	go func() {
		objects := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for peak := uint64(0); ; {
			select {
			case <-tick.C:
				metrics.Read(objects)
				peak = max(peak, objects[0].Value.Uint64())
			case <-done:
				most <- peak
				return
			}
		}
	}()
	began := time.Now()
	var err error
	if args[0] == "Read" {
		err = readAll(args[1])
	} else {
		err = verifyAll(args[1])
	}
	if err != nil {
		return err
	}
	r := readReport{Seconds: time.Since(began).Seconds()}
	close(done)
	r.Heap = <-most
	if r.Resident, err = residentMost(); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

// residentMost is VmHWM of proc_pid_status(5), in bytes.
func residentMost() (int64, error) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, found := strings.CutPrefix(line, "VmHWM:"); found {
			kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			return kib << 10, err
		}
	}
	return 0, errors.New("no VmHWM in /proc/self/status")
}
