package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

var update = flag.Bool("update", false, "write docs/man anew")

// The manual pages in docs/man are made from the definitions of the commands: `go test ./cmd/heirlock -run Manual -update`.
func TestManualPages(t *testing.T) {
	const dir = "../../docs/man"
	root := newRoot(nil, nil)
	root.DisableAutoGenTag = true
	if completion, _, err := root.Find([]string{"completion"}); err == nil { // it has no page
		root.RemoveCommand(completion)
	}
	root.InitDefaultVersionFlag()
	root.Long += "\n\nCommands:"
	for _, cmd := range root.Commands() {
		root.Long += fmt.Sprintf("\n  %-10s  %s", cmd.Name(), cmd.Short)
	}
	day := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	pages := map[string][]byte{}
	for _, cmd := range all(root) {
		if cmd.Hidden || cmd.Name() == "help" {
			continue
		}
		var page bytes.Buffer
		header := &doc.GenManHeader{Section: "1", Source: "heirlock", Manual: "heirlock", Date: &day}
		if err := doc.GenMan(cmd, header, &page); err != nil {
			t.Fatal(err)
		}
		pages[strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1"] = page.Bytes()
	}
	if len(pages) != 10 {
		t.Fatalf("%d pages, want heirlock, its six verbs and the three of journal", len(pages))
	}
	for name, page := range pages {
		path := filepath.Join(dir, name)
		if *update {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, page, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if written, err := os.ReadFile(path); err != nil || !bytes.Equal(written, page) {
			t.Errorf("%s is not what the definitions say (%v): run the test with -update", path, err)
		}
	}
}

// all is a command and everything below it.
func all(cmd *cobra.Command) []*cobra.Command {
	cmds := []*cobra.Command{cmd}
	for _, below := range cmd.Commands() {
		cmds = append(cmds, all(below)...)
	}
	return cmds
}
