package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gateway/gateway"
	"gateway/internal/netsim"
	"gateway/internal/sshdtest"
	"gateway/session"
	"gateway/transport/ssh"
)

// A moment is a point on the way of a command to its machine where the link may
// be made to break.
type moment string

const (
	atDial    moment = "dial"
	atHostKey moment = "host key accepted"
	atOffer   moment = "key offered"
	atOpen    moment = "open"
	atRun     moment = "run"
	atLine    moment = "the command has left its line"
	atOutput  moment = "the command's first output is here"
	atEnd     moment = "the command is over, and its marks are under way"
)

// clean is how many bytes the steps of an undisturbed way take.
type clean struct{ dialUp, dialDown, openUp, openDown int64 }

// A phase breaks the link at its place. What may have run has an unknown
// outcome; everything before is not_started, with an error code.
type phase struct {
	name string
	at   moment
	// bytes still pass in the direction from then on; nil: none in either.
	direction netsim.Direction
	bytes     func(clean) int64
	text      string // stands before the usual one

	verdicts []session.Verdict // what may be said
	codes    []string          // and with which error
	hang     []string          // the same when nobody says so; nil: as codes
	lines    []int             // how often the command may have run
	stdout   string            // what came of it
}

var (
	notStarted = []session.Verdict{session.NotStarted}
	unknown    = []session.Verdict{session.Unknown}
	never      = []int{0}
	once       = []int{1}
	dialing    = []string{"ssh.closed", "tcp.unreachable"}
	silent     = []string{"ssh.handshake"}
	opening    = append(lost, dialing...)
	lost       = []string{"link.lost"}
)

var phases = []phase{
	{"connect", atDial, netsim.Down, only(0), "", notStarted, dialing, silent, never, ""},
	{"banner", atDial, netsim.Down, only(5), "", notStarted, dialing, silent, never, ""},
	{"key exchange, our part", atDial, netsim.Up, only(200), "", notStarted, dialing, silent, never, ""},
	{"key exchange, their part", atDial, netsim.Down, only(300), "", notStarted, dialing, silent, never, ""},
	{"key exchange, host key", atHostKey, 0, nil, "", notStarted, dialing, silent, never, ""},
	{"authentication, offer", atOffer, 0, nil, "", notStarted, dialing, silent, never, ""},
	{"authentication, signature", atDial, netsim.Up, func(c clean) int64 { return c.dialUp - 10 }, "", notStarted, dialing, silent, never, ""},

	// A connection that died before it was used is replaced: nothing was sent.
	{"between two steps", atOpen, 0, nil, "", []session.Verdict{session.NotStarted, session.Exited}, opening, nil, []int{0, 1}, ""},
	{"channel, request", atOpen, netsim.Up, only(10), "", notStarted, opening, append(silent, opening...), never, ""},
	{"channel, answer", atOpen, netsim.Down, only(10), "", notStarted, opening, append(silent, opening...), never, ""},
	{"prelude, half sent", atOpen, netsim.Up, func(c clean) int64 { return c.openUp / 2 }, "", notStarted, opening, append(silent, opening...), never, ""},
	{"prelude, no prompt", atOpen, netsim.Down, func(c clean) int64 { return c.openDown / 2 }, "", notStarted, opening, append(silent, opening...), never, ""},

	{"text, half uploaded", atRun, netsim.Up, only(20_000), "# " + strings.Repeat("x", 100_000) + "\n", notStarted, []string{"session.closed"}, nil, never, ""},
	// What the opening still has under way may break the link before the typing, and be
	// a further connection.
	{"typing", atRun, netsim.Up, only(50), "", append(notStarted, unknown...), []string{"session.closed", "link.lost", "ssh.closed"}, nil, never, ""},
	{"typed, nothing seen", atRun, netsim.Down, only(0), "", append(notStarted, unknown...), []string{"session.closed", "link.lost", "ssh.closed"}, nil, []int{0, 1}, ""},
	{"before its first byte", atLine, 0, nil, "", unknown, lost, nil, once, ""},
	{"in the middle of its output", atOutput, 0, nil, "", unknown, lost, nil, once, "up\n"},
	{"before its marks", atEnd, 0, nil, "", unknown, lost, nil, once, "up\n"},
}

func only(n int64) func(clean) int64 { return func(clean) int64 { return n } }

// A trip is one way of a command to a machine and back, over a link that may
// break at one moment.
type trip struct {
	far
	keepalive time.Duration
	dir       string // of the command's files
	id        string // of the session
	reached   func(moment)
	text      string

	session *session.Session // nil if there was none
	result  session.Result
	err     error
	took    time.Duration
	seen    bytes.Buffer // what Output was given of stdout
	clean   clean
}

func (p *trip) file(name string) string { return filepath.Join(p.dir, name) }

