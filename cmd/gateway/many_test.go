package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/creack/pty"
	"pgregory.net/rapid"

	"gateway/gateway"
	"gateway/internal/sshdtest"
	"gateway/runs"
	"gateway/session"
	"gateway/transfer"
)

// Lines come out the same, however they are cut.
func TestLines(t *testing.T) {
	all := func(text []byte, cuts ...int) string {
		l := lines{label: []byte("a | ")}
		var out []byte
		at := 0
		for _, cut := range append(cuts, len(text)) {
			out = append(out, l.take(text[at:cut])...)
			at = cut
		}
		return string(append(out, l.rest()...))
	}
	for _, test := range []struct{ text, want string }{
		{"", ""},
		{"a\nb", "a | a\na | b\n"},
		{"\n\n", "a | \na | \n"},
		{"a\r\n\r\nb\r\n", "a | a\na | \na | b\n"},
		{"\r10%\r\r20%\r\ndone\r", "a | 10%\na | 20%\na | done\n"},
		{strings.Repeat("x", maxPending+3) + "\n", "a | " + strings.Repeat("x", maxPending) + "\na | xxx\n"},
		{strings.Repeat("x", maxPending-1) + "€\n", "a | " + strings.Repeat("x", maxPending-1) + "\na | €\n"},
		{strings.Repeat("x", maxPending-3) + "\x1b[31mred", "a | " + strings.Repeat("x", maxPending-3) + "\na | \x1b[31mred\n"},
		{strings.Repeat("x", maxPending) + "\r\n", "a | " + strings.Repeat("x", maxPending) + "\n"},
	} {
		if got := all([]byte(test.text)); got != test.want {
			t.Errorf("%.40q: got %.80q, want %.80q", test.text, got, test.want)
		}
		for i := range min(len(test.text), 40) {
			if got := all([]byte(test.text), i); got != test.want {
				t.Errorf("%.40q cut at %d: got %.80q, want %.80q", test.text, i, got, test.want)
			}
		}
	}
}

// However text is cut, its pieces are text, and nothing is lost of what is none.
func TestCharacters(t *testing.T) {
	for _, test := range []struct {
		text string
		want bool // all pieces are text
	}{
		{"plain", true},
		{"aüb€c😀d", true},
		{"a\xffb", false},
		{"a\xe2\x82", false},
	} {
		for i := range len(test.text) {
			var c characters
			var got []byte
			text := true
			for _, piece := range [][]byte{c.next([]byte(test.text[:i])), c.next([]byte(test.text[i:])), c.rest(), c.rest()} {
				got = append(got, piece...)
				text = text && utf8.Valid(piece)
			}
			if string(got) != test.text || text != test.want {
				t.Errorf("%q cut at %d: got %q, text %v, want %v", test.text, i, got, text, test.want)
			}
		}
	}
}

func TestSanitize(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"plain\ttext ü", "plain\ttext ü"},
		{"\x1b[31mred", "\x1b[31mred\x1b[0m"},
		{"a\x1b[2J\x1b[1;1H\x1b[Kb", "ab"},
		{"a\x1b]0;title\x07b\x1b]8;;x\x1b\\c", "abc"},
		{"a\x08\x07\x0b\x7f\u009b2Jb", "a2Jb"},
		{"x\u009b2J", "x2J"},
		{"a\x1b[3", "a3"},
		{"a\x1b", "a"},
		{"\x1bcreset", "reset"},
		{"\x1b\x1b[31mx", "\x1b[31mx\x1b[0m"},
	} {
		if got := string(sanitize([]byte(test.text))); got != test.want {
			t.Errorf("sanitize(%q) = %q, want %q", test.text, got, test.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.SampledFrom([]rune("\x1b[]0;mKx\x07\\\x9b")), 0, 20, -1).Draw(t, "text")
		left := regexp.MustCompile(`\x1b\[[0-9;:]*m`).ReplaceAllString(string(sanitize([]byte(text))), "")
		if strings.ContainsAny(left, "\x1b\x07\u009b") {
			t.Errorf("sanitize(%q) leaves %q", text, left)
		}
	})
}

