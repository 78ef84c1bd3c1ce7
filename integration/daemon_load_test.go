package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"gateway/daemon"
	"gateway/daemon/api"
	"gateway/daemon/client"
	"gateway/gateway"
	"gateway/internal/sshdtest"
)

// target is a server under a name of the inventory.
func target(server *sshdtest.Server, name string) gateway.Target {
	return gateway.Target{
		Name: name, Addr: server.Host, Port: server.Port, User: server.User,
		Identities: []gateway.Identity{{Key: server.KeyFile}},
		HostKeys:   gateway.HostKeyRule{Files: []string{server.KnownHosts}, Policy: "strict"},
	}
}

// plainDaemon is a daemon as people have it, whose memory can be measured.
func plainDaemon(t *testing.T) (socket string, pid int) {
	t.Helper()
	path, err := plainBinary()
	if err != nil {
		t.Fatal(err)
	}
	socket = filepath.Join(sshdtest.ShortDir(t), "run", "s")
	cmd := exec.Command(path, "serve", "--foreground")
	cmd.Env = append(newUser(t, "hosts: {}\n").env, "GATEWAY_SOCKET="+socket)
	cmd.Stderr = os.Stderr
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it has nothing to lose
		_ = cmd.Wait()
	})
	c := client.At(socket, "")
	defer c.Release()
	eventually(t, "the daemon listens", func() bool { _, err := c.Hello(t.Context()); return err == nil })
	return socket, cmd.Process.Pid
}