// lines counts how often the command has run.
func (p *trip) lines() int {
	b, _ := os.ReadFile(p.file("log"))
	return bytes.Count(b, []byte("line\n"))
}

// allow lets the command go on to its first output, or to its end.
func (p *trip) allow(file string) { os.WriteFile(p.file(file), nil, 0o600) }

// sees waits for something that the command does on the machine.
func (p *trip) sees(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(40 * time.Second); !condition(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Errorf("%s never came", what)
			return
		}
	}
}

// run goes the way. It returns what must be closed.
func (p *trip) run(t *testing.T) (closeAll func()) {
	t.Helper()
	begun := time.Now()
	defer func() { p.took = time.Since(begun) }()
	closeAll = func() {}
	config := sshConfig(p.server, p.link.Port())
	config.Keepalive, config.ConnectTimeout = p.keepalive, 5*time.Second
	config.Trace = func(step ssh.Step) {
		switch step.Layer {
		case "hostkey":
			p.reached(atHostKey)
		case "auth":
			p.reached(atOffer)
		}
	}
	up, down := p.link.Bytes(netsim.Up), p.link.Bytes(netsim.Down)
	p.result.Verdict = session.NotStarted
	p.reached(atDial)
	tr, err := ssh.Dial(t.Context(), config)
	if p.err = err; err != nil {
		return closeAll
	}
	p.clean.dialUp, p.clean.dialDown = p.link.Bytes(netsim.Up)-up, p.link.Bytes(netsim.Down)-down
	up, down = p.link.Bytes(netsim.Up), p.link.Bytes(netsim.Down)
	p.reached(atOpen)
	s, err := session.Open(t.Context(), tr, session.Config{ID: p.id, OpenTimeout: 5 * time.Second})
	if p.err = err; err != nil {
		return sync.OnceFunc(func() { tr.Close() })
	}
	p.clean.openUp, p.clean.openDown = p.link.Bytes(netsim.Up)-up, p.link.Bytes(netsim.Down)-down
	p.session = s
	first := sync.OnceFunc(func() { p.reached(atOutput) })
	p.reached(atRun)
	p.result, p.err = s.Run(context.WithoutCancel(t.Context()), session.Command{
		Text: p.text + "cd " + p.dir + " && echo line >>log; until [ -e first ]; do sleep 0.02; done; echo up; until [ -e go ]; do sleep 0.02; done; : >end",
		Output: func(from session.Stream, b []byte) {
			if from == session.Stdout {
				p.seen.Write(b)
				first()
			}
		},
	})
	return sync.OnceFunc(func() {
		s.Close()
		tr.Close()
	})
}

// TestLinkBreaksInEveryPhase: whatever the place and the kind of break, the
// outcome says what is known and no more, in time; nothing is sent twice, and
// nothing of the session stays on the machine.
func TestLinkBreaksInEveryPhase(t *testing.T) {
	for _, f := range phaseMachines(t) {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			c := undisturbed(t, f)
			for _, how := range []netsim.How{netsim.FIN, netsim.RST, netsim.Hang} {
				t.Run(how.String(), func(t *testing.T) {
					var all sync.WaitGroup
					place := make(chan struct{}, f.atOnce)
					for _, phase := range phases {
						if how == netsim.Hang && f.atOnce < len(phases) && slices.Contains([]moment{atDial, atHostKey, atOffer}, phase.at) {
							continue // the timers before the login are ours alone
						}
						all.Go(func() {
							place <- struct{}{}
							defer func() { <-place }()
							phase.test(t, f.far, how, c)
						})
					}
					all.Wait()
					soon(t, "the server has no process left", func() bool { return len(f.server.Processes()) == 0 })
					if f.runtime != "" {
						soon(t, "no keeper's directory left", func() bool { return empty(f.runtime) })
					}
				})
			}
		})
	}
}

type phaseMachine struct {
	far
	atOnce int // how many logins it bears
}

func phaseMachines(t *testing.T) []phaseMachine {
	t.Helper()
	openSSH := func(name, authorized string) phaseMachine {
		runtime := t.TempDir()
		config := []string{"SetEnv XDG_RUNTIME_DIR=" + runtime, "MaxStartups 200"}
		return phaseMachine{far{name: name, server: sshdtest.Start(t, sshdtest.Options{Config: config, AuthorizedOptions: authorized}), runtime: runtime}, len(phases)}
	}
	return []phaseMachine{
		openSSH("openssh", ""),
		openSSH("no terminal", "restrict"),
		// dropbear takes five from one address that have not logged in yet.
		{far{name: "dropbear", server: sshdtest.StartDropbear(t, sshdtest.Options{})}, 4},
	}
}

func newTrip(t *testing.T, f far, text string) *trip {
	t.Helper()
	f.link = netsim.Start(t, f.server.Addr, 0)
	_, number, _ := strings.Cut(tag(t), "=")
	return &trip{far: f, keepalive: 500 * time.Millisecond, dir: t.TempDir(), id: "s-" + number, text: text, reached: func(moment) {}}
}