// TestSanitizer: it does not matter where a stream is cut.
func TestSanitizer(t *testing.T) {
	const text = "1\x1b[6n2\x1b[?1049h\x1b[31mred\x1b[0m\x1b]11;?\x1b\\3\x1bP$qm\x1b\\ü4\x1b]0;t\x07\u009b6n5\r10%\r20%\r\n6\x05\x1b[cé\n\x1b[5"
	const want = "12red3ü46n5\n10%\n20%\n6é\n5"
	colours := regexp.MustCompile(`\x1b\[[0-9;]*m`)
	for i := range len(text) {
		for j := i; j < len(text); j++ {
			s := new(sanitizer)
			var got []byte
			for _, piece := range []string{text[:i], text[i:j], text[j:]} {
				got = append(got, s.take([]byte(piece))...)
			}
			got = append(got, s.flush()...)
			if left := colours.ReplaceAllString(string(got), ""); left != want || !strings.Contains(string(got), "\x1b[31mred\x1b[0m") && i == j {
				t.Fatalf("cut at %d and %d: got %q", i, j, got)
			}
		}
	}
	s := new(sanitizer)
	endless := s.take([]byte("\x1b]" + strings.Repeat("x", 2*maxSequence)))
	if len(s.rest) > 0 || len(endless) > 0 {
		t.Errorf("a string without an end: %d bytes shown, %d kept", len(endless), len(s.rest))
	}
}

