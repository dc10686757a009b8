package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// The words of the matrix. Each is decided by who is alive and who was let in, never by what a locker says of itself.
const (
	recovers = "recovers"    // the owner is dead, and the contender was let in
	wedges   = "wedges"      // the owner is dead, and the contender was not
	refuses  = "refuses"     // the owner is at work, and the contender was not let in
	double   = "two holders" // the owner is at work, and the contender was let in
	takes    = "takes"       // there is no owner: it went over what lay there
	leaves   = "leaves alone"
	harms    = "harms"       // it changed or made a file that is not the lock
	cannot   = "cannot lock" // it did not take a lock that nobody had
	notRun   = "not run"
	absent   = "–" // this locker has no such case
)

// outcome is one cell.
type outcome struct {
	Word  string
	Who   bool   // the refusal named the owner
	Waits bool   // there was no answer within the limit
	Note  string // what else was seen
	Said  string // what the contender printed
}

func (o outcome) String() string {
	s := o.Word
	if o.Who {
		s += ", says who"
	}
	if o.Waits {
		s += ", hangs"
	}
	return s
}

// attempt is what came of a contender.
type attempt struct {
	*crew
	in   bool // it was let in, and is there until its input ends
	hung bool
}

// names reports whether a refusal names this process number.
func (a attempt) names(pid int) bool {
	return regexp.MustCompile(`\b` + strconv.Itoa(pid) + `\b`).MatchString(a.words())
}

// ofLive judges an attempt beside an owner that was at work before it, and must be now.
func ofLive(owner *crew, pid int, a attempt) (outcome, error) {
	if !owner.worker().alive() {
		return outcome{}, fmt.Errorf("the owner ended by itself: %s", owner.words())
	}
	o := outcome{Word: refuses, Who: !a.in && a.names(pid), Waits: a.hung, Said: a.words()}
	if a.in {
		o.Word = double
	}
	return o, nil
}

// ofDead judges an attempt after every process of the owner has ended.
func ofDead(pid int, a attempt) outcome {
	o := outcome{Word: wedges, Who: !a.in && a.names(pid), Waits: a.hung, Said: a.words()}
	if a.in {
		o.Word = recovers
	}
	return o
}

// shorten keeps a cell's text in one line.
func shorten(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > n {
		s = string(r[:n]) + "…"
	}
	return s
}