// undisturbed measures the way.
func undisturbed(t *testing.T, f phaseMachine) clean {
	t.Helper()
	p := newTrip(t, f.far, "")
	p.allow("first")
	p.allow("go")
	defer p.run(t)()
	if p.err != nil || p.lines() != 1 || p.seen.String() != "up\n" {
		t.Fatalf("undisturbed: %q, %d lines, %v", p.seen.String(), p.lines(), p.err)
	}
	return p.clean
}

// at has something done at a moment of the trip; the command goes on to there by
// itself.
func (p *trip) at(t *testing.T, at moment, do func()) {
	p.reached = func(m moment) {
		switch {
		case m == atRun && at == atLine:
			go func() { // ends when the line is there, of which do tells
				p.sees(t, "the line", func() bool { return p.lines() > 0 })
				do()
			}()
		case m == atOutput && at == atEnd:
			p.link.Stall(netsim.Down)
			p.allow("go")
			go func() { // ends when the command has, of which do tells
				p.sees(t, "the end", func() bool { _, err := os.Stat(p.file("end")); return err == nil })
				do()
			}()
		case m == at:
			do()
		}
	}
	if at != atLine {
		p.allow("first")
	}
	if !slices.Contains([]moment{atLine, atOutput, atEnd}, at) {
		p.allow("go")
	}
}

// test makes one trip on which the link breaks.
func (ph phase) test(t *testing.T, f far, how netsim.How, c clean) {
	p := newTrip(t, f, ph.text)
	broken := make(chan struct{})
	snap := func() {
		if ph.bytes == nil {
			p.link.Cut(how)
		} else {
			p.link.Truncate(ph.direction, ph.bytes(c), how)
		}
		close(broken)
	}
	p.at(t, ph.at, snap)
	closeAll := p.run(t)
	select {
	case <-broken:
	case <-time.After(40 * time.Second):
		t.Errorf("%s: the moment to break the link never came", ph.name)
		return
	}

	codes := ph.codes
	if how == netsim.Hang && ph.hang != nil {
		codes = ph.hang
	}
	wrong := func(format string, args ...any) {
		t.Errorf("%s: %s %q, %d lines, after %v, %v\n\t%s", ph.name, p.result.Verdict, p.result.Stdout, p.lines(), p.took, p.err, fmt.Sprintf(format, args...))
	}
	if !slices.Contains(ph.verdicts, p.result.Verdict) {
		wrong("want one of %v", ph.verdicts)
	}
	switch p.result.Verdict {
	case session.Exited: // the first connection died unused, and the next one did it
		if p.err != nil || p.lines() != 1 || p.seen.String() != "up\n" {
			wrong("want one line and no error")
		}
	case session.NotStarted:
		if p.lines() != 0 || p.seen.Len() > 0 {
			wrong("it has run")
		}
		fallthrough
	default:
		if !slices.Contains(codes, gateway.Code(p.err)) {
			wrong("got the code %s, want one of %v", gateway.Code(p.err), codes)
		}
	}
	if p.result.Verdict == session.Unknown {
		if !errors.Is(p.err, session.ErrLost) || p.result.ExitCode != -1 || !p.result.Ended {
			wrong("got exit code %d, ended %v, want -1, true, ErrLost", p.result.ExitCode, p.result.Ended)
		}
		if got := string(p.result.Stdout); got != ph.stdout || p.seen.String() != got {
			wrong("Output was given %q, want %q in both", p.seen.String(), ph.stdout)
		}
	}
	if sshdtest.Over(t, p.took, 15*time.Second) { // connect_timeout is 5 s, three keepalives are 1.5 s
		wrong("it hung")
	}
	if p.session != nil && p.result.Verdict != session.Exited {
		if r, err := p.session.Run(t.Context(), session.Command{Text: "echo line >>" + p.file("log")}); r.Verdict != session.NotStarted || !errors.Is(err, session.ErrClosed) {
			wrong("afterwards Run = %s, %v, want not_started and ErrClosed", r.Verdict, err)
		}
	}
	if ph.at == atOpen {
		closeAll() // there may be a second connection, which is whole
	}
	if how == netsim.Hang {
		p.link.Cut(netsim.RST) // the machine can't know before that
	}
	soon(t, ph.name+": no process of the session left", func() bool { return tagged("GATEWAY_SESSION="+p.id) == 0 })
	if got := p.lines(); !slices.Contains(ph.lines, got) {
		wrong("in the end %d lines, want one of %v", got, ph.lines)
	}
	closeAll()
}

// soon waits for what the contract gives five seconds.
func soon(t *testing.T, what string, condition func() bool) {
	t.Helper()
	sshdtest.Eventually(t, 5*time.Second, what, condition)
}