// A host that is given up may still write.
func TestOutputAfterTheEnd(t *testing.T) {
	a := &app{}
	dir := filepath.Join(t.TempDir(), "logs")
	out, err := a.openOut(dir)
	if err != nil {
		t.Fatal(err)
	}
	gathered := newGatherView(nil, []string{"web1"}, false)
	write := out.tee("web1", func(from session.Stream, b []byte) { gathered.output(0, from, b) })
	write(session.Stdout, []byte("in time\n"))
	var late sync.WaitGroup
	for _, from := range []session.Stream{session.Stdout, session.Stderr} {
		late.Go(func() {
			for range 1000 {
				write(from, []byte("more\n"))
			}
		})
	}
	r := gateway.Result{Host: "web1", Result: session.Result{Verdict: session.Unknown}}
	out.result("web1", r)
	gathered.done(0, r)
	read := func() string {
		text, err := os.ReadFile(filepath.Join(dir, "web1.stdout"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	before := read()
	late.Wait()
	write(session.Stdout, []byte("late\n"))
	if after := read(); !strings.HasPrefix(before, "in time\n") || after != before {
		t.Errorf("the file was %.20q of %d bytes, and is %.20q of %d", before, len(before), after, len(after))
	}
	if err := out.close(); err != nil {
		t.Error(err)
	}
}

// Neither is it shown behind what is said of the host's end.
func TestShownAfterTheEnd(t *testing.T) {
	for _, test := range []struct {
		name string
		view func(*output) view
		last string
	}{
		{"lines", func(out *output) view { return newLiveView(out, []string{"web1"}) }, "web1 | in time\n"},
		{"events", func(out *output) view { return &eventsView{newEventLog(out), []string{"web1"}} }, `"event":"result"`},
		{"events of a copy", func(out *output) view { return newCopyEvents(out, "web1") }, `"event":"result"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			out, text := outputFile(t)
			v := test.view(out)
			v.started(0)
			v.output(0, session.Stdout, []byte("in time\n"))
			v.done(0, gateway.Result{Host: "web1", Result: session.Result{Verdict: session.Exited}})
			v.started(0)
			v.output(0, session.Stdout, []byte("late\n"))
			lines := strings.SplitAfter(text(), "\n")
			if last := lines[len(lines)-2]; !strings.Contains(last, test.last) {
				t.Errorf("the last line is %q, want %s", last, test.last)
			}
		})
	}
}

// copyEvents are the events of a copy as a view: what is written is a file.
type copyEvents struct {
	cpView
	watch transfer.Watcher
}

func newCopyEvents(out *output, host string) *copyEvents {
	out.format = "jsonl"
	a := &app{out: out}
	return &copyEvents{cpView: a.newCPView(&copying{app: a, names: []string{host}})}
}

func (v *copyEvents) started(host int)                   { v.watch = v.watcher(host) }
func (v *copyEvents) output(int, session.Stream, []byte) { v.watch.End(transfer.Event{Done: "copied"}) }

func (v *copyEvents) done(host int, r gateway.Result) { v.cpView.done(host, &cpResult{Host: r.Host}) }
func (v *copyEvents) end(*summary[gateway.Result])    {}

// slowly reads a few bytes at a time and counts how often it is asked.
type slowly struct {
	from  io.Reader
	reads int
}

func (s *slowly) Read(p []byte) (int, error) {
	s.reads++
	return s.from.Read(p[:min(len(p), 4096)])
}

// Each reader gets the whole, also of what does not stay in memory, and the
// source is read once.
func TestInput(t *testing.T) {
	want := bytes.Repeat([]byte("0123456789abcde\n"), 3<<16)
	source := &slowly{from: bytes.NewReader(want)}
	in := newInput(source, func(err error) { t.Errorf("kept not: %v", err) })
	if source.reads != 0 {
		t.Error("nobody wants it, and it is read")
	}
	var readers sync.WaitGroup
	for range 5 {
		readers.Go(func() {
			if got, err := io.ReadAll(in.reader()); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%v: got %d bytes, want %d", err, len(got), len(want))
			}
		})
	}
	readers.Wait()
	if got, err := io.ReadAll(in.reader()); err != nil || !bytes.Equal(got, want) {
		t.Errorf("late: %v: got %d bytes, want %d", err, len(got), len(want))
	}
	if most := len(want)/4096 + 1; source.reads != most {
		t.Errorf("%d reads of the source, want %d", source.reads, most)
	}
	in.kept.file.Close()
}

// An input that can't be kept is not taken for a shorter one.
func TestInputNotKept(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "nowhere"))
	var told error
	in := newInput(bytes.NewReader(make([]byte, 2*inputInMemory)), func(err error) { told = err })
	if _, err := io.ReadAll(in.reader()); !errors.Is(err, os.ErrNotExist) || told == nil {
		t.Errorf("read %v, told %v, want both to name the directory that is not there", err, told)
	}
}

const manyHosts = "hosts:\n  web01: {transport: local, shell: sh, env: {NAME: web01}}\n  web02: {transport: local, shell: sh, env: {NAME: web02}}\n"

// homeWith returns a home with an inventory.
func homeWith(t *testing.T, inventory string) string {
	t.Helper()
	home := t.TempDir()
	write(t, filepath.Join(home, ".config/gateway/hosts.yaml"), inventory)
	return home
}

// At a terminal a line tells how far it is, and is gone before any other.
func TestProgress(t *testing.T) {
	home := homeWith(t, manyHosts)
	goOn := filepath.Join(home, "go")
	p := atHome(t, home, "exec", "web*", "--", "test $NAME = web01 || { echo early; until test -e "+goOn+"; do sleep 0.01; done; echo late; }")
	p.expect("[1/2 done, 1 running, 0 failed, slowest web02 ")
	write(t, goOn, "")
	p.expect("late\r\n")
	p.expect("2 of 2 ok")
	p.leaves(0)
	for line := range strings.SplitSeq(p.text(), "\r\n") {
		// What is left of it behind the last erasure.
		if i := strings.LastIndex(line, "\r\x1b[K"); i >= 0 {
			line = line[i:]
		}
		if strings.Contains(line, "running") && (strings.Contains(line, "early") || strings.Contains(line, "late") || strings.Contains(line, "ok in")) {
			t.Errorf("progress and output on one line: %q", line)
		}
	}
}

// Colours are for a person.
func TestColours(t *testing.T) {
	for args, want := range map[string]bool{ // of env
		"gateway":                           true,
		"NO_COLOR=1 gateway":                false,
		"CI=true gateway":                   false,
		"TERM=dumb gateway":                 false,
		"gateway --color never":             false,
		"NO_COLOR=1 gateway --color always": true,
	} {
		p := starts(t, homeWith(t, manyHosts), "env", append(strings.Fields(args), "exec", "web*", "--", "echo said")...)
		p.expect("2 of 2 ok")
		p.leaves(0)
		p.mu.Lock()
		if got := regexp.MustCompile(`\x1b\[[0-9;]*m`).Match(p.seen); got != want {
			t.Errorf("%s: coloured is %v, want %v: %q", args, got, want, p.seen)
		}
		p.mu.Unlock()
	}
}

// In a terminal that has become narrower the line is shorter: what goes on in a second
// one would stay there.
func TestProgressInNarrowTerminal(t *testing.T) {
	home := homeWith(t, manyHosts)
	goOn := filepath.Join(home, "go")
	p := atHome(t, home, "exec", "web*", "--", "until test -e "+goOn+"; do sleep 0.01; done")
	p.expect("[0/2 done, 2 running, 0 failed, slowest web0")
	must(t, pty.Setsize(p.terminal, &pty.Winsize{Rows: 24, Cols: 20}))
	p.expect("\r[0/2 done, 2 runni…\x1b[K")
	// As a serial console, which does not know how wide it is.
	must(t, pty.Setsize(p.terminal, &pty.Winsize{}))
	p.expect("\r[0/2 done, 2 running, 0 failed, slowest web0")
	write(t, goOn, "")
	p.expect("2 of 2 ok")
	p.leaves(0)
}

// A script has the line, too.
func TestProgressOfScript(t *testing.T) {
	home := homeWith(t, manyHosts)
	goOn, file := filepath.Join(home, "go"), filepath.Join(home, "s.yaml")
	write(t, file, "steps:\n  - {name: first, run: 'true'}\n  - {name: second, run: 'until test -e "+goOn+"; do sleep 0.01; done'}\n")
	p := atHome(t, home, "run", file, "--on", "web*")
	p.expect("1/2  first")
	p.expect("[0/2 done, 2 running, 0 failed, slowest web0")
	write(t, goOn, "")
	p.expect("\r\x1b[K")
	p.expect("2/2  second")
	p.expect("2 of 2 hosts ok")
	p.leaves(0)
}

// The first signal ends all, and keeps what there is.
func TestManyInterrupted(t *testing.T) {
	home := homeWith(t, manyHosts)
	cmd := exec.Command("gateway", "exec", "web*", "-f", "1", "-o", "jsonl", "--", "echo $NAME; sleep 60")
	cmd.Env = environ(home)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	must(t, cmd.Start())
	var events []string
	for scanner := bufio.NewScanner(out); scanner.Scan(); {
		events = append(events, scanner.Text())
		if strings.Contains(scanner.Text(), `"event":"stdout"`) {
			send(t, cmd, syscall.SIGINT)
		}
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 130 {
		t.Errorf("%v, want 130", err)
	}
	if len(events) != 5 {
		t.Fatalf("events %q, want start, stdout, two results and a summary", events)
	}
	for i, wants := range [][]string{
		2: {`"host":"web01"`, `"verdict":"interrupted"`, `"stdout":"web01\n"`},
		3: {`"host":"web02"`, `"verdict":"not_started"`, "not tried: gateway was told to stop"},
		4: {`"event":"summary"`, `"counts":{"interrupted":1,"skipped":1},"status":130`},
	} {
		for _, want := range wants {
			if !strings.Contains(events[i], want) {
				t.Errorf("event %d is %s, want %s", i, events[i], want)
			}
		}
	}
	status, record, errs := call(t, home, "runs", "show", "last", "-o", "json")
	wants(t, "runs show", status, 0, record+errs, `"status":130`, `"outcome":"skipped"`)
}

// A signal that ends the process as the last lines are written has the last word
// in the record, too.
func TestRecordOfOneLeftAtItsEnd(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	a := newApp(nil)
	all := fleetRun[gateway.Result]{app: a, names: []string{"web01"}}
	all.begin("exec", "web*", "true", strings.Clone)
	all.journal.Done(0, runs.Host{Host: "web01", Outcome: "ok"})
	id := all.close(0)
	(*a.leaving.Load())(130)
	record, err := a.runs().Load(id)
	if err != nil || record.Status == nil || *record.Status != 130 {
		t.Errorf("the record is %+v, %v, want the status 130", record, err)
	}
}

// What is said not to be remembered is not, and what is remembered has an id: also where the
// disk was full for a while.
func TestRunOnADiskThatIsFull(t *testing.T) {
	for name, test := range map[string]struct {
		full [3]bool // at the beginning, at the end, and as the status is corrected
		said string
	}{
		"always":           {[3]bool{true, true, true}, "the run is not remembered"},
		"at the beginning": {[3]bool{true, false, false}, ""},
		"at the end":       {[3]bool{false, true, true}, "how the run ended is not remembered"},
		"behind the end":   {[3]bool{false, false, true}, "how the run ended is not remembered"},
	} {
		t.Run(name, func(t *testing.T) {
			state := t.TempDir()
			t.Setenv("XDG_STATE_HOME", state)
			dir, away := stateDir("runs"), filepath.Join(state, "away")
			must(t, os.MkdirAll(dir, 0o700))
			disk := func(full bool) { // a file in the directory's place takes no record either
				must(t, errors.Join(os.RemoveAll(away), os.Rename(dir, away)))
				var err error
				if full {
					err = os.WriteFile(dir, nil, 0o600)
				} else {
					err = os.Mkdir(dir, 0o700)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			a := newApp(nil)
			out, text := outputFile(t)
			a.out = out
			all := fleetRun[gateway.Result]{app: a, names: []string{"web01"}}
			disk(test.full[0])
			all.begin("exec", "web*", "true", strings.Clone)
			disk(test.full[1])
			id := all.close(0)
			disk(test.full[2])
			all.correct(130)
			if got := text(); strings.Count(got, "remembered") != strings.Count(test.said, "remembered") || !strings.Contains(got, test.said) || (id == "") != test.full[0] && test.full[1] {
				t.Errorf("it has the id %q, and it is said: %s", id, got)
			}
		})
	}
}

// The second signal waits for nothing, but says what is known.
func TestManyLeft(t *testing.T) {
	home := homeWith(t, manyHosts)
	up, interrupted := filepath.Join(home, "up"), filepath.Join(home, "interrupted")
	cmd := exec.Command("gateway", "exec", "web*", "-f", "1", "-o", "json", "--",
		"echo $NAME; sh -c 'trap \": >"+interrupted+"\" INT; trap \"\" QUIT TERM; echo $$ >"+up+"; while :; do sleep 1; done'")
	cmd.Env = environ(home)
	var out bytes.Buffer
	cmd.Stdout = &out
	must(t, cmd.Start())
	shell := pidIn(t, up)
	begun := time.Now()
	send(t, cmd, syscall.SIGINT)
	appears(t, interrupted)       // two that are sent at once may change places
	send(t, cmd, syscall.SIGTERM) // another kind: two of one may become one
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 130 {
		t.Errorf("%v, want 130", err)
	}
	if took := time.Since(begun); sshdtest.Over(t, took, 3*time.Second) { // one, and a machine with other things to do
		t.Errorf("it took %v to leave", took)
	}
	isGone(t, shell)
	var results []struct {
		Host, Verdict, Stdout string
		Error                 struct{ Message string }
	}
	if err := json.Unmarshal(out.Bytes(), &results); err != nil || len(results) != 2 {
		t.Fatalf("%v: %s", err, &out)
	}
	// Whether anybody saw how it ended is a matter of which came first, and on a busy
	// machine nobody waits until it has said what it wrote.
	left := strings.Contains(results[0].Error.Message, "given up before it ended")
	if r := results[0]; r.Host != "web01" || r.Verdict != "unknown" && r.Verdict != "interrupted" || r.Stdout != "web01\n" && !left {
		t.Errorf("got %+v, want unknown or interrupted, and what it wrote", r)
	}
	if r := results[1]; r.Host != "web02" || r.Verdict != "not_started" {
		t.Errorf("got %+v, want not_started", r)
	}
	status, record, errs := call(t, home, "runs", "show", "last", "-o", "json")
	wants(t, "runs show", status, 0, record+errs, `"status":130`, `"outcome":"skipped"`)
}
