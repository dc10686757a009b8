package heirlock_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/heirlock/heirlock"
)

// A sweep removes what a dead process of ours left: a file under our exact name that holds nothing yet, a part of a record,
// or the record it is named after. Nothing else under such a name is its business, flocked or not.
func TestRaceSweepLeavesStrangersAlone(t *testing.T) {
	dir := t.TempDir()
	const id, other = "01a22dd5-fe60-7d9b-bf6f-efde677648f4", "01a22dd5-fe60-7d9b-bf6f-efde677648f5"
	record := func(acquisition string) string {
		return `{"pid":7,"process":null,"host":"h","acquiredAt":"t","evidence":{"acquisition":"` + acquisition + `","file":{"fs":"","dev":"","ino":""}}}` + "\n"
	}
	stay := map[string]string{
		".heirlock-my-important-notes-of-2026-and-later": "", // as long as one of ours
		".heirlock-01A22DD5-FE60-7D9B-BF6F-EFDE677648F4": "",
		".heirlock-" + id[:35]:                           "",
		".heirlock-" + id + "-3":                         "",
		".heirlock-" + other:                             record(id), // somebody's lock
		".heirlock-01a22dd5-fe60-7d9b-bf6f-efde677648f6": `{"pid":7}`,
		".lock-" + id + ".tmp":                           "",
	}
	for name, content := range stay {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range map[string]string{
		".heirlock-" + id: record(id), ".heirlock-" + id + "-2": record(id),
		".heirlock-01a22dd5-fe60-7d9b-bf6f-efde677648f7": "", ".heirlock-01a22dd5-fe60-7d9b-bf6f-efde677648f8": `{"pid":4242,"proc`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := heirlock.Reclaim(filepath.Join(dir, "x.lock"), "", heirlock.Options{}); err != nil {
		t.Fatal(err)
	}
	var left []string
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		left = append(left, e.Name())
		if _, ok := stay[e.Name()]; !ok {
			t.Errorf("%s was left", e.Name())
		}
	}
	for name := range stay {
		if !slices.Contains(left, name) {
			t.Errorf("%s was removed", name)
		}
	}
	if _, err := heirlock.TryAcquire(filepath.Join(dir, ".heirlock-"+id), heirlock.Options{}); err == nil {
		t.Error("a lock has the name of a temporary")
	}
}
