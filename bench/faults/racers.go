package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	racerCount  = 64
	racerTries  = 5
	racerRounds = 30
)

var racerTime = 7 * time.Second // for each locker

// racer contends, at every line it reads, until one attempt let it in or it has tried often enough. Its argument is the
// locker's command as JSON, or the word of a library, with the path and the file of the critical section.
func racer(args []string) int {
	name, path, mark := args[0], args[1], args[2]
	var argv []string
	_ = json.Unmarshal([]byte(args[3]), &argv)
	in := bufio.NewScanner(os.Stdin)
	fmt.Println("READY")
	for in.Scan() {
		answer := "OUT"
		for range racerTries {
			if name != "" {
				answer = raceLibrary(name, path, mark)
			} else {
				answer = raceCommand(argv)
			}
			if answer != "OUT" {
				break
			}
		}
		fmt.Println("ANSWER", answer)
	}
	return 0
}

func raceLibrary(name, path, mark string) string {
	release, err := libraries[name](path, true)
	if err != nil {
		return "OUT"
	}
	defer release()
	f, err := os.OpenFile(mark, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if errors.Is(err, os.ErrExist) {
		return "DOUBLE"
	}
	f.Close()
	time.Sleep(3 * time.Millisecond)
	if os.Remove(mark) != nil {
		return "DOUBLE"
	}
	return "ONE"
}

func raceCommand(argv []string) string {
	out, _ := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	for _, word := range []string{"DOUBLE", "ONE"} {
		if strings.Contains(string(out), word) {
			return word
		}
	}
	return "OUT"
}

// racers counts the rounds in which two were inside at once.
func racers(s *stage) (outcome, error) {
	mark := filepath.Join(s.dir, "mark")
	argv, err := json.Marshal(s.try(s.path, []string{s.self, ":section", mark}))
	if err != nil {
		return outcome{}, err
	}
	var all []*crew
	for range racerCount {
		c, err := s.start([]string{s.self, ":racer", s.library, s.path, mark, string(argv)}, nil)
		if err != nil {
			return outcome{}, err
		}
		all = append(all, c)
	}
	for _, c := range all {
		if _, err := c.await("READY", 3*patience); err != nil {
			return outcome{}, err
		}
	}
	var rounds, twice, empty, in int
	for end := time.Now().Add(racerTime); rounds < racerRounds && (rounds == 0 || time.Now().Before(end)); rounds++ {
		ones, doubles, err := s.race(all, mark)
		if err != nil {
			return outcome{}, err
		}
		in += ones + doubles
		if doubles > 0 {
			twice++
		}
		if ones+doubles == 0 {
			empty++
		}
	}
	o := outcome{Word: recovers, Note: fmt.Sprintf("%d rounds, %d let in", rounds, in)}
	switch {
	case twice > 0:
		o.Word, o.Note = double, fmt.Sprintf("in %d of %d rounds", twice, rounds)
	case empty > 0:
		o.Word, o.Note = wedges, fmt.Sprintf("nobody was let in, in %d of %d rounds", empty, rounds)
	}
	return o, nil
}

// race is one round: a dead owner's lock, and all of them at once.
func (s *stage) race(all []*crew, mark string) (ones, doubles int, err error) {
	if err := os.RemoveAll(s.onDisk(s.path)); err != nil {
		return 0, 0, err
	}
	_ = os.Remove(mark)
	if err := s.leaveDead(s.path); err != nil {
		return 0, 0, err
	}
	for _, c := range all {
		if _, err := fmt.Fprintln(c.in, "go"); err != nil {
			return 0, 0, err
		}
	}
	for _, c := range all {
		text, err := c.await("ANSWER", 5*time.Minute)
		if err != nil {
			return 0, 0, err
		}
		switch text {
		case "ONE":
			ones++
		case "DOUBLE":
			doubles++
		}
	}
	return ones, doubles, nil
}
