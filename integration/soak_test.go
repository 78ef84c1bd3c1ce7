package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"gateway/internal/netsim"
	"gateway/internal/sshdtest"
	"gateway/session"
	"gateway/transport"
	"gateway/transport/local"
)

// TestSoak runs random commands whose outcome is known in many sessions at
// once, for five seconds or as long as GATEWAY_SOAK says, and checks every one
// of them. In the end nothing is left on either side. GATEWAY_SOAK_SEED repeats
// a run, as far as the machine lets it.
func TestSoak(t *testing.T) {
	seed := soakSeed(t)
	dir := t.TempDir()
	server := sshdtest.Start(t, sshdtest.Options{Config: []string{"SetEnv XDG_RUNTIME_DIR=" + dir, "MaxStartups 100"}})
	before := usedNow()
	deadline := time.Now().Add(long(5*time.Second, soak))
	var all sync.WaitGroup
	var mu sync.Mutex
	counts := map[string]int{}
	const workers = 8
	for i := range workers {
		w := &worker{
			random: rand.New(rand.NewPCG(seed, uint64(i))), name: fmt.Sprintf("soak-%d-%d", os.Getpid(), i), dir: t.TempDir(), counts: map[string]int{},
			fail: func(format string, args ...any) {
				t.Errorf("seed %d, worker %d: %s", seed, i, fmt.Sprintf(format, args...))
			},
		}
		if i%2 == 0 {
			w.transport = local.New(local.Config{Env: []string{"HOME=" + w.dir, "XDG_RUNTIME_DIR=" + dir}})
		} else {
			w.link = netsim.Start(t, server.Addr, 0)
			w.transport = dial(t, server, w.link.Port())
		}
		all.Go(func() {
			for time.Now().Before(deadline) && !t.Failed() {
				w.life(deadline)
			}
			w.transport.Close()
			if w.link != nil {
				w.link.Close()
			}
			mu.Lock()
			defer mu.Unlock()
			for kind, n := range w.counts {
				counts[kind] += n
			}
		})
	}
	all.Wait()
	total := 0
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%8d %s", counts[kind], kind)
		total += counts[kind]
	}
	t.Logf("%8d in all, seed %d", total, seed)
	noneLeft(t, "soak-"+strconv.Itoa(os.Getpid()))
	eventually(t, "no process of the server left", func() bool { return len(server.Processes()) == 0 })
	eventually(t, "no keeper's directory left", func() bool { return empty(dir) })
	eventually(t, "no descriptor left", func() bool { return len(descriptors(os.Getpid())) <= before.descriptors })
	eventually(t, "no goroutine left", func() bool { return runtime.NumGoroutine() <= before.goroutines })
	after := usedNow()
	t.Logf("a heap of %d KiB, %d at first", after.heap>>10, before.heap>>10)
	if after.heap > before.heap+4<<20 {
		t.Errorf("the heap has grown from %d to %d KiB", before.heap>>10, after.heap>>10)
	}
}

// noneLeft waits until no process of sessions is left whose name starts like
// this.
func noneLeft(t *testing.T, prefix string) {
	t.Helper()
	eventually(t, "no process of a session left", func() bool { return len(withSession(prefix)) == 0 })
	for _, dir := range withSession(prefix) {
		t.Log(describe(dir))
	}
}

// withSession returns the processes of sessions whose name starts like this.
func withSession(prefix string) (dirs []string) {
	return withEnv(func(env []string) bool {
		return slices.ContainsFunc(env, func(entry string) bool { return strings.HasPrefix(entry, "GATEWAY_SESSION="+prefix+"-") })
	})
}

// A worker has one session at a time and knows what it should be like.
type worker struct {
	random    *rand.Rand
	name, dir string
	transport transport.Transport
	link      *netsim.Proxy // nil: this machine
	counts    map[string]int
	fail      func(string, ...any)

	lives     int
	session   *session.Session
	cwd       string
	variables map[string]string
	dead      bool
	past      []string // what this session has done
}

