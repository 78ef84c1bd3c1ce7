package integration

import (
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

	"gateway/daemon"
	"gateway/daemon/api"
	"gateway/daemon/client"
	"gateway/gateway"
	"gateway/internal/netsim"
	"gateway/internal/sshdtest"
	"gateway/session"
)

// inProcess is a daemon in this process. It says how many goroutines there are.
func inProcess(t *testing.T, config daemon.Config) (*daemon.Daemon, *client.Client) {
	t.Helper()
	if config.StateDir == "" {
		config.StateDir = t.TempDir()
	}
	d, err := daemon.New(config)
	if err != nil {
		t.Fatal(err)
	}
	c := client.At(serveSocket(t, d.Handler()), "")
	t.Cleanup(func() {
		now, cancel := context.WithCancel(context.Background())
		cancel()
		d.Drain(now)
		c.Release()
	})
	return d, c
}

func opens(t *testing.T, c *client.Client, target gateway.Target, who gateway.Caller) (api.Session, error) {
	t.Helper()
	return c.Open(t.Context(), api.Open{Target: target}, who)
}

func mustOpen(t *testing.T, c *client.Client, target gateway.Target) api.Session {
	t.Helper()
	s, err := opens(t, c, target, gateway.Caller{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (f far) target(name string) gateway.Target {
	target := target(f.server, name)
	target.Port = f.link.Port()
	target.HostKeys = gateway.HostKeyRule{Pins: []string{pin(f.server)}, Policy: "strict"}
	target.Keepalive = 200 * time.Millisecond
	return target
}

func openSSH(t *testing.T, options sshdtest.Options) far {
	t.Helper()
	runtime := t.TempDir()
	options.Config = append(options.Config, "SetEnv XDG_RUNTIME_DIR="+runtime)
	server := sshdtest.Start(t, options)
	return far{"openssh", server, netsim.Start(t, server.Addr, 0), runtime}
}

// sshd has names for thirteen signals alone: of another one nobody knows which it was.
func TestSignalWithoutAName(t *testing.T) {
	_, c := inProcess(t, daemon.Config{})
	s, err := opens(t, c, openSSH(t, sshdtest.Options{}).target("web1"), gateway.Caller{})
	if err != nil {
		t.Fatal(err)
	}
	run, err := c.Run(t.Context(), s.ID, api.Run{Text: "echo last; kill -BUS $$; sleep 60", Wait: api.Duration(time.Minute)})
	if r := run.Result; err != nil || r == nil || r.Verdict != session.Signaled || r.ExitCode != -1 || r.Signal != "" || string(r.Stdout) != "last\n" {
		t.Errorf("Run = %+v, %v", r, err)
	}
	eventually(t, "session over", func() bool {
		s, err = c.Session(t.Context(), s.ID)
		return err != nil || s.State == api.Closed
	})
	if err != nil || s.ExitCode != nil || s.Reason != "its shell was killed by a signal" {
		t.Errorf("Session = %+v, %v", s, err)
	}
}

// TestConnectionsAreShared by callers that ask for the same, and by no others.
func TestConnectionsAreShared(t *testing.T) {
	f := openSSH(t, sshdtest.Options{})
	_, c := inProcess(t, daemon.Config{})
	same := f.target("web1")
	var all sync.WaitGroup
	for i := range 30 { // three times what sshd allows on a connection
		all.Go(func() {
			s, err := opens(t, c, same, gateway.Caller{})
			if err != nil {
				t.Error(err)
				return
			}
			want := fmt.Sprintf("%d\n", i)
			r, err := c.Run(t.Context(), s.ID, api.Run{Text: "echo " + want, Wait: api.Duration(time.Minute)})
			if err != nil || r.Result == nil || string(r.Result.Stdout) != want {
				t.Errorf("Run = %+v, %v", r, err)
			}
		})
	}
	all.Wait()
	connections := func() int {
		stats, err := c.Stats(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return stats.Connections
	}
	if n := connections(); n != 1 || f.link.Conns() > 10 {
		t.Errorf("%d connections, %d dials for 30 sessions on one target", n, f.link.Conns())
	}
	key := filepath.Join(t.TempDir(), "key")
	if text, err := os.ReadFile(f.server.KeyFile); err != nil || os.WriteFile(key, text, 0o600) != nil {
		t.Fatal("no second key file")
	}
	for i, change := range []func(*gateway.Target){
		func(target *gateway.Target) { target.Port = netsim.Start(t, f.server.Addr, 0).Port() },
		func(target *gateway.Target) { target.Identities[0].Key = key },
		func(target *gateway.Target) { target.Agent = "/nonexistent/agent" },
		func(target *gateway.Target) { target.HostKeys.Policy = "accept-new" },
		func(target *gateway.Target) { target.Jump = new(f.target("jump")) },
	} {
		other := f.target("web1")
		change(&other)
		mustOpen(t, c, other)
		if n := connections(); n != i+2 {
			t.Errorf("variant %d: %d connections, want %d", i, n, i+2)
		}
	}
	stranger := f.target("web1")
	stranger.User = "nobody"
	if _, err := opens(t, c, stranger, gateway.Caller{}); gateway.Code(err) != "auth.rejected" {
		t.Errorf("another user: %v, want refused", err)
	}
	forged := f.target("web1")
	forged.HostKeys.Pins = []string{"SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU"}
	if _, err := opens(t, c, forged, gateway.Caller{}); gateway.Code(err) != "hostkey.changed" && gateway.Code(err) != "hostkey.unknown" {
		t.Errorf("another pin: %v, want refused", err)
	}
}

// TestConnectionOfAPerson: what somebody has typed a password for serves nobody
// behind whom there is no person. Each question reaches the one who asked.
func TestConnectionOfAPerson(t *testing.T) {
	const password = "correct horse"
	f := openSSH(t, sshdtest.Options{
		Config: []string{"PasswordAuthentication yes"}, Account: &sshdtest.Account{Password: password},
	})
	_, c := inProcess(t, daemon.Config{})
	bare := func(name string) gateway.Target {
		target := f.target(name)
		target.Identities = nil
		return target
	}
	var mu sync.Mutex
	asked := map[string][]string{} // host by who was asked
	person := func(who string) gateway.Caller {
		return gateway.Caller{Ask: func(_ context.Context, q gateway.Question) (string, error) {
			mu.Lock()
			defer mu.Unlock()
			asked[who] = append(asked[who], q.Host)
			return password, nil
		}}
	}
	var all sync.WaitGroup
	for _, host := range []string{"web1", "web2", "web3"} {
		all.Go(func() {
			if _, err := opens(t, c, bare(host), person(host)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, host := range []string{"web1", "web2", "web3"} {
		if !slices.Equal(asked[host], []string{host}) {
			t.Errorf("the caller of %s was asked for %q", host, asked[host])
		}
	}
	if _, err := opens(t, c, bare("web1"), gateway.Caller{}); err == nil || gateway.Code(err) == "" {
		t.Errorf("without a person: %v, want refused", err)
	} else {
		t.Log(err)
	}
	if _, err := opens(t, c, bare("web1"), person("second")); err != nil || len(asked["second"]) > 0 {
		t.Errorf("a second person: %v, was asked for %q", err, asked["second"])
	}
	answerless := gateway.Caller{Ask: func(context.Context, gateway.Question) (string, error) { return "", errors.New("went home") }}
	if _, err := opens(t, c, bare("web4"), answerless); err == nil {
		t.Error("a person who does not answer gets in")
	}
}

// TestWarningOfALaterDial: a connection that is dialled for a later caller has
// nothing to tell the first one, whose request is over.
func TestWarningOfALaterDial(t *testing.T) {
	f := openSSH(t, sshdtest.Options{})
	_, c := inProcess(t, daemon.Config{})
	target := f.target("web1")
	key := filepath.Join(t.TempDir(), "key")
	if text, err := os.ReadFile(f.server.KeyFile); err != nil || os.WriteFile(key, text, 0o600) != nil || os.Chmod(key, 0o644) != nil {
		t.Fatal("no key that others can read")
	}
	target.Identities[0].Key = key
	for i := range 6 { // a connection has room for four
		var warnings int
		s, err := opens(t, c, target, gateway.Caller{Warn: func(string) { warnings++ }})
		if err != nil {
			t.Fatalf("session %d: %v", i, err)
		}
		if warnings > 0 != (i == 0) {
			t.Errorf("session %d comes with %d warnings", i, warnings)
		}
		if r, err := c.Run(t.Context(), s.ID, api.Run{Text: "echo on", Wait: api.Duration(time.Minute)}); err != nil || r.Result == nil || string(r.Result.Stdout) != "on\n" {
			t.Errorf("Run = %+v, %v", r, err)
		}
	}
	if f.link.Conns() < 2 {
		t.Error("one connection was enough")
	}
}

// TestOpeningOfADeadCaller: nothing is left of it, on either side.
func TestOpeningOfADeadCaller(t *testing.T) {
	f := openSSH(t, sshdtest.Options{})
	d, c := inProcess(t, daemon.Config{})
	warm := f.target("warm")
	mustOpen(t, c, warm)
	for _, name := range []string{"cold", "warm"} {
		f.link.Stall(netsim.Down)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		before := f.link.Bytes(netsim.Up)
		target := f.target(name)
		target.Keepalive = time.Minute
		if name == "warm" {
			target = warm
		}
		go func() {
			_, err := c.Open(ctx, api.Open{Target: target, Name: "half"}, gateway.Caller{})
			ended <- err
		}()
		eventually(t, "it is under way", func() bool { return d.Sessions() == 2 && f.link.Bytes(netsim.Up) > before })
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: Open = %v", name, err)
		}
		f.link.Resume(netsim.Down)
		eventually(t, name+": its place is free", func() bool { return d.Sessions() == 1 })
	}
	eventually(t, "one session on the server", func() bool {
		entries, err := os.ReadDir(f.runtime)
		return err == nil && len(entries) == 1
	})
	s, err := c.Open(t.Context(), api.Open{Target: warm, Name: "half"}, gateway.Caller{})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := c.Run(t.Context(), s.ID, api.Run{Text: "echo on", Wait: api.Duration(time.Minute)}); err != nil || string(r.Result.Stdout) != "on\n" {
		t.Errorf("Run = %+v, %v", r, err)
	}
}

// TestPlacesAreReserved before anything is dialled: of fifty callers at once as
// many as there are places get one.
func TestPlacesAreReserved(t *testing.T) {
	f := openSSH(t, sshdtest.Options{})
	d, c := inProcess(t, daemon.Config{MaxPerHost: 10})
	f.link.SetDelay(20 * time.Millisecond)
	var all sync.WaitGroup
	errs := make(chan error, 50)
	for range 50 {
		all.Go(func() {
			_, err := opens(t, c, f.target("web1"), gateway.Caller{})
			errs <- err
		})
	}
	all.Wait()
	close(errs)
	counts := map[string]int{}
	for err := range errs {
		counts[gateway.Code(err)]++
	}
	if counts[""] != 10 || counts["session.limit"] != 40 || d.Sessions() != 10 {
		t.Errorf("got %v, and %d sessions, want 10 and 40 refused", counts, d.Sessions())
	}
}

// TestLinkIsCut under idle sessions and under ones in which something runs.
func TestLinkIsCut(t *testing.T) {
	t.Parallel() // it waits, mostly
	for _, how := range []netsim.How{netsim.RST, netsim.FIN, netsim.Hang} {
		for _, text := range []string{"", "echo up; sleep 300"} {
			t.Run(fmt.Sprintf("%v/%q", how, text), func(t *testing.T) {
				f := openSSH(t, sshdtest.Options{})
				_, c := inProcess(t, daemon.Config{})
				events := make(chan api.Event, 100)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go c.Events(ctx, 0, func(e api.Event) error { events <- e; return nil }) // ends with ctx
				s := mustOpen(t, c, f.target("web1"))
				if _, err := c.Run(t.Context(), s.ID, api.Run{Text: "cd /usr; echo known", Wait: api.Duration(time.Minute)}); err != nil {
					t.Fatal(err)
				}
				if text != "" {
					begun, err := c.Run(t.Context(), s.ID, api.Run{Text: text})
					if err != nil {
						t.Fatal(err)
					}
					if w, err := c.Wait(t.Context(), s.ID, api.Wait{Until: api.UntilMatch, Match: "up", Max: api.Duration(20 * time.Second)}); err != nil || !w.Met {
						t.Fatalf("it does not run: %+v, %v", w, err)
					}
					defer func() {
						if r, err := c.Command(t.Context(), begun.ID, 0); err != nil || r.State != "unknown" || gateway.Code(r.Result.Err) != "link.lost" || string(r.Result.Stdout) != "up\n" {
							t.Errorf("the command is %+v with %+v, %v", r, r.Result, err)
						}
					}()
				}
				f.link.Cut(how)
				for e := range events {
					if e.Event == "lost" && e.Session.ID == s.ID && e.Session.Reason != "" {
						break
					}
					if e.Event == "closed" || e.Event == "exited" {
						t.Fatalf("event %+v", e)
					}
				}
				lost, err := c.Session(t.Context(), s.ID)
				if err != nil || lost.State != api.Lost || lost.Cwd != "/usr" || lost.Reason == "" || lost.ClosedAt == nil || lost.Command == nil {
					t.Errorf("Session = %+v, %v", lost, err)
				}
				if o, err := c.Output(t.Context(), s.ID, api.Query{Head: 6}); err != nil || len(o.Pieces) == 0 || string(o.Pieces[0].Data) != "known\n" {
					t.Errorf("Output = %+v, %v", o, err)
				}
				if _, err := c.Run(t.Context(), s.ID, api.Run{Text: "echo"}); gateway.Code(err) != "session.closed" {
					t.Errorf("Run = %v", err)
				}
				// The next one dials anew.
				again := mustOpen(t, c, f.target("web1"))
				if f.link.Conns() != 2 {
					t.Errorf("%d connections, want a second one", f.link.Conns())
				}
				if list, err := c.Sessions(t.Context(), false); err != nil || len(list) != 2 {
					t.Errorf("Sessions = %+v, %v", list, err)
				}
				if _, err := c.Close(t.Context(), s.ID); err != nil {
					t.Error(err)
				}
				if list, err := c.Sessions(t.Context(), false); err != nil || len(list) != 1 || list[0].ID != again.ID {
					t.Errorf("Sessions = %+v, %v, want the lost one to be seen once", list, err)
				}
			})
		}
	}
}

// TestDeadlineOfALostSession: a session that was hung up because nothing answered is lost,
// and so stays on the list: what ran in it may go on.
func TestDeadlineOfALostSession(t *testing.T) {
	t.Parallel() // it waits, mostly
	f := openSSH(t, sshdtest.Options{})
	_, c := inProcess(t, daemon.Config{})
	target := f.target("web1")
	target.Keepalive = time.Hour
	s := mustOpen(t, c, target)
	f.link.Stall()
	got, err := c.Run(t.Context(), s.ID, api.Run{Text: "sleep 300", Timeout: api.Duration(time.Second), Wait: api.Duration(time.Minute)})
	if err != nil || got.State != "unknown" || gateway.Code(got.Result.Err) != "link.lost" {
		t.Errorf("the command is %+v, %v", got, err)
	}
	if _, err := c.Run(t.Context(), s.ID, api.Run{Text: "true"}); gateway.Code(err) != "session.closed" || !strings.Contains(err.Error(), "is lost: nothing answered") {
		t.Errorf("the next one: %v", err)
	}
	if list, err := c.Sessions(t.Context(), false); err != nil || len(list) != 1 || list[0].State != api.Lost {
		t.Errorf("Sessions = %+v, %v", list, err)
	}
}

// TestDrainWhileOpening: sessions that are on their way when the daemon ends do
// not stay.
func TestDrainWhileOpening(t *testing.T) {
	f := openSSH(t, sshdtest.Options{})
	d, c := inProcess(t, daemon.Config{})
	mustOpen(t, c, f.target("web1"))
	f.link.SetDelay(20 * time.Millisecond)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			_, _ = opens(t, c, f.target([]string{"web1", "web2"}[i%2]), gateway.Caller{}) // refused, or open for a moment
		})
	}
	eventually(t, "some are on their way", func() bool { return d.Sessions() > 4 })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	d.Drain(ctx)
	all.Wait()
	f.link.SetDelay(0)
	if n := d.Sessions(); n > 0 {
		t.Errorf("%d sessions are left", n)
	}
	eventually(t, "nothing is left on the server", func() bool { return len(f.server.Processes()) == 0 && empty(f.runtime) })
}

// TestCloseOverASilentLink: whoever closes a session does not wait for a machine
// that answers nothing.
func TestCloseOverASilentLink(t *testing.T) {
	t.Parallel()
	f := openSSH(t, sshdtest.Options{})
	d, c := inProcess(t, daemon.Config{})
	target := f.target("web1")
	target.Keepalive = time.Hour
	idle, busy := mustOpen(t, c, target), mustOpen(t, c, target)
	if _, err := c.Run(t.Context(), busy.ID, api.Run{Text: "echo up; sleep 300"}); err != nil {
		t.Fatal(err)
	}
	if w, err := c.Wait(t.Context(), busy.ID, api.Wait{Until: api.UntilMatch, Match: "up", Max: api.Duration(20 * time.Second)}); err != nil || !w.Met {
		t.Fatalf("it does not run: %+v, %v", w, err)
	}
	f.link.Stall()
	begun := time.Now()
	var all sync.WaitGroup
	for _, s := range []api.Session{idle, busy} {
		all.Go(func() {
			if s, err := c.Close(t.Context(), s.ID); err != nil || s.State != api.Closed {
				t.Errorf("Close = %+v, %v", s, err)
			}
		})
	}
	all.Wait()
	if took := time.Since(begun); sshdtest.Over(t, took, 10*time.Second) || d.Sessions() != 0 {
		t.Errorf("it took %v, and %d sessions are left", took, d.Sessions())
	} else {
		t.Log(took)
	}
	f.link.Resume()
	eventually(t, "nothing is left on the server", func() bool { return empty(f.runtime) })
}
