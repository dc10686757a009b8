package journal

import (
	"path/filepath"
	"strings"
	"testing"
)

type (
	ring  *ring
	ringA *ringB
	ringB *ringA
	held  struct{ Rings map[string][]ring }
	node  struct {
		Next *node
		All  []*node
		More map[string]**node
	}
	Within struct {
		*Within
		Name string
	}
)

// reads reads one event, and returns the anomalies and the error.
func reads[T any](t *testing.T, event string) (anomalies int, last error) {
	t.Helper()
	path := inFile(t, filepath.Join(t.TempDir(), "j"), frameText(epochA, 1, event))
	for rec, err := range Read(t.Context(), []string{path}, ReadOptions[T]{}) {
		if last = err; rec.Anomaly != nil {
			anomalies++
		}
	}
	return anomalies, last
}

// A type that would overflow the stack is refused; one that merely contains itself is not.
func TestEndlessTypes(t *testing.T) {
	for name, read := range map[string]func(*testing.T, string) (int, error){
		"itself": reads[ring], "in turns": reads[ringA], "held": reads[held], "pointer to": reads[*held],
	} {
		for _, event := range []string{"7", "null", "{}"} {
			if _, err := read(t, event); err == nil || !strings.Contains(err.Error(), "nothing but pointers") {
				t.Errorf("%s, %s: %v", name, event, err)
			}
		}
	}
	deep := strings.Repeat(`{"Next":`, 5000) + `{"All":[null],"More":{"a":{}}}` + strings.Repeat("}", 5000)
	if anomalies, err := reads[node](t, deep); anomalies != 0 || err != nil {
		t.Errorf("node: %d anomalies, %v", anomalies, err)
	}
	if _, err := reads[Within](t, `{"Name":"a"}`); err != nil {
		t.Errorf("within: %v", err)
	}
}