// TestHundredSessions: a hundred sessions on twenty hosts, or two fifths of that, ten
// callers at once. What each session says is its own, and the daemon stays small.
func TestHundredSessions(t *testing.T) {
	runtime := t.TempDir()
	config := []string{"SetEnv XDG_RUNTIME_DIR=" + runtime, "MaxStartups 100"}
	servers := []*sshdtest.Server{sshdtest.Start(t, sshdtest.Options{Config: config}), sshdtest.Start(t, sshdtest.Options{Config: config})}
	socket, pid := plainDaemon(t)
	hosts, callers, each := long(8, 20), 10, long(4, 10) // five sessions on a host: a connection has room for four
	host := func(i int) gateway.Target { return target(servers[i%2], fmt.Sprintf("host%02d", i%hosts)) }

	c := client.At(socket, "")
	defer c.Release()
	for i := range hosts { // the connections stay for a while
		s, err := c.Open(t.Context(), api.Open{Target: host(i)}, gateway.Caller{})
		if err == nil {
			_, err = c.Close(t.Context(), s.ID)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	before, err := c.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	descriptorsBefore := len(descriptors(pid))

	begun := time.Now()
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() {
			c := client.At(socket, "")
			defer c.Release()
			talkers := make([]*talker, each)
			for i := range talkers {
				n := caller*each + i
				talkers[i] = &talker{client: c, token: fmt.Sprintf("token-%03d", n)}
				if err := talkers[i].open(t.Context(), host(n)); err != nil {
					t.Error(err)
					return
				}
			}
			for round := range long(4, 20) {
				for _, talker := range talkers {
					if err := talker.talk(t.Context(), round); err != nil {
						t.Error(err)
					}
				}
			}
			for _, talker := range talkers {
				if err := talker.close(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	peak := status(t, pid, "VmHWM")
	t.Logf("%v; %d KiB at most, %d now", time.Since(begun).Round(time.Millisecond), peak, status(t, pid, "VmRSS"))
	if most := long(128, 256) << 10; peak > most {
		t.Errorf("the daemon took %d KiB, want at most %d", peak, most)
	}
	var after api.Stats
	soon(t, "as many goroutines and descriptors as before", func() bool {
		after, err = c.Stats(t.Context())
		return err == nil && after.Goroutines <= before.Goroutines && len(descriptors(pid)) <= descriptorsBefore
	})
	t.Logf("goroutines %d, then %d; descriptors %d, then %d; connections %d", before.Goroutines, after.Goroutines, descriptorsBefore, len(descriptors(pid)), after.Connections)
	if after.Sessions != 0 || after.Connections != hosts {
		t.Errorf("%d sessions and %d connections, want 0 and %d", after.Sessions, after.Connections, hosts)
	}
	eventually(t, "no directory of a keeper left", func() bool { return empty(runtime) })
}

// A talker is a session that says nothing but its token.
type talker struct {
	client      *client.Client
	token, name string
	said        bytes.Buffer
}

func (s *talker) open(ctx context.Context, target gateway.Target) error {
	opened, err := s.client.Open(ctx, api.Open{Target: target, Env: map[string]string{"TOKEN": s.token}}, gateway.Caller{})
	s.name = opened.ID
	return err
}

func (s *talker) talk(ctx context.Context, round int) error {
	lines := 1000 * (round + 1)
	c, err := s.client.Run(ctx, s.name, api.Run{
		Text: fmt.Sprintf(`seq -f "$TOKEN %d %%g" 0 %d; echo "$TOKEN" >&2`, round, lines-1),
		Wait: api.Duration(time.Minute),
	})
	if err != nil || c.Result == nil || c.State != "exited" {
		return fmt.Errorf("%s: %s, %w", s.token, c.State, err)
	}
	var want bytes.Buffer
	for i := range lines {
		fmt.Fprintf(&want, "%s %d %d\n", s.token, round, i)
	}
	s.said.Write(want.Bytes())
	if !bytes.Equal(c.Result.Stdout, want.Bytes()) || string(c.Result.Stderr) != s.token+"\n" {
		return fmt.Errorf("%s: %d bytes of %d, %.100q, %.100q", s.token, len(c.Result.Stdout), want.Len(), c.Result.Stdout, c.Result.Stderr)
	}
	return nil
}

// close reads all that was said once more, after the end.
func (s *talker) close(ctx context.Context) error {
	if _, err := s.client.Close(ctx, s.name); err != nil {
		return err
	}
	var said []byte
	for at := int64(0); ; {
		o, err := s.client.Output(ctx, s.name, api.Query{Since: at, Stream: "stdout", Max: 100_000})
		if err != nil {
			return err
		}
		for _, p := range o.Pieces {
			said = append(said, p.Data...)
		}
		if o.Next == at {
			break
		}
		at = o.Next
	}
	if !bytes.Equal(said, s.said.Bytes()) {
		return fmt.Errorf("%s: read %d bytes of %d", s.token, len(said), s.said.Len())
	}
	return nil
}

// TestReadersThatStop: of a session that floods, of a command, and of all
// sessions' events. They cost little, and stall neither the command nor others.
func TestReadersThatStop(t *testing.T) {
	t.Parallel()
	socket, pid := plainDaemon(t)
	c := client.At(socket, "")
	defer c.Release()
	s, err := c.Open(t.Context(), api.Open{Target: gateway.Target{Name: "localhost", Local: true}}, gateway.Caller{})
	if err != nil {
		t.Fatal(err)
	}
	goOn := make(chan struct{})
	enough := errors.New("enough")
	// reader blocks with its first event, until all of them may go on.
	reader := func(read func(*client.Client, func(api.Event) error) error, each func(api.Event) error) (ended chan error) {
		ended = make(chan error, 1)
		first := make(chan struct{})
		go func() {
			c := client.At(socket, "")
			defer c.Release()
			var once sync.Once
			ended <- read(c, func(e api.Event) error {
				once.Do(func() { close(first); <-goOn })
				return each(e)
			})
		}()
		<-first
		return ended
	}
	if _, err := c.Run(t.Context(), s.ID, api.Run{Text: "echo up", Wait: api.Duration(time.Minute)}); err != nil {
		t.Fatal(err)
	}
	var bytesSeen, bytesDropped, eventsDropped int64
	follower := reader(func(c *client.Client, each func(api.Event) error) error {
		return c.Follow(t.Context(), s.ID, 0, each)
	}, func(e api.Event) error {
		if e.Piece != nil {
			bytesSeen += int64(len(e.Piece.Data))
		}
		bytesDropped += e.Dropped
		if e.Event == "result" && strings.HasPrefix(e.Command.Text, "echo last") {
			return enough
		}
		return nil
	})
	subscriber := reader(func(c *client.Client, each func(api.Event) error) error {
		return c.Events(t.Context(), 0, each)
	}, func(e api.Event) error {
		if e.Event == "dropped" {
			eventsDropped += e.Dropped
		}
		if e.Event == "state" && strings.HasPrefix(e.Session.Command.Text, "echo last") && e.Session.State == api.Idle {
			return enough
		}
		return nil
	})
	const size = 300 << 20
	var result *api.Command
	executor := reader(func(c *client.Client, each func(api.Event) error) error {
		return c.Exec(t.Context(), s.ID, api.Run{Text: fmt.Sprintf("yes a line of some length | head -c %d", size)}, each)
	}, func(e api.Event) error {
		if e.Event == "result" {
			result = e.Command
		}
		return nil
	})
	rest := status(t, pid, "VmRSS")
	begun := time.Now()
	if w, err := c.Wait(t.Context(), s.ID, api.Wait{Until: api.UntilExit, Max: api.Duration(time.Minute)}); err != nil || w.Command.State != "exited" || w.Command.Result.StdoutBytes != size {
		t.Fatalf("the command beside readers that do not read: %+v, %v", w.Command, err)
	}
	took := time.Since(begun)
	for range 1200 { // more events than are kept
		if _, err := c.Run(t.Context(), s.ID, api.Run{Text: ":", Wait: api.Duration(time.Minute)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Run(t.Context(), s.ID, api.Run{Text: "echo last", Wait: api.Duration(time.Minute)}); err != nil {
		t.Fatal(err)
	}
	peak := status(t, pid, "VmHWM")
	t.Logf("%d MiB in %v; %d KiB at rest, %d at most", size>>20, took.Round(time.Millisecond), rest, peak)
	if peak-rest > 32<<10 {
		t.Errorf("%d KiB at rest, %d at most", rest, peak)
	}
	close(goOn)
	for name, ended := range map[string]chan error{"follower": follower, "subscriber": subscriber} {
		if err := <-ended; !errors.Is(err, enough) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := <-executor; err != nil || result == nil || result.Result.StdoutBytes != size || !result.Result.Truncated {
		t.Errorf("who follows a command: %v, %+v", err, result)
	}
	if info, err := c.Session(t.Context(), s.ID); err != nil || bytesSeen+bytesDropped != info.To || bytesDropped == 0 {
		t.Errorf("the follower got %d bytes and missed %d of %d, %v", bytesSeen, bytesDropped, info.To, err)
	}
	if eventsDropped == 0 {
		t.Error("the subscriber was not told of what it missed")
	}
}

// TestReadersGetTheSame bytes at the same places: those who follow, one that
// comes late, and one that reads page by page.
func TestReadersGetTheSame(t *testing.T) {
	_, c := inProcess(t, daemon.Config{})
	s := mustOpen(t, c, gateway.Target{Name: "localhost", Local: true})
	if _, err := c.Run(t.Context(), s.ID, api.Run{Text: "for i in 1 2 3 4 5 6 7 8 9; do seq 2000; seq 700 >&2; printf . >/dev/tty; done; echo end"}); err != nil {
		t.Fatal(err)
	}
	follow := func() string {
		var told strings.Builder
		var at int64
		err := c.Follow(t.Context(), s.ID, 0, func(e api.Event) error {
			if e.Piece != nil {
				if e.Piece.At != at || e.Next != at+int64(len(e.Piece.Data)) {
					t.Errorf("a piece from %d to %d, want it at %d", e.Piece.At, e.Next, at)
				}
				at = e.Next
				for _, b := range e.Piece.Data {
					fmt.Fprintf(&told, "%.1s%c", e.Piece.Stream, b)
				}
			}
			if e.Event == "result" {
				return errors.New("enough")
			}
			return nil
		})
		if err == nil || err.Error() != "enough" {
			t.Errorf("Follow = %v", err)
		}
		return told.String()
	}
	told := make([]string, 4)
	var all sync.WaitGroup
	for i := range 2 {
		all.Go(func() { told[i] = follow() })
	}
	all.Wait()
	told[2] = follow()
	var pages strings.Builder
	for at := int64(0); ; {
		o, err := c.Output(t.Context(), s.ID, api.Query{Since: at, Max: 777})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range o.Pieces {
			for _, b := range p.Data {
				fmt.Fprintf(&pages, "%.1s%c", p.Stream, b)
			}
		}
		if o.Next == at {
			break
		}
		at = o.Next
	}
	told[3] = pages.String()
	for i, what := range told {
		if what != told[0] || !strings.Contains(what, "sesnsds\n") || strings.Count(what, "t.") != 9 {
			t.Errorf("reader %d got %d of %d, ending in %.40q", i, len(what), len(told[0]), what[max(0, len(what)-40):])
		}
	}
}