// life opens a session, uses it for a while and ends it in some way.
func (w *worker) life(deadline time.Time) {
	w.lives++
	shell := allShells[w.random.IntN(len(allShells))]
	s, err := session.Open(context.Background(), w.transport, session.Config{ID: fmt.Sprintf("%s-%d", w.name, w.lives), Shell: shell, Cwd: w.dir})
	if err != nil {
		w.fail("Open with %s: %v", shell, err)
		return
	}
	w.counts["open "+shell]++
	w.session, w.cwd, w.variables, w.dead, w.past = s, w.dir, map[string]string{}, false, nil
	defer s.Close()
	kinds := slices.Sorted(maps.Keys(deeds))
	for range 5 + w.random.IntN(60) {
		if w.dead || !time.Now().Before(deadline) {
			return
		}
		kind := kinds[w.random.IntN(len(kinds))]
		if deeds[kind].rare && w.random.IntN(8) > 0 || deeds[kind].far && w.link == nil {
			continue
		}
		w.counts[kind]++
		w.past = append(w.past, kind)
		d := deed{worker: w, kind: kind + " in " + shell}
		deeds[kind].do(&d)
	}
}

// A deed is one command and what is wrong with its result.
type deed struct {
	*worker
	kind   string
	result session.Result
	err    error
}

func (d *deed) run(c session.Command) {
	d.runUnder(context.Background(), c)
}

func (d *deed) runUnder(ctx context.Context, c session.Command) {
	d.result, d.err = d.session.Run(ctx, c)
	d.dead = d.dead || d.result.Ended
}

// want checks the result; an empty cwd means where the session was.
func (d *deed) want(verdict session.Verdict, code int, stdout, stderr string) {
	r := d.result
	if r.Verdict != verdict || r.ExitCode != code || string(r.Stdout) != stdout || string(r.Stderr) != stderr {
		d.wrong("want %s %d %.200q %.200q", verdict, code, stdout, stderr)
	}
	if (d.err == nil) != (verdict == session.Exited || verdict == session.Signaled) {
		d.wrong("the error")
	}
	if !r.Ended && r.Cwd != d.cwd {
		d.wrong("want the directory %s", d.cwd)
	}
}

func (d *deed) wrong(format string, args ...any) {
	r := d.result
	d.fail("%s, after %q: got %s %d %.200q %.200q terminal %.200q in %s, ended %v, %v; %s", d.kind, d.past[max(0, len(d.past)-5):len(d.past)-1], r.Verdict, r.ExitCode, r.Stdout, r.Stderr, r.Terminal, r.Cwd, r.Ended, d.err, fmt.Sprintf(format, args...))
	d.dead = true
}

// remarks matches what ksh93 and mksh say on stderr when they start a job; mksh
// also counts those that it has forgotten.
var remarks = regexp.MustCompile(`(?m)^\[\d+\]\s+\d+\n|^internal warning: j_async: bad nzombie \(\d+\)\n`)

func (d *deed) number(most int) int { return d.random.IntN(most) }

func (d *deed) word() string {
	const letters = " abcXYZ'\"\\$`!*?~#&|;<>(){}[]%-="
	b := make([]byte, 1+d.number(30))
	for i := range b {
		b[i] = letters[d.number(len(letters))]
	}
	return string(b)
}

// stopped checks a command that was ended: its first words may not have come.
func (d *deed) stopped(verdict session.Verdict, cause error) {
	r := d.result
	if r.Verdict != verdict || !errors.Is(d.err, cause) || r.Ended || r.Cwd != d.cwd || len(r.Stdout) > 0 && string(r.Stdout) != "up\n" {
		d.wrong("want %s, %v, a living session in %s", verdict, cause, d.cwd)
	}
}

// whenUp returns a command's Output that calls f with the first bytes.
func whenUp(f func()) func(session.Stream, []byte) {
	var first sync.Once
	return func(from session.Stream, _ []byte) {
		if from == session.Stdout {
			first.Do(f)
		}
	}
}

