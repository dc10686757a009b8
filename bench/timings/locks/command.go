package locks

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/heirlock/heirlock/bench/timings/account"
)

const commands = 40 // of each round

// Command is a whole process that runs true(1) under a lock.
func Command(dir, root string, rounds int) error {
	empty, ours := filepath.Join(dir, "empty"), filepath.Join(dir, "heirlock")
	if err := os.WriteFile(empty+".go", []byte("package main\nfunc main() {}\n"), 0o600); err != nil {
		return err
	}
	for _, build := range [][]string{{"build", "-o", empty, empty + ".go"}, {"-C", root, "build", "-o", ours, "./cmd/heirlock"}} {
		cmd := exec.Command("go", build...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if text, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%w\n%s", err, text)
		}
	}
	const both = "flock, empty"
	argv := map[string]func(lock string) []string{
		"flock":    func(lock string) []string { return []string{"flock", lock, "true"} },
		"setlock":  func(lock string) []string { return []string{"setlock", lock, "true"} },
		"chpst -L": func(lock string) []string { return []string{"chpst", "-L", lock, "true"} },
		"run":      func(lock string) []string { return []string{ours, "run", lock, "--", "true"} },
		"exec":     func(lock string) []string { return []string{ours, "exec", lock, "--", "true"} },
	}
	names := []string{"true"}
	for _, name := range []string{"flock", "setlock", "chpst -L"} {
		if _, err := exec.LookPath(argv[name]("")[0]); err == nil {
			names = append(names, name)
		} else if name == "flock" {
			account.NotMeasured("whole processes beside flock(1)", "flock(1) is not installed")
			return nil
		}
	}
	names = append(names, both, "run", "exec")
	median, err := eachLocker(dir, "whole processes: true(1) under a lock", both, names, rounds, func(name, path string) ([]int64, error) {
		var took []int64
		for i := range commands {
			began, err := mono(), error(nil)
			switch name {
			case "true":
				err = exec.Command("true").Run()
			case both:
				if err = exec.Command("flock", path, "true").Run(); err == nil {
					err = exec.Command(empty).Run()
				}
			default:
				line := argv[name](fmt.Sprintf("%s-%d", path, i)) // exec leaves its name behind
				err = exec.Command(line[0], line[1:]...).Run()
			}
			if err != nil {
				return nil, err
			}
			took = append(took, mono()-began)
		}
		return took, nil
	})
	if err == nil {
		account.Goal("heirlock run, median ÷ (flock(1) and an empty Go program)", account.Ratio(median, "run", both), "≤", 1.2)
		account.Goal("heirlock exec, median ÷ (flock(1) and an empty Go program)", account.Ratio(median, "exec", both), "≤", 1.1)
	}
	return err
}
