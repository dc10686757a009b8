package main

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// series is all that was measured of one locker, in nanoseconds, sorted.
type series struct {
	what, name string
	took       []int64
}

// taken is every measurement of this run, in its order.
var taken []series

func note(what, name string, took []int64) {
	took = slices.Clone(took)
	slices.Sort(took)
	taken = append(taken, series{what, name, took})
}

func (s *series) at(q float64) float64 {
	return float64(s.took[min(int(q*float64(len(s.took))), len(s.took)-1)]) / 1e6
}

var titles = map[string]string{
	"uncontended": "acquire and release, nobody else there",
	"handoff":     "release → held by the one waiter, another process",
	"kill":        "SIGKILL of the owner → held by the one waiter",
	"crowd":       "wait of 64 processes that take it 200 times each, 1 ms of work",
}

// write puts the table and the picture of this run into a directory.
func write(dir string) error {
	var uts unix.Utsname
	_ = unix.Uname(&uts)
	var fs unix.Statfs_t
	_ = unix.Statfs(os.TempDir(), &fs)
	commit, _ := exec.Command("git", "rev-parse", "--short", "HEAD").Output()
	var b strings.Builder
	fmt.Fprintf(&b, `# Timings

Written by `+"`go -C bench run ./timings -docs ../docs`"+` at %s on %s: Linux %s, %d processors (%s), temporary directory on
filesystem type %x, %s. Milliseconds. No figure is written by hand; the machine is one that others use, so compare within the table.
`+"`flock`"+` is flock(2) blocked in a Go program; `+"`bare`"+` is the system calls alone of a lock file that goes and comes by name. The journal's
figures: `+"`go -C bench run ./journal`"+`.

![distributions](timings.svg)

`, strings.TrimSpace(string(commit)), time.Now().UTC().Format(time.DateOnly), unix.ByteSliceToString(uts.Release[:]), runtime.NumCPU(), model(), fs.Type, runtime.Version())
	last, base := "", 0.0
	for _, s := range taken {
		if s.what != last {
			fmt.Fprintf(&b, "\n## %s\n\n| | n | median | p90 | p99 | most | median × flock |\n| --- | --- | --- | --- | --- | --- | --- |\n", titles[s.what])
			last, base = s.what, s.at(0.5)
		}
		fmt.Fprintf(&b, "| %s | %d | %.4g | %.4g | %.4g | %.4g | %.2f |\n", s.name, len(s.took), s.at(0.5), s.at(0.9), s.at(0.99), s.at(1), s.at(0.5)/base)
	}
	if err := os.WriteFile(filepath.Join(dir, "timings.md"), []byte(b.String()), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "timings.svg"), []byte(picture()), 0o644)
}

// model is what the processor calls itself.
func model() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if name, value, found := strings.Cut(line, ":"); found && strings.HasPrefix(name, "model name") {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

const (
	panelWidth, panelHeight = 520, 190
	plotLeft, plotTop       = 50, 34
)

var hues = []string{"#1f883d", "#2f6fb5", "#b36b00", "#d0342c", "#a1239b", "#6e7681"}

// picture draws for each measurement how many of the samples were done after so long: the axis of time is logarithmic.
func picture() string {
	var whats []string
	for _, s := range taken {
		if !slices.Contains(whats, s.what) {
			whats = append(whats, s.what)
		}
	}
	var b strings.Builder
	width, height := panelWidth+110, len(whats)*(panelHeight+plotTop+40)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="system-ui, sans-serif" font-size="12" role="img">`+"\n", width, height, width, height)
	b.WriteString("<title>How long locks take, distributions</title>\n<style>.t { fill: #57606a } .g { stroke: #8a8f98; stroke-opacity: .35 } " +
		"@media (prefers-color-scheme: dark) { .t { fill: #c9d1d9 } }</style>\n")
	for i, what := range whats {
		panel(&b, what, float64(i*(panelHeight+plotTop+40)))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func panel(b *strings.Builder, what string, top float64) {
	var drawn []series
	low, high := math.Inf(1), math.Inf(-1)
	for _, s := range taken {
		if s.what == what {
			drawn = append(drawn, s)
			low, high = min(low, math.Log10(max(s.at(0), 1e-4))), max(high, math.Log10(max(s.at(1), 1e-4)))
		}
	}
	low, high = math.Floor(low), math.Ceil(high)
	x := func(ms float64) float64 {
		return plotLeft + (math.Log10(max(ms, 1e-4))-low)/(high-low)*(panelWidth-plotLeft)
	}
	y := func(q float64) float64 { return top + plotTop + (1-q)*panelHeight }
	fmt.Fprintf(b, "<text class=\"t\" x=\"%d\" y=\"%.0f\" font-weight=\"bold\">%s</text>\n", plotLeft, top+18, titles[what])
	for decade := low; decade <= high; decade++ {
		at := x(math.Pow(10, decade))
		fmt.Fprintf(b, "<line class=\"g\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/><text class=\"t\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%g ms</text>\n",
			at, y(1), at, y(0), at, y(0)+16, math.Pow(10, decade))
	}
	for _, q := range []float64{0, 0.5, 0.9, 1} {
		fmt.Fprintf(b, "<line class=\"g\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/><text class=\"t\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.0f %%</text>\n",
			plotLeft, y(q), panelWidth, y(q), plotLeft-6, y(q)+4, q*100)
	}
	for i, s := range drawn {
		hue := hues[i%len(hues)]
		fmt.Fprintf(b, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.8\" points=\"", hue)
		for q := 0.0; q <= 1; q += 0.01 {
			fmt.Fprintf(b, "%.1f,%.1f ", x(s.at(q)), y(q))
		}
		fmt.Fprintf(b, "\"/>\n<text fill=\"%s\" x=\"%d\" y=\"%.1f\">%s</text>\n", hue, panelWidth+10, top+plotTop+12+float64(i)*18, s.name)
	}
}
