package integration

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"gateway/internal/sshdtest"
	"gateway/session"
	"gateway/transport"
	"gateway/transport/local"
)

// endings are commands that go on until they are ended.
var endings = []string{
	"/bin/sleep 30",
	"(/bin/sleep 30)",
	"x=$(/bin/sleep 30)",
	"f() { /bin/sleep 30; }; f",
	"/bin/sleep 30 | /bin/cat",
	"/bin/sleep 3 & /bin/sleep 30",
	"/bin/sh -c '/bin/sleep 30; :'",
	"while /bin/sleep 0.01; do /bin/true; done",
	"while /bin/sleep 0.01; do /bin/true; done | /bin/cat",
	"/usr/bin/yes",
	"/usr/bin/seq 1 1000000000 | /bin/cat >&2",
	"export LATE=1; cd .; cd /usr; /bin/sleep 30", // wherever it is left, the directory is the same
}

// TestSoakMoments ends commands at random moments of their first milliseconds,
// in all ways there are, for five seconds or as long as GATEWAY_SOAK says: a
// shell is then reading a line, between two forks, in a handler. Whatever the
// moment, the verdict is right, no stream has what the engine writes for itself, and
// the session answers with what it had.
func TestSoakMoments(t *testing.T) {
	seed := soakSeed(t)
	server := sshdtest.Start(t, sshdtest.Options{Config: []string{"MaxStartups 100"}})
	noTTY := sshdtest.Start(t, sshdtest.Options{Config: []string{"MaxStartups 100"}, AuthorizedOptions: "restrict"})
	deadline := time.Now().Add(long(5*time.Second, soak))
	var all sync.WaitGroup
	var mu sync.Mutex
	counts := map[string]int{}
	for i := range 6 {
		m := &momentary{
			t: t, random: rand.New(rand.NewPCG(seed, uint64(i))), counts: map[string]int{},
			name: fmt.Sprintf("moment-%d-%d", os.Getpid(), i), transport: local.New(local.Config{Env: []string{"HOME=" + t.TempDir()}}),
		}
		switch i % 3 {
		case 1:
			m.transport = dial(t, server, server.Port)
		case 2:
			m.transport = dial(t, noTTY, noTTY.Port)
		}
		all.Go(func() {
			for time.Now().Before(deadline) && !t.Failed() {
				m.life()
			}
			m.transport.Close()
			mu.Lock()
			defer mu.Unlock()
			for kind, n := range m.counts {
				counts[kind] += n
			}
		})
	}
	all.Wait()
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%8d %s", counts[kind], kind)
	}
	for _, how := range []session.Level{session.Int, session.Term, session.Kill} {
		if some := counts[string(how)+missed]; some > 2+counts[string(how)]/100 {
			t.Errorf("%d of %d interrupts of level %s came to nothing", some, counts[string(how)], how)
		}
	}
	noneLeft(t, "moment-"+strconv.Itoa(os.Getpid()))
}

// A momentary has one session at a time, and ends what runs in it.
type momentary struct {
	t         *testing.T
	random    *rand.Rand
	name      string
	transport transport.Transport
	counts    map[string]int
	lives     int
}

func (m *momentary) life() {
	m.lives++
	shell := allShells[m.random.IntN(len(allShells))]
	s, err := session.Open(context.Background(), m.transport, session.Config{ID: fmt.Sprintf("%s-%d", m.name, m.lives), Shell: shell})
	if err != nil {
		m.t.Errorf("Open with %s: %v", shell, err)
		return
	}
	defer s.Close()
	r, err := s.Run(context.Background(), session.Command{Text: "cd /usr; V=kept; g() { echo $V in $PWD; }; echo $$"})
	pid := strings.TrimSpace(string(r.Stdout))
	for n := 0; n < 40 && err == nil; n++ {
		text := endings[m.random.IntN(len(endings))]
		how, moment, faulty := m.end(s, shell, pid, text)
		if faulty {
			return
		}
		if r, err = s.Run(context.Background(), session.Command{Text: "g", Timeout: 20 * time.Second}); err != nil || string(r.Stdout) != "kept in /usr\n" || len(r.Stderr) > 0 || r.ExitCode != 0 {
			m.t.Errorf("%s, behind %q, %s after %v: %s %d, %.200q, stderr %.200q, terminal %.200q, ended %v, %v", shell, text, how, moment, r.Verdict, r.ExitCode, r.Stdout, r.Stderr, r.Terminal, r.Ended, err)
			return
		}
	}
}

// patience is after what time an interrupt counts as missed, which one in a hundred
// may: that of a shell that is between two steps of its own.
const (
	patience = 5 * time.Second
	missed   = " missed"
)

// end runs a command and ends it in some way after a moment. It reports whether that has
// cost the session, which only a fault of the shell's own may.
func (m *momentary) end(s *session.Session, shell, pid, text string) (how string, moment time.Duration, faulty bool) {
	moment = time.Duration(m.random.IntN(int(20 * time.Millisecond)))
	command := session.Command{Limit: 100}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	want := session.Interrupted
	switch m.random.IntN(4) {
	case 0:
		how, command.Timeout, want = "deadline", moment+1, session.TimedOut
	case 1:
		how = "context"
		command.Started = func() { time.AfterFunc(moment, cancel) }
	case 2:
		how, command.Timeout = "int", patience
		command.Started = func() { time.AfterFunc(moment, func() { _ = s.Interrupt(session.Int) }) }
	default:
		level := []session.Level{session.Term, session.Kill}[m.random.IntN(2)]
		if level == session.Term && strings.HasPrefix(text, "while") { // whose programs would be signaled, and the shell be spared
			text = endings[0]
		}
		how, command.Timeout = string(level), patience
		command.Started = func() { time.AfterFunc(moment, func() { _ = s.Interrupt(level) }) }
	}
	m.counts[how]++
	command.Text = text
	begun, seen := time.Now(), sshdtest.WatchFault(shell, pid)
	r, err := s.Run(ctx, command)
	faulty = seen() && r.Ended
	if said := slices.Concat(r.Stdout, r.Stderr, r.Terminal); bytes.IndexByte(said, 0x1e) >= 0 {
		m.t.Errorf("%s, %q, %s after %v: a mark is left in stdout %.200q, stderr %.200q, terminal %.200q", shell, text, how, moment, r.Stdout, r.Stderr, r.Terminal)
	}
	switch took := time.Since(begun); {
	case r.Verdict == session.TimedOut && want == session.Interrupted && !r.Ended:
		m.counts[how+missed]++
		m.counts[fmt.Sprintf("%s missed %q in %s", how, text, shell)]++
	case faulty && (r.Verdict == want || r.Verdict == session.TimedOut):
		m.counts[fmt.Sprintf("%s failed of its own in %q", shell, text)]++
	case r.Verdict != want || r.Ended || took > patience:
		m.t.Errorf("%s, %q, %s after %v: %s %d after %v, stderr %.200q, terminal %.200q, ended %v, %v; want %s", shell, text, how, moment, r.Verdict, r.ExitCode, took, r.Stderr, r.Terminal, r.Ended, err, want)
	}
	return how, moment, faulty
}
