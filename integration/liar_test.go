package integration

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gossh "golang.org/x/crypto/ssh"

	"gateway/gateway"
	"gateway/internal/sshdtest"
	"gateway/session"
	"gateway/transport/ssh"
)

// A liar is an SSH server that lets everyone in and answers the programs of a
// session as it likes. It sees everything that is sent, the nonces included.
type liar struct {
	// terminal and keeper answer the two programs; nil means as a real machine.
	terminal, keeper func(*program)
	// typed answers a line that is typed to the shell, with the nonce of its
	// command.
	typed func(conn *liarConn, nonce string)
	// refuse answers no to a request of this type.
	refuse string
	// first is done with a connection before anything else.
	first func(*gossh.ServerConn)
}

// liarConn is one connection to a liar.
type liarConn struct {
	liar
	terminal, keeper *program
	ready            sync.WaitGroup // until both have been asked for
}

// program is a channel on which something was asked for.
type program struct {
	gossh.Channel
	conn  *liarConn
	nonce string // in its prelude
}

var preludeNonce = regexp.MustCompile(`036([SK])([0-9a-f]{16}):`)

func (l liar) start(t *testing.T) ssh.Config {
	t.Helper()
	config := &gossh.ServerConfig{NoClientAuth: true}
	config.AddHostKey(sshdtest.NewKey(t, "ed25519").Signer)
	var serving sync.WaitGroup
	port := listen(t, func(conn net.Conn) {
		serving.Go(func() { // ends with the connection, which the test's end closes
			defer conn.Close()
			server, channels, requests, err := gossh.NewServerConn(conn, config)
			if err != nil {
				return
			}
			serving.Go(func() { gossh.DiscardRequests(requests) })
			if l.first != nil {
				serving.Go(func() { l.first(server) })
			}
			c := &liarConn{liar: l}
			c.ready.Add(2)
			for channel := range channels {
				remote, requests, err := channel.Accept()
				if err != nil {
					return
				}
				serving.Go(func() { c.serve(remote, requests, &serving) })
			}
		})
	})
	t.Cleanup(serving.Wait)
	return ssh.Config{
		Name: "web1", Addr: "127.0.0.1", Port: port, User: "u", ConnectTimeout: 10 * time.Second,
		HostKeys: &ssh.HostKeys{Name: "web1", Policy: ssh.AcceptNew, Write: filepath.Join(t.TempDir(), "known_hosts")},
	}
}

// serve answers the requests on one channel.
func (c *liarConn) serve(remote gossh.Channel, requests <-chan *gossh.Request, serving *sync.WaitGroup) {
	for request := range requests {
		ok := request.Type != c.refuse
		if request.WantReply {
			request.Reply(ok, nil)
		}
		found := preludeNonce.FindSubmatch(request.Payload)
		if request.Type != "exec" || !ok || found == nil {
			continue
		}
		p := &program{Channel: remote, conn: c, nonce: string(found[2])}
		answer := c.liar.keeper
		switch {
		case found[1][0] == 'S':
			c.terminal = p
			if answer = c.liar.terminal; answer == nil {
				answer = (*program).shell
			}
		default:
			c.keeper = p
			if answer == nil {
				answer = (*program).keep
			}
		}
		c.ready.Done()
		serving.Go(func() { answer(p) })
	}
}

func markOf(kind, nonce, payload string) string {
	return "\x1e" + kind + nonce + ":" + payload + "\x1e" + nonce + ";"
}

func (p *program) say(text string)           { io.WriteString(p, text) }
func (p *program) mark(kind, payload string) { p.say(markOf(kind, p.nonce, payload)) }
func (p *program) exit(status uint32) {
	p.SendRequest("exit-status", false, gossh.Marshal(struct{ S uint32 }{status}))
}
func (p *program) hold()                           { io.Copy(io.Discard, p) }
func (p *program) flood(to io.Writer, text string) { flood(to, text); p.hold() }

// flood writes more than anybody is to keep, or until nobody takes it any more.
func flood(to io.Writer, text string) {
	chunk := []byte(strings.Repeat(text, 1+32<<10/len(text)))
	for range 64 << 20 / len(chunk) {
		if _, err := to.Write(chunk); err != nil {
			return
		}
	}
}

// keep is a keeper that never answers a control line.
func (p *program) keep() {
	p.mark("K", ":23:/x/.gw/o:/x/.gw/e:/x/.gw")
	p.hold()
}

var typedNonce = regexp.MustCompile(`_gwn=([0-9a-f]{16})`)

