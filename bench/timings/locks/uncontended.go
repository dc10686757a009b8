package locks

import "github.com/heirlock/heirlock/bench/timings/account"

// Uncontended is acquire and release in one process, nobody else there.
func Uncontended(dir string, rounds int) error {
	median, err := eachLocker(dir, "acquire and release, nobody else there", "flock", withBare, rounds, func(name, path string) ([]int64, error) {
		return timed(func() error {
			release, err := lockers[name](path)
			if err == nil {
				err = release()
			}
			return err
		})
	})
	if err != nil {
		return err
	}
	most := 1.4
	if account.Filesystem() == "tmpfs" {
		most = 1.6
	}
	account.Goal("acquire and release, median ÷ bare", account.Ratio(median, "heirlock", "bare"), "≤", most)
	return nil
}
