//go:build npm

// Package compare runs servers for agents side by side: gateway's and three from
// npm, on the same stories against the same sshd. See make mcp-compare.
package compare

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"gateway/internal/sshdtest"
)

// patience is how long a client waits for an answer, as short as the stories are.
const patience = 10 * time.Second

// binary is where build puts gateway.
var binary = filepath.Join(os.TempDir(), fmt.Sprintf("gateway-compare-%d", os.Getpid()))

// build builds it once.
var build = sync.OnceValue(func() error {
	if out, err := exec.Command("go", "build", "-o", binary, "gateway/cmd/gateway").CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
})

func TestMain(m *testing.M) {
	m.Run()
	os.Remove(binary)
}

// A seat is a client with a server of its own.
type seat struct {
	t       testing.TB
	peer    peer
	machine machine
	session *mcp.ClientSession
	shell   string // the session's id
	opened  bool
}

// newSeat starts a server for a machine and connects to it.
func newSeat(t testing.TB, p peer, m machine) *seat {
	t.Helper()
	dir, err := os.MkdirTemp("", "peer") // short: a socket is in it
	if err != nil {
		t.Fatal(err)
	}
	m.home = dir
	if m.key == nil {
		m.key = m.server.HostKey
	}
	if m.port == 0 {
		m.port = m.server.Port
	}
	cmd := p.command(t, m)
	cmd.Env = append(cmd.Env, "HOME="+m.home, "PATH="+os.Getenv("PATH"))
	t.Cleanup(func() {
		if p.name == "gateway" {
			stop := exec.Command(cmd.Path, "serve", "--stop", "--force")
			stop.Env = cmd.Env
			_ = stop.Run() // there may be none
		}
		os.RemoveAll(dir)
	})
	client := mcp.NewClient(&mcp.Implementation{Name: "compare", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: cmd, TerminateDuration: time.Second}, nil)
	if err != nil {
		t.Fatalf("%s does not start: %v", p.name, err)
	}
	t.Cleanup(func() { session.Close() })
	s := &seat{t: t, peer: p, machine: m, session: session}
	if p.setup != nil {
		for _, a := range p.setup(m) {
			s.do(a) // what it refuses, the next call refuses too
		}
	}
	return s
}

// errSilent is a call that was not answered in the client's patience.
var errSilent = errors.New("no answer")

// doing calls a tool for as long as ctx lasts.
func (s *seat) doing(ctx context.Context, a ask) (reading, error) {
	s.t.Helper()
	result, err := s.session.CallTool(ctx, &mcp.CallToolParams{Name: a.tool, Arguments: a.args})
	if ctx.Err() != nil {
		return reading{}, errSilent
	}
	if err != nil {
		return reading{text: err.Error()}, err
	}
	var text strings.Builder
	for _, c := range result.Content {
		if piece, ok := c.(*mcp.TextContent); ok {
			text.WriteString(piece.Text)
		}
	}
	r := s.peer.read(text.String())
	r.text = text.String()
	s.t.Logf("%s %.120q: %.300q", a.tool, fmt.Sprint(a.args), r.text)
	return r, nil
}

// do calls a tool with the client's patience.
func (s *seat) do(a ask) (reading, error) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	return s.doing(ctx, a)
}

// open opens the session, where the server has one.
func (s *seat) open() {
	s.t.Helper()
	if s.peer.open == nil || s.opened {
		return
	}
	s.opened = true
	r, err := s.do(s.peer.open())
	if err != nil {
		s.t.Fatalf("%s opens no session: %v", s.peer.name, err)
	}
	s.shell = r.id
}

// run runs a command in the session, or without one where there is none.
func (s *seat) run(command string) (reading, error) {
	s.t.Helper()
	if s.peer.run == nil {
		return s.do(s.peer.once(command))
	}
	s.open()
	return s.do(s.peer.run(s.shell, command))
}

func (s *seat) once(command string) (reading, error) {
	s.t.Helper()
	return s.do(s.peer.once(command))
}

// A cell is how it went, and what was seen.
type cell struct {
	grade grade
	seen  string
}

type grade string

const (
	figure grade = "" // nothing to judge
	pass   grade = "✓"
	partly grade = "~"
	fail   grade = "✗"
)

func passes(format string, args ...any) cell { return cell{pass, fmt.Sprintf(format, args...)} }
func halves(format string, args ...any) cell { return cell{partly, fmt.Sprintf(format, args...)} }
func fails(format string, args ...any) cell  { return cell{fail, fmt.Sprintf(format, args...)} }

// TestCompare runs all stories with all servers, and writes what was seen to the
// files that it is told.
func TestCompare(t *testing.T) {
	if os.Getenv("GATEWAY_PEERS") == "" {
		t.Fatal("where are the servers? make mcp-compare says it")
	}
	server := sshdtest.Start(t, sshdtest.Options{})
	table := map[string]map[string]cell{}
	for _, p := range peers {
		table[p.name] = map[string]cell{}
		for _, s := range stories {
			t.Run(path.Base(p.name)+"/"+strings.ReplaceAll(s.name, " ", "-"), func(t *testing.T) {
				c := s.play(t, p, machine{server: server})
				t.Logf("%s %s", c.grade, c.seen)
				table[p.name][s.name] = c
				if p.name == "gateway" && c.grade != pass && c.grade != figure {
					t.Errorf("%s: %s", s.name, c.seen)
				}
			})
		}
	}
	if t.Failed() {
		return
	}
	write(t, table)
}