var deeds = map[string]struct {
	do   func(*deed)
	rare bool // takes its time, or ends the session
	far  bool // needs a link
}{
	"plain": {do: func(d *deed) {
		out, errs, code := d.word(), d.word(), d.number(256)
		d.run(session.Command{Text: fmt.Sprintf("printf '%%s\\n' %s; printf '%%s\\n' %s >&2; (exit %d)", session.Quote(out), session.Quote(errs), code)})
		d.want(session.Exited, code, out+"\n", errs+"\n")
	}},
	"set a variable": {do: func(d *deed) {
		name, value := fmt.Sprintf("V%d", d.number(5)), d.word()
		d.variables[name] = value
		d.run(session.Command{Text: "export " + name + "=" + session.Quote(value)})
		d.want(session.Exited, 0, "", "")
	}},
	"read the variables": {do: func(d *deed) {
		want, text := "", "printf '[%s]'"
		for _, name := range slices.Sorted(maps.Keys(d.variables)) {
			want, text = want+"["+d.variables[name]+"]", text+` "$`+name+`"`
		}
		if want == "" {
			want = "[]"
		}
		d.run(session.Command{Text: text})
		d.want(session.Exited, 0, want, "")
	}},
	"change the directory": {do: func(d *deed) {
		d.cwd = filepath.Join(d.dir, fmt.Sprintf("d%d 'x' %d", d.number(3), d.number(3)))
		d.run(session.Command{Text: "mkdir -p " + session.Quote(d.cwd) + " && cd " + session.Quote(d.cwd)})
		d.want(session.Exited, 0, "", "")
	}},
	"stdin": {do: func(d *deed) {
		b := make([]byte, d.number(300_000))
		for i := range b {
			b[i] = byte(d.random.Uint32())
		}
		d.run(session.Command{Text: "cat", Stdin: bytes.NewReader(b), Limit: 1 << 20})
		d.want(session.Exited, 0, string(b), "")
	}},
	"stdin that nobody reads": {do: func(d *deed) {
		d.run(session.Command{Text: "echo here", Stdin: strings.NewReader(strings.Repeat("x", d.number(200_000)))})
		d.want(session.Exited, 0, "here\n", "")
	}},
	"large text": {do: func(d *deed) {
		text := strings.Repeat("y", 1000+d.number(50_000))
		d.run(session.Command{Text: "printf %s " + text + " | wc -c | tr -d ' '"})
		d.want(session.Exited, 0, fmt.Sprintln(len(text)), "")
	}},
	"large output": {do: func(d *deed) {
		n := 1 + d.number(20_000)
		d.run(session.Command{Text: fmt.Sprintf("seq %d; seq %d >&2", n, n), Limit: 4 << 20})
		d.want(session.Exited, 0, lines(n), lines(n))
	}},
	"larger output": {rare: true, do: func(d *deed) {
		n := int64(1<<20 + d.number(20<<20))
		var seen int64
		d.run(session.Command{Text: fmt.Sprintf("head -c %d /dev/zero; head -c %d /dev/zero >&2", n, n), Limit: 100, Output: func(from session.Stream, b []byte) {
			if from == session.Stdout {
				seen += int64(len(b))
			}
		}})
		if seen != n || d.result.StdoutBytes != n || d.result.StderrBytes != n || !d.result.Truncated {
			d.wrong("%d, %d and %d bytes, want %d", seen, d.result.StdoutBytes, d.result.StderrBytes, n)
		}
		d.want(session.Exited, 0, strings.Repeat("\x00", 100), strings.Repeat("\x00", 100))
	}},
	"merged": {do: func(d *deed) {
		d.run(session.Command{Text: "echo a; echo b >&2; echo c; (exit 3)", Merge: true})
		d.want(session.Exited, 3, "a\nb\nc\n", "")
	}},
	"terminal": {do: func(d *deed) {
		d.run(session.Command{Text: "test -t 0 && test -t 1 && test -t 2 && echo yes; (exit 9)", TTY: true})
		d.want(session.Exited, 9, "yes\n", "")
	}},
	"syntax error": {do: func(d *deed) {
		d.run(session.Command{Text: "echo 'never closed"})
		if d.result.Verdict != session.Exited || d.result.ExitCode < 1 || len(d.result.Stdout) > 0 || d.result.Cwd != d.cwd {
			d.wrong("want exited with a status over 0, in %s", d.cwd)
		}
	}},
	"job": {do: func(d *deed) {
		d.run(session.Command{Text: fmt.Sprintf("(sleep 0.%d; echo late; echo later >&2) & echo now", d.number(3))})
		if !strings.HasPrefix(string(d.result.Stdout), "now\n") && d.result.Stdout != nil && !bytes.Contains(d.result.Stdout, []byte("late\n")) {
			d.wrong("want now")
		}
		d.result.Stdout, d.result.Stderr = nil, nil
		d.want(session.Exited, 0, "", "")
	}},
	"silent job": {do: func(d *deed) {
		d.run(session.Command{Text: "sleep 0.3 >/dev/null 2>&1 & echo now"})
		d.result.Stderr = remarks.ReplaceAll(d.result.Stderr, nil)
		d.want(session.Exited, 0, "now\n", "")
	}},
	"timeout": {rare: true, do: func(d *deed) {
		d.run(session.Command{Text: "echo up; sleep 60", Timeout: time.Duration(1+d.number(300)) * time.Millisecond})
		d.stopped(session.TimedOut, context.DeadlineExceeded)
	}},
	"timeout of a pipeline": {rare: true, do: func(d *deed) {
		d.run(session.Command{Text: "echo up; while :; do sleep 0.01; done | cat | cat; sleep 60", Timeout: time.Duration(1+d.number(300)) * time.Millisecond})
		d.stopped(session.TimedOut, context.DeadlineExceeded)
	}},
	"timeout of what does not listen": {rare: true, do: func(d *deed) {
		d.run(session.Command{Text: `sh -c 'trap "" INT QUIT TERM HUP; echo up; sleep 60; sleep 60'`, Timeout: time.Duration(1+d.number(300)) * time.Millisecond})
		d.stopped(session.TimedOut, context.DeadlineExceeded)
	}},
	"cancel": {rare: true, do: func(d *deed) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		d.runUnder(ctx, session.Command{Text: "echo up; sleep 60", Output: whenUp(cancel)})
		d.stopped(session.Interrupted, context.Canceled)
	}},
	"cancel of a flood": {rare: true, do: func(d *deed) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		d.runUnder(ctx, session.Command{Text: "yes", Output: whenUp(cancel)})
		d.result.Stdout = nil
		d.stopped(session.Interrupted, context.Canceled)
	}},
	"prompt": {rare: true, do: func(d *deed) {
		answer := strconv.Itoa(d.number(1 << 30))
		d.run(session.Command{
			Text:   `printf 'name? ' >/dev/tty; read -r x </dev/tty; echo "got $x"; unset x`,
			Answer: func(context.Context, session.Prompt) (string, error) { return answer, nil },
		})
		d.want(session.Exited, 0, "got "+answer+"\n", "")
	}},
	"prompt without an answer": {rare: true, do: func(d *deed) {
		d.run(session.Command{Text: `printf 'name? ' >/dev/tty; read -r x </dev/tty; echo never`})
		if !strings.Contains(d.result.Prompt, "name? ") { // a shell may have said there that a job has ended
			d.wrong("the prompt is %q", d.result.Prompt)
		}
		d.stopped(session.Interrupted, session.ErrNeedsInput)
	}},
	"exit": {rare: true, do: func(d *deed) {
		code := d.number(256)
		d.run(session.Command{Text: fmt.Sprintf("echo bye; exit %d", code)})
		if !d.result.Ended {
			d.wrong("the session lives")
		}
		d.want(session.Exited, code, "bye\n", "")
	}},
	"death of the shell": {rare: true, do: func(d *deed) {
		d.run(session.Command{Text: "echo bye; kill -9 $$"})
		if !d.result.Ended || d.result.Signal != "KILL" {
			d.wrong("the session lives, or died of %q", d.result.Signal)
		}
		d.want(session.Signaled, 137, "bye\n", "")
	}},
	"close while it runs": {rare: true, do: func(d *deed) {
		closed := make(chan struct{})
		d.run(session.Command{Text: "echo up; sleep 60", Output: whenUp(func() {
			go func() { d.session.Close(); close(closed) }()
		})})
		<-closed
		d.dead = true
		if v := d.result.Verdict; d.err == nil && v != session.Signaled && v != session.Exited || v == session.NotStarted || v == session.TimedOut {
			d.wrong("want an end")
		}
	}},
	"close of a flood": {rare: true, do: func(d *deed) {
		closed := make(chan struct{})
		d.run(session.Command{Text: "yes", Output: whenUp(func() {
			go func() { d.session.Close(); close(closed) }()
		})})
		<-closed
		d.dead = true
	}},
	"cut while it runs": {rare: true, far: true, do: func(d *deed) {
		how := []netsim.How{netsim.FIN, netsim.RST}[d.number(2)]
		d.run(session.Command{Text: "echo up; sleep 60 | cat; sleep 60", Output: whenUp(func() { d.link.Cut(how) })})
		d.want(session.Unknown, -1, "up\n", "")
		if !errors.Is(d.err, session.ErrLost) || !d.result.Ended {
			d.wrong("want ErrLost")
		}
		d.dead = true
	}},
	"cut while idle": {rare: true, far: true, do: func(d *deed) {
		d.link.Cut([]netsim.How{netsim.FIN, netsim.RST}[d.number(2)])
		d.run(session.Command{Text: "true"})
		if v := d.result.Verdict; v != session.NotStarted && v != session.Unknown || !errors.Is(d.err, session.ErrLost) && !errors.Is(d.err, session.ErrClosed) {
			d.wrong("want not_started or unknown")
		}
		d.dead = true
	}},
}
