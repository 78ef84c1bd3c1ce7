// Package imports_test holds the rules of the repository as a whole: who may
// import whom, what no file may say, and what starting the program may cost.
package imports_test

import (
	"bytes"
	"go/parser"
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

// allowed lists the packages of this module, and which of the others each may
// import. A consumer that could import an implementation of
// transport.Transport would sooner or later depend on it. Tests may import
// anything.
var allowed = map[string][]string{
	".":                       nil,
	"hosts":                   {"internal/document", "internal/phrase", "internal/printed"},
	"transport":               nil,
	"transport/local":         {"transport"},
	"transport/ssh":           {"internal/phrase", "internal/regular", "transport"},
	"transport/transporttest": {"internal/sshdtest", "transport"},
	"session":                 {"internal/ends", "internal/screen", "transport"},
	"internal/screen":         nil,
	"internal/socket":         {"internal/phrase", "transport"},
	"internal/transcript":     {"internal/phrase"},
	"internal/statements":     nil,
	"internal/phrase":         nil,
	"internal/ends":           {"internal/phrase"},
	"internal/printed":        nil,
	"internal/regular":        nil,
	"session/conformance":     {"session"},
	"gateway":                 {"hosts", "session", "transport", "transport/local", "transport/ssh", "internal/ends", "internal/phrase", "internal/printed", "internal/regular", "internal/statements"},
	"daemon":                  {"daemon/api", "gateway", "hosts", "internal/fdpass", "internal/phrase", "internal/transcript", "session", "transport"},
	"fleet":                   {"gateway", "session", "transport"},
	"runs":                    {"internal/phrase", "transport"},
	"transfer":                {"gateway", "internal/phrase", "transport"},
	"daemon/api":              {"gateway", "internal/phrase", "session", "transport"},
	"daemon/client":           {"daemon/api", "gateway", "session", "transport", "internal/fdpass", "internal/socket"},
	"mcpserver":               {"daemon/api", "daemon/client", "gateway", "hosts", "internal/phrase", "session", "transfer", "transport"},
	"script":                  {"fleet", "gateway", "hosts", "internal/document", "internal/ends", "internal/phrase", "internal/redact", "session", "transfer", "transport"},
	"script/report":           {"fleet", "gateway", "internal/phrase", "internal/redact", "script"},
	"internal/document":       {"internal/phrase", "internal/regular"},
	"internal/fdpass":         nil,
	"internal/redact":         {"internal/phrase"},
	"internal/config":         {"hosts", "internal/document"},
	"cmd/gateway":             {"daemon", "daemon/api", "daemon/client", "fleet", "gateway", "hosts", "internal/config", "internal/ends", "internal/phrase", "internal/redact", "internal/regular", "internal/socket", "internal/statements", "mcpserver", "runs", "script", "script/report", "session", "transfer", "transport"},
	// For tests and measuring only, so nothing above names them.
	"bench":             {"bench/count", "bench/lab", "bench/peer", "bench/report", "bench/work"},
	"bench/count":       {"bench/lab", "session", "transport", "transport/local"},
	"bench/lab":         {"gateway", "hosts", "internal/netsim", "internal/sshdtest", "transport"},
	"bench/peer":        {"bench/lab", "daemon/api", "daemon/client", "gateway", "session", "transport", "transport/local"},
	"bench/report":      {"bench/peer", "bench/rounds", "bench/work"},
	"bench/rounds":      nil,
	"bench/work":        {"bench/lab", "bench/peer", "bench/rounds"},
	"compare":           nil,
	"integration":       nil,
	"internal/netsim":   nil,
	"internal/sshdtest": nil,
}

// forbidden are words of somebody's machine.
var forbidden = []string{"/work/", "/Users/", "/root/"}

// A source is one Go file of the module, for whatever platform it is.
type source struct {
	path, pkg string // relative to the module, with slashes
	text      []byte
}

func (s source) test() bool { return strings.HasSuffix(s.path, "_test.go") }

// sources reads the tree itself and does not ask go list, which would leave out
// the files for other platforms.
func sources(t *testing.T) []source {
	t.Helper()
	var all []source
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && file != "." && (strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata"):
			return fs.SkipDir
		case d.IsDir() || path.Ext(name) != ".go":
			return nil
		}
		text, err := os.ReadFile(file)
		file = filepath.ToSlash(file)
		all = append(all, source{file, path.Dir(file), text})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestImports(t *testing.T) {
	imported := make(map[string]map[string]bool) // by package
	for _, file := range sources(t) {
		may, known := allowed[file.pkg]
		if imported[file.pkg] == nil {
			imported[file.pkg] = make(map[string]bool)
			if !known {
				t.Errorf("%s: the table of this test does not know the package", file.pkg)
			}
		}
		if file.test() || !known {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file.path, file.text, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range parsed.Imports {
			name, _ := strconv.Unquote(spec.Path.Value)
			ours, ok := strings.CutPrefix(name, "gateway/")
			if ok && !slices.Contains(may, ours) {
				t.Errorf("%s imports %s; %s may import %q", file.path, ours, file.pkg, may)
			}
			imported[file.pkg][ours] = ok
		}
	}
	for pkg, may := range allowed {
		for _, name := range may {
			if !imported[pkg][name] {
				t.Errorf("the table of this test lets %s import %s, which it does not", pkg, name)
			}
		}
	}
}

func TestForbiddenWords(t *testing.T) {
	for _, file := range sources(t) {
		if file.test() {
			continue
		}
		for _, word := range forbidden {
			if bytes.Contains(file.text, []byte(word)) {
				t.Errorf("%s mentions %q", file.path, word)
			}
		}
	}
}

// What the init functions and variables of one package may allocate. A dependency that
// computes a table there costs every run of the program, before main: go-runewidth once
// took 21 ms of 28 (mattn/go-runewidth#104).
const (
	maxInitBytes  = 512 << 10
	maxInitAllocs = 3000
)

// initLine is one package in the report of GODEBUG=inittrace=1; see package
// runtime, "Environment Variables".
var initLine = regexp.MustCompile(`(?m)^init (\S+) @\S+ ms, \S+ ms clock, (\d+) bytes, (\d+) allocs$`)

func TestStartup(t *testing.T) {
	program := filepath.Join(t.TempDir(), "gateway")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", program, "./cmd/gateway")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as it is released
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	run := exec.Command(program, "--help")
	run.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("gateway --help: %v\n%s", err, out)
	}
	packages := initLine.FindAllSubmatch(out, -1)
	if len(packages) == 0 {
		t.Fatalf("no report of GODEBUG=inittrace=1 in:\n%s", out)
	}
	for _, match := range packages {
		size, _ := strconv.Atoi(string(match[2]))
		allocs, _ := strconv.Atoi(string(match[3]))
		if size > maxInitBytes || allocs > maxInitAllocs {
			t.Errorf("init of %s allocates %d bytes, %d times, want at most %d and %d", match[1], size, allocs, maxInitBytes, maxInitAllocs)
		}
	}
}
