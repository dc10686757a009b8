package main

import (
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

// A broken copy is an edit of the product's source: when that changes, the edit must change with it, or it breaks nothing.
func TestBreakagesApply(t *testing.T) {
	keys := map[string]bool{}
	for _, sc := range scenarios() {
		keys[sc.key] = true
	}
	for _, b := range breakages {
		if _, err := b.overlay("../..", t.TempDir()); err != nil {
			t.Errorf("%s: %v", b.name, err)
		}
		if !keys[b.rows] {
			t.Errorf("%s: there is no row %q", b.name, b.rows)
		}
	}
}

// Every row has a key of its own and owes a word that its play can find, for every form of heirlock.
func TestScenarios(t *testing.T) {
	var names []string
	for _, l := range lockers("/self", "/cli", "/base") {
		names = append(names, l.name)
	}
	seen := map[string]bool{}
	for _, sc := range scenarios() {
		if seen[sc.key] || sc.title == "" || sc.text == "" {
			t.Errorf("row %q occurs twice, or says nothing", sc.key)
		}
		seen[sc.key] = true
		for form, word := range sc.but {
			if !slices.Contains(names, form) {
				t.Errorf("row %q speaks of %q, which is no locker", sc.key, form)
			}
			if word == double || sc.want == double {
				t.Errorf("row %q allows two holders", sc.key)
			}
		}
		if !sc.deviates("heirlock run", outcome{Word: double}) || sc.deviates("heirlock run", outcome{Word: sc.owes("heirlock run")}) {
			t.Errorf("row %q: two holders pass, or what is owed does not", sc.key)
		}
	}
	if len(seen) < 30 {
		t.Errorf("%d rows", len(seen))
	}
}

// A table with one wrong cell fails, one with none passes, and its picture is well-formed with a letter in each cell.
func TestVerdictAndPicture(t *testing.T) {
	l := &locker{name: `heirlock <&> "run"`, group: groupOurs}
	rows := []scenario{{key: "a", title: "one <row>", want: recovers}}
	for word, want := range map[string]int{recovers: 0, wedges: 1, double: 1, notRun: 2} {
		o := outcome{Word: word}
		table := &table{rows: rows, columns: []*locker{l}, cells: map[string]cell{"a\x00" + l.name: {outcome: o, wrong: rows[0].deviates(l.name, o)}}}
		if got := table.verdict(); got != want {
			t.Errorf("%s: exit status %d, want %d", word, got, want)
		}
		d := xml.NewDecoder(strings.NewReader(table.picture()))
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", word, err)
			}
		}
		if _, letter := look(word); letter == "?" || !strings.Contains(table.picture(), ">"+letter+"</text>") {
			t.Errorf("%s has no letter in the picture", word)
		}
	}
}