// shell is one that reads lines.
func (p *program) shell() {
	p.mark("S", "/dev/pts/9:4242:4242:23:bash:/bin/bash:/home/u")
	p.mark("P", "0:#")
	p.conn.ready.Wait()
	var line []byte
	buffer := make([]byte, 4096)
	for {
		n, err := p.Read(buffer)
		if line = append(line, buffer[:n]...); err != nil {
			return
		}
		if found := typedNonce.FindSubmatch(line); found != nil && bytes.HasSuffix(line, []byte("\n")) {
			line = nil
			if p.conn.typed != nil {
				p.conn.typed(p.conn, string(found[1]))
			}
		}
	}
}

// peakHeap returns what f took from the heap at most.
func peakHeap(f func()) uint64 {
	runtime.GC()
	var begin, now runtime.MemStats
	runtime.ReadMemStats(&begin)
	done, watched := make(chan struct{}), make(chan uint64)
	go func() { // ends with f
		var peak uint64
		for {
			runtime.ReadMemStats(&now)
			peak = max(peak, now.HeapAlloc)
			select {
			case <-done:
				watched <- peak - min(peak, begin.HeapAlloc)
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	}()
	f()
	close(done)
	return <-watched
}

// TestLiarOpens: a server that answers the opening with nonsense gets a clear
// error in time, and no more memory than it is worth.
func TestLiarOpens(t *testing.T) {
	t.Parallel()
	absurd := func(payload string) liar {
		return liar{terminal: func(p *program) { p.mark("S", payload); p.mark("P", "0:#"); p.hold() }}
	}
	wrong := strings.Repeat("0", 16)
	var cases []func(*testing.T)
	noSync, unreadable := []string{"shell.no_sync"}, []string{"shell.no_sync", "shell.unsupported"}
	for name, test := range map[string]struct {
		liar
		waits bool // until the deadline
		codes []string
		text  string
	}{
		"garbage, and gone":  {liar{terminal: func(p *program) { p.say("\x00\xff\x1e\x1eS what?\r\n"); p.exit(3); p.Close() }}, false, noSync, "status 3"},
		"garbage, and holds": {liar{terminal: func(p *program) { p.say("Welcome!\r\nchoose [1-3]: "); p.hold() }}, true, noSync, ""},
		"endless bytes":      {liar{terminal: func(p *program) { p.flood(p, "garbage\r\n") }}, true, noSync, ""},
		"endless stderr":     {liar{terminal: func(p *program) { p.flood(p.Stderr(), "garbage\r\n") }}, true, noSync, ""},
		"endless separators": {liar{terminal: func(p *program) { p.flood(p, "\x1e") }}, true, noSync, ""},
		"an endless mark":    {liar{terminal: func(p *program) { p.say("\x1eS" + p.nonce + ":"); p.flood(p, "x") }}, true, noSync, ""},
		"endless beginnings": {liar{terminal: func(p *program) { p.flood(p, "\x1eS"+p.nonce+":") }}, true, noSync, ""},
		"endless marks":      {liar{terminal: func(p *program) { p.flood(p, markOf("S", p.nonce, "/dev/pts/9:4242:4242:23:bash:/bin/bash:/")) }}, true, noSync, ""},
		"another's marks": {liar{terminal: func(p *program) {
			p.say(markOf("S", wrong, "/dev/pts/9:4242:4242:23:bash:/bin/bash:/") + markOf("P", wrong, "0:#"))
			p.hold()
		}}, true, noSync, ""},
		"marks on the other stream": {liar{terminal: func(p *program) { p.hold() }, keeper: func(p *program) {
			p.conn.ready.Wait()
			p.say(markOf("S", p.conn.terminal.nonce, "/dev/pts/9:4242:4242:23:bash:/bin/bash:/") + markOf("P", p.conn.terminal.nonce, "0:#"))
			p.keep()
		}}, true, noSync, ""},
		"no process number":           {absurd("/dev/pts/9:x:4242:23:bash:/bin/bash:/"), false, unreadable, ""},
		"a session that is no number": {absurd("/dev/pts/9:4242:$(reboot):23:bash:/bin/bash:/"), false, unreadable, ""},
		"a large process number":      {absurd("/dev/pts/9:99999999999999999999:4242:23:bash:/bin/bash:/"), false, unreadable, ""},
		"an empty report":             {absurd(""), false, unreadable, ""},
		"a report of colons":          {absurd(strings.Repeat(":", 10_000)), false, unreadable, ""},
		"an unknown shell":            {absurd("/dev/pts/9:4242:4242:23:emacs:/bin/emacs:/"), false, unreadable, ""},
		"exits before it speaks":      {liar{terminal: func(p *program) { p.exit(0); p.say("late"); p.Close() }}, false, noSync, "late"},
		"an absurd status":            {liar{terminal: func(p *program) { p.exit(1<<32 - 1); p.Close() }}, false, noSync, "255"},
		"closes without a status":     {liar{terminal: func(p *program) { p.Close() }}, false, []string{"link.lost"}, "without an exit status"},
		"closes behind its report":    {liar{terminal: func(p *program) { p.mark("S", "/dev/pts/9:4242:4242:23:bash:/bin/bash:/"); p.exit(0); p.Close() }}, false, noSync, "status 0"},
		"no program":                  {liar{refuse: "exec"}, false, []string{"session.forced_command"}, ""},
		"the keeper is silent":        {liar{keeper: (*program).hold}, true, noSync, ""},
		"the keeper leaves":           {liar{keeper: func(p *program) { p.exit(0); p.Close() }}, false, noSync, "side channel"},
		"the keeper is cut off":       {liar{keeper: func(p *program) { p.Close() }}, false, []string{"shell.no_sync", "link.lost"}, "side channel"},
		"the keeper floods":           {liar{keeper: func(p *program) { p.flood(p, "garbage") }}, true, noSync, ""},
		"the keeper floods stderr":    {liar{keeper: func(p *program) { p.flood(p.Stderr(), "garbage") }}, true, noSync, ""},
		"the keeper's endless mark":   {liar{keeper: func(p *program) { p.say("\x1eK" + p.nonce + ":"); p.flood(p, "/") }}, true, noSync, ""},
		"everything is closed":        {liar{terminal: func(p *program) { p.conn.ready.Wait(); p.conn.keeper.Close(); p.Close() }, keeper: (*program).hold}, false, []string{"link.lost", "shell.no_sync"}, ""},
		"the connection ends":         {liar{first: func(c *gossh.ServerConn) {}, terminal: func(p *program) { p.mark("S", "/dev/pts/9:4242:4242:23:bash:/bin/bash:/"); p.Close() }}, false, []string{"link.lost"}, ""},
		"it asks back": {liar{first: func(c *gossh.ServerConn) {
			for {
				if _, _, err := c.SendRequest("keepalive@openssh.com", true, make([]byte, 30_000)); err != nil {
					return
				}
				if channel, _, err := c.OpenChannel("forwarded-tcpip", make([]byte, 30_000)); err == nil {
					channel.Close()
				}
			}
		}, terminal: (*program).hold}, true, noSync, ""},
	} {
		cases = append(cases, func(t *testing.T) {
			tr, err := ssh.Dial(t.Context(), test.start(t))
			if err != nil {
				t.Error(err)
				return
			}
			defer tr.Close()
			config := session.Config{OpenTimeout: time.Minute}
			if test.waits {
				config.OpenTimeout = 2 * time.Second
			}
			begun := time.Now()
			s, err := session.Open(t.Context(), tr, config)
			took := time.Since(begun)
			if err == nil {
				s.Close()
			}
			if !slices.Contains(test.codes, gateway.Code(err)) || !strings.Contains(fmt.Sprint(err), test.text) {
				t.Errorf("%s: Open = %s: %v, want %v and %q", name, gateway.Code(err), err, test.codes, test.text)
			}
			if len(fmt.Sprint(err)) > 4096 {
				t.Errorf("%s: a message of %d bytes", name, len(fmt.Sprint(err)))
			}
			if sshdtest.Over(t, took, 20*time.Second) {
				t.Errorf("%s: it took %v, with a deadline of %v", name, took, config.OpenTimeout)
			}
		})
	}
	together(t, cases)
}

// together runs tests at the same time, most of which wait, and bounds the
// memory that they take together, the liars' part of it included.
func together(t *testing.T, cases []func(*testing.T)) {
	t.Helper()
	peak := peakHeap(func() {
		var all sync.WaitGroup
		for _, test := range cases {
			all.Go(func() { test(t) })
		}
		all.Wait()
	})
	t.Logf("%d cases took %d MiB at most", len(cases), peak>>20)
	if bound := uint64(len(cases)) * 8 << 20; peak > bound {
		t.Errorf("they took %d MiB at most, want less than %d", peak>>20, bound>>20)
	}
}

// TestLiarRuns: a server that answers a command with nonsense gets no more
// than what it is in charge of: what the outcome is. It can't stop the caller,
// nor take the gateway down.
func TestLiarRuns(t *testing.T) {
	t.Parallel()
	end := func(c *liarConn, nonce, payload string) {
		c.keeper.say(markOf("E", nonce, payload))
		io.WriteString(c.keeper.Stderr(), markOf("E", nonce, ""))
	}
	var cases []func(*testing.T)
	anything := []session.Verdict{session.TimedOut, session.Unknown}
	for name, test := range map[string]struct {
		typed    func(*liarConn, string)
		verdicts []session.Verdict
		code     int
	}{
		"honest":                    {func(c *liarConn, n string) { end(c, n, "3::/home") }, []session.Verdict{session.Exited}, 3},
		"silent":                    {func(*liarConn, string) {}, anything, -1},
		"no number":                 {func(c *liarConn, n string) { end(c, n, "three::/home") }, anything, -1},
		"a negative number":         {func(c *liarConn, n string) { end(c, n, "-1::/home") }, []session.Verdict{session.Exited}, 255}, // as a function may return
		"a large number":            {func(c *liarConn, n string) { end(c, n, "99999999999999999999::/home") }, anything, -1},
		"no job's number":           {func(c *liarConn, n string) { end(c, n, "0:$(reboot):/home") }, anything, -1},
		"an endless directory":      {func(c *liarConn, n string) { end(c, n, "0::/"+strings.Repeat("x", 1<<20)) }, []session.Verdict{session.Exited}, 0},
		"a stdin that nobody wants": {func(c *liarConn, n string) { c.keeper.say(markOf("B", n, "")) }, anything, -1},
		"marks again and again": {func(c *liarConn, n string) {
			for range 10_000 {
				end(c, n, "3::/home")
			}
		}, []session.Verdict{session.Exited}, 3},
		"prompts again and again": {func(c *liarConn, n string) {
			for range 10_000 {
				c.terminal.say(markOf("P", n, "9:#"))
			}
		}, []session.Verdict{session.Unknown}, -1}, // what was written before is never told to be there
		"one end of two": {func(c *liarConn, n string) { c.keeper.say(markOf("E", n, "3::/home")) }, anything, -1},
		"the end on the terminal": {func(c *liarConn, n string) {
			c.terminal.say(markOf("E", n, "3::/home") + markOf("E", n, ""))
		}, anything, -1},
		"endless stdout":           {func(c *liarConn, n string) { flood(c.keeper, "garbage\n") }, anything, -1},
		"endless stderr":           {func(c *liarConn, n string) { flood(c.keeper.Stderr(), "garbage\n") }, anything, -1},
		"endless terminal":         {func(c *liarConn, n string) { flood(c.terminal, "garbage\n") }, anything, -1},
		"the shell's status first": {func(c *liarConn, n string) { c.terminal.exit(4); c.keeper.say("more"); c.terminal.Close() }, []session.Verdict{session.Exited}, 4},
		"the keeper leaves":        {func(c *liarConn, n string) { c.keeper.Close() }, anything, -1},
		"no status":                {func(c *liarConn, n string) { c.terminal.Close() }, []session.Verdict{session.Unknown}, -1},
		"an unknown signal": {func(c *liarConn, n string) {
			c.keeper.say(markOf("B", n, "")) // else it may have come before the command
			c.terminal.SendRequest("exit-signal", false, gossh.Marshal(struct {
				Signal string
				Core   bool
				M, L   string
			}{"X\x1b[2J@example.com", true, "m", "l"}))
			c.terminal.Close()
		}, []session.Verdict{session.Signaled}, -1},
	} {
		cases = append(cases, func(t *testing.T) {
			tr, err := ssh.Dial(t.Context(), liar{typed: test.typed}.start(t))
			if err != nil {
				t.Error(err)
				return
			}
			defer tr.Close()
			s, err := session.Open(t.Context(), tr, session.Config{OpenTimeout: time.Minute})
			if err != nil {
				t.Error(err)
				return
			}
			timeout := time.Minute
			if slices.Contains(test.verdicts, session.TimedOut) {
				timeout = 500 * time.Millisecond
			}
			begun := time.Now()
			r, err := s.Run(context.Background(), session.Command{Text: "true", Timeout: timeout})
			took := time.Since(begun)
			if !slices.Contains(test.verdicts, r.Verdict) || r.ExitCode != test.code {
				t.Errorf("%s: Run = %s %d, %v, want one of %v and %d", name, r.Verdict, r.ExitCode, err, test.verdicts, test.code)
			}
			if strings.ContainsAny(r.Signal, "\x1b@") {
				t.Errorf("%s: the signal is %q", name, r.Signal)
			}
			if (err == nil) != (r.Verdict == session.Exited || r.Verdict == session.Signaled) {
				t.Errorf("%s: Run = %s, %v", name, r.Verdict, err)
			}
			begun = time.Now()
			s.Close()
			if closed := time.Since(begun); took > time.Minute || closed > 20*time.Second {
				t.Errorf("%s: it took %v, and Close %v", name, took, closed)
			}
		})
	}
	together(t, cases)
}
