package house

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	root   = "../.."
	module = "github.com/heirlock/heirlock"
)

var update = flag.Bool("update", false, "write testdata/api.txt anew")

// file is one Go file of this module.
type file struct {
	name    string // relative to the root, with slashes
	dir     string // of it, "." for the root
	test    bool
	tagged  bool // by a //go:build line
	lines   int
	set     *token.FileSet
	tree    *ast.File
	imports []string
}

// house reads every Go file of the module, for all platforms at once. A directory with a go.mod is another module.
func house(t *testing.T) []file {
	t.Helper()
	var files []file
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := entry.Name()
		if entry.IsDir() && name != root {
			_, err := os.Stat(filepath.Join(name, "go.mod"))
			if err == nil || base == "testdata" || base[0] == '.' || base[0] == '_' {
				return fs.SkipDir
			}
		}
		if entry.IsDir() || !strings.HasSuffix(base, ".go") {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		f := file{set: token.NewFileSet(), test: strings.HasSuffix(base, "_test.go"), lines: bytes.Count(text, []byte("\n"))}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		f.name = filepath.ToSlash(rel)
		f.dir = path.Dir(f.name)
		if f.tree, err = parser.ParseFile(f.set, name, text, parser.ParseComments|parser.SkipObjectResolution); err != nil {
			return err
		}
		for _, i := range f.tree.Imports {
			p, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			f.imports = append(f.imports, p)
		}
		for _, group := range f.tree.Comments {
			for _, c := range group.List {
				f.tagged = f.tagged || constraint.IsGoBuild(c.Text) || constraint.IsPlusBuild(c.Text)
			}
		}
		files = append(files, f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 30 {
		t.Fatalf("only %d Go files found: this test would test nothing", len(files))
	}
	return files
}

// mayImport says which of our packages a package's product code may import; "x/" stands for everything below x too.
// A package that is missing here has no place in the house yet.
var mayImport = map[string][]string{
	"internal/kernel":        nil,
	"internal/kernel/jobctl": {"internal/kernel"},
	"process":                {"internal/kernel"},
	".":                      {"internal/kernel", "process"},
	"journal":                {"internal/kernel", "process", "."},
	"journal/slogjournal":    {"journal", "process", "."},
	"cmd/heirlock":           {"journal", "journal/slogjournal", "process", ".", "internal/kernel/jobctl"},
	"internal/house":         nil,
	"model":                  nil,
}

// cmd → journal → heirlock → process → internal/kernel, never back. The command uses the public packages, and job
// control, which is no business of the library.
func TestImportDirection(t *testing.T) {
	for _, f := range house(t) {
		allowed, known := mayImport[f.dir]
		if !known {
			t.Errorf("%s: say in mayImport where package %s stands", f.name, f.dir)
		}
		for _, p := range f.imports {
			ours := strings.TrimPrefix(strings.TrimPrefix(p, module), "/")
			if p == module {
				ours = "."
			}
			if isOurs := p == module || strings.HasPrefix(p, module+"/"); isOurs && !f.test && !slices.Contains(allowed, ours) {
				t.Errorf("%s imports %s", f.name, p)
			}
		}
	}
}

// platform matches the file name suffixes that the go command reads as build tags.
var platform = regexp.MustCompile(`_(aix|android|darwin|dragonfly|freebsd|illumos|ios|js|linux|netbsd|openbsd|plan9|solaris|wasip1|windows|` +
	`386|amd64|arm|arm64|loong64|mips|mips64|mips64le|mipsle|ppc64|ppc64le|riscv64|s390x|wasm)\.go$`)

// Everything that depends on the platform is in internal/kernel.
func TestBuildTags(t *testing.T) {
	kernel := 0
	for _, f := range house(t) {
		below := f.dir == "internal/kernel" || strings.HasPrefix(f.dir, "internal/kernel/")
		switch tagged := f.tagged || platform.MatchString(f.name); {
		case tagged && below:
			kernel++
		case tagged && !f.test:
			t.Errorf("%s: build tags are for internal/kernel", f.name)
		}
	}
	if kernel < 10 {
		t.Errorf("only %d files with build tags found: this test does not see them", kernel)
	}
}

// The decisions and the codecs are functions of their arguments.
func TestPureFiles(t *testing.T) {
	found := map[string]int{}
	for _, f := range house(t) {
		for _, pattern := range []string{"record*.go", "verdict*.go", "explain.go", "process/compare*.go", "journal/frame*.go"} {
			if ok, _ := path.Match(pattern, f.name); !ok || f.test {
				continue
			}
			found[pattern]++
			for _, p := range f.imports {
				for _, impure := range []string{"os", "syscall", "time", "golang.org/x/sys"} {
					if p == impure || strings.HasPrefix(p, impure+"/") {
						t.Errorf("%s imports %s", f.name, p)
					}
				}
			}
		}
	}
	if len(found) < 5 {
		t.Errorf("pure files found: %v", found)
	}
}

// Functions stay readable: 60 lines at most, and nine of ten have at most 35.
func TestFunctionLength(t *testing.T) {
	var lengths []int
	for _, f := range house(t) {
		for _, decl := range f.tree.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || f.test {
				continue
			}
			n := f.set.Position(fn.End()).Line - f.set.Position(fn.Pos()).Line + 1
			if lengths = append(lengths, n); n > 60 {
				t.Errorf("%s: %s has %d lines, at most 60", f.name, fn.Name.Name, n)
			}
		}
	}
	slices.Sort(lengths)
	if p90 := lengths[len(lengths)*9/10]; p90 > 35 {
		t.Errorf("nine functions of ten have up to %d lines, at most 35", p90)
	}
}

// vague are names of roles; a name says what is in there, and so what is not.
var vague = regexp.MustCompile(`(?i)(^|[^a-z])(manager|helper|util|common|handler|service|shared)s?([^a-z]|$)`)

func TestNames(t *testing.T) {
	for _, f := range house(t) {
		if vague.MatchString(f.name) || vague.MatchString(f.tree.Name.Name) {
			t.Errorf("%s (package %s): the name names a role", f.name, f.tree.Name.Name)
		}
	}
	for name, want := range map[string]bool{"a/util.go": true, "lock_helpers_test.go": true, "shared/x.go": true, "uncommon.go": false, "filesystem.go": false} {
		if vague.MatchString(name) != want {
			t.Errorf("%s: vague is %v", name, !want)
		}
	}
}

// exported prints what a package exports, one declaration after the other in the order of their text, and counts the
// names at its top level.
func exported(t *testing.T, files []file, dir string) (text []byte, names int) {
	t.Helper()
	var decls []string
	for _, f := range files {
		if f.dir != dir || f.test {
			continue
		}
		tree, err := parser.ParseFile(f.set, filepath.Join(root, f.name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.FileExports(tree)
		ast.Inspect(tree, func(n ast.Node) bool {
			if s, ok := n.(*ast.StructType); ok {
				s.Incomplete = false
			}
			return true
		})
		for _, decl := range tree.Decls {
			var parts []ast.Decl
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Body = nil; d.Recv == nil {
					names++
				}
				parts = append(parts, d)
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if d.Tok == token.IMPORT {
						continue
					}
					names++
					if v, ok := spec.(*ast.ValueSpec); ok {
						if names += len(v.Names) - 1; d.Tok == token.VAR {
							v.Values = nil
						}
					}
					parts = append(parts, &ast.GenDecl{Tok: d.Tok, Specs: []ast.Spec{spec}})
				}
			}
			for _, part := range parts {
				var b bytes.Buffer
				if err := (&printer.Config{Mode: printer.UseSpaces, Tabwidth: 4}).Fprint(&b, token.NewFileSet(), part); err != nil {
					t.Fatal(err)
				}
				decls = append(decls, b.String()+"\n")
			}
		}
	}
	slices.Sort(decls)
	return []byte(strings.Join(decls, "")), names
}

// What the packages export is a file, so that growth is a line in a diff: go test ./internal/house -update.
func TestExportedAPI(t *testing.T) {
	files := house(t)
	var got bytes.Buffer
	for _, dir := range []string{".", "process", "journal", "journal/slogjournal"} {
		if text, names := exported(t, files, dir); names > 0 {
			fmt.Fprintf(&got, "# %s: %d names\n\n%s\n", path.Join(module, dir), names, text)
			if names > 20 && (dir == "." || dir == "journal") {
				t.Errorf("package %s exports %d names, at most 20", dir, names)
			}
		}
	}
	const golden = "testdata/api.txt"
	if *update {
		if err := os.WriteFile(golden, got.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("the exported API changed; if that is meant: go test ./internal/house -update\n got\n%s\nwant\n%s", &got, want)
	}
}

// Every platform that we claim compiles, tests included.
func TestVet(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles everything once for each platform")
	}
	for _, goos := range []string{"linux", "darwin", "freebsd", "windows"} {
		t.Run(goos, func(t *testing.T) {
			vet := exec.Command("go", "vet", "./...")
			vet.Dir, vet.Env = root, append(os.Environ(), "GOOS="+goos, "GOARCH=amd64", "CGO_ENABLED=0")
			if out, err := vet.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// required lists the modules that a go.mod requires directly.
func required(text []byte) []string {
	var out []string
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		if len(words) == 2 && strings.HasPrefix(words[1], "v") && strings.Contains(words[0], ".") {
			out = append(out, words[0])
		}
	}
	return out
}

// Benchmarks against other locks are a module of their own, so that nobody who uses this one downloads rivals.
func TestRivals(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	ours := required(text)
	if !slices.Contains(ours, "golang.org/x/sys") {
		t.Fatalf("go.mod read as %q", ours)
	}
	rival := regexp.MustCompile(`(flock|fslock|lockfile|filemutex|fsmutex|pidfile|lumberjack|rotatelogs|tidwall/wal|raft-wal)`)
	for _, m := range ours {
		if rival.MatchString(m) {
			t.Errorf("go.mod requires %s", m)
		}
	}
	if _, err := os.Stat(filepath.Join(root, "bench")); err != nil {
		return // not built yet
	}
	text, err = os.ReadFile(filepath.Join(root, "bench", "go.mod"))
	if err != nil {
		t.Fatalf("bench is not a module of its own: %v", err)
	}
	rivals := 0
	for _, m := range required(text) {
		if rival.MatchString(m) {
			rivals++
		}
	}
	if rivals == 0 {
		t.Errorf("no rival found in bench/go.mod: %q", required(text))
	}
}

// Files stay readable too.
func TestFileLength(t *testing.T) {
	for _, f := range house(t) {
		if f.lines > 300 && !f.test {
			t.Errorf("%s has %d lines, at most 300", f.name, f.lines)
		}
	}
}

// The tests that docs/compat-tests.md names exist.
func TestCompatTestsExist(t *testing.T) {
	page, err := os.ReadFile("../../docs/compat-tests.md")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`(Test[A-Za-z0-9]+)`").FindAllSubmatch(page, -1)
	if len(named) < 20 {
		t.Fatalf("only %d tests are named", len(named))
	}
	var sources []byte
	for _, dir := range []string{"../..", "../../process", "../../journal", "../kernel", "../../cmd/heirlock"} {
		files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			sources = append(sources, text...)
		}
	}
	for _, name := range named {
		if !bytes.Contains(sources, []byte("func "+string(name[1])+"(")) {
			t.Errorf("there is no %s", name[1])
		}
	}
}
