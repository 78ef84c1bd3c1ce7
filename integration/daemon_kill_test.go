package integration

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"gateway/daemon/api"
	"gateway/daemon/client"
	"gateway/gateway"
	"gateway/internal/sshdtest"
	"gateway/internal/transcript"
	"gateway/session"
)

// TestKilled kills callers and the daemon at random moments of many sessions.
// What is on the disk can be read and is true, the next daemon knows what was
// lost, and on the machine only that is left which was to stay.
func TestKilled(t *testing.T) {
	t.Parallel()
	runtime := t.TempDir()
	server := sshdtest.Start(t, sshdtest.Options{Config: []string{"SetEnv XDG_RUNTIME_DIR=" + runtime, "MaxStartups 100"}})
	seed := soakSeed(t)
	random := rand.New(rand.NewPCG(seed, 0))
	h := newHouse(t)
	h.write(t, ".config/gateway/hosts.yaml", "hosts:\n  web1: "+entry(server, "")+"\n")
	d := disaster{house: h, server: server, stays: tag(t), allow: filepath.Join(t.TempDir(), "go")}
	defer gone(t, d.stays)
	defer os.WriteFile(d.allow, nil, 0o600)
	for round := range long(2, 20) {
		d.strike(t, random, round)
		if t.Failed() {
			return
		}
	}
	if tagged(d.stays) == 0 {
		t.Error("what was to stay is gone")
	}
	if o := h.gateway(t, "serve", "--stop", "--force"); o.status != 0 {
		t.Errorf("serve --stop: %+v", o)
	}
	eventually(t, "no directory of a keeper left", func() bool { return empty(runtime) })
}

type disaster struct {
	*house
	server *sshdtest.Server
	stays  string // tags what is to stay
	allow  string // the file that ends it
}

// strike kills callers for a while, then the daemon, and looks at what is left.
func (d *disaster) strike(t *testing.T, random *rand.Rand, round int) {
	t.Helper()
	daemon := d.serve(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all sync.WaitGroup
	for i := range 5 {
		v := victim{disaster: d, random: rand.New(rand.NewPCG(random.Uint64(), 0)), name: fmt.Sprintf("v%d-%d", round, i)}
		all.Go(func() { v.live(ctx, t) })
	}
	select {
	case <-time.After(time.Second + time.Duration(random.IntN(2000))*time.Millisecond):
	case <-t.Context().Done():
	}
	// A machine may need longer for the first command.
	for deadline := time.Now().Add(30 * time.Second); tagged(d.stays) == 0 && time.Now().Before(deadline); <-time.After(50 * time.Millisecond) {
	}
	must(t, daemon.Process.Kill())
	_ = daemon.Wait() // killed
	cancel()
	all.Wait()

	commands := d.records(t)
	if o := d.gateway(t, "serve"); o.status != 0 {
		t.Fatalf("serve: %+v", o)
	}
	c := client.At(d.socket, "")
	defer c.Release()
	d.known(t, c, commands)
	// The next session ends what is left, and only that.
	if o := d.gateway(t, "session", "open", "web1", "--name", "next"); o.status != 0 {
		t.Fatalf("session open: %+v", o)
	}
	if _, err := c.Close(t.Context(), "next"); err != nil {
		t.Error(err)
	}
	soon(t, "only what was to stay is left", func() bool { return len(d.left()) == 0 })
	if t.Failed() {
		t.Logf("left: %q", d.left())
	}
	if o := d.gateway(t, "serve", "--stop"); o.status != 0 {
		t.Errorf("serve --stop: %+v", o)
	}
}

// left returns what sessions have on the server, without what is to stay.
func (d *disaster) left() []string {
	return processes(func(env []string) bool { return !slices.Contains(env, d.stays) && isOnPort(env, d.server.Port) })
}

// A victim is the caller of one session.
type victim struct {
	*disaster
	random *rand.Rand
	name   string
}

// toSay matches what a command is, and what it prints.
var toSay = regexp.MustCompile(`# says (\S+) (\d+)$`)

func sayings(text string) string {
	m := toSay.FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	n, _ := strconv.Atoi(m[2])
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%s %d\n", m[1], i)
	}
	return b.String()
}

// live opens the session and runs commands until ctx ends.
func (v *victim) live(ctx context.Context, t *testing.T) {
	_, killed := v.call(ctx, t, v.random.IntN(4) == 0, 400, "session", "open", "web1", "--name", v.name)
	for n := 0; !killed && ctx.Err() == nil; n++ {
		lines := v.random.IntN(2000)
		pause := []string{"", "", "sleep 0.1; ", "sleep 0.1 | cat; "}[v.random.IntN(4)]
		if n == 0 || v.random.IntN(8) == 0 { // some of the first ones are not killed before
			pause = "(export " + v.stays + "; nohup sh -c 'until [ -e " + v.allow + " ]; do sleep 0.1; done' >/dev/null 2>&1 &) ; "
		}
		text := fmt.Sprintf("i=0; while [ $i -lt %d ]; do echo %s.%d $i; i=$((i+1)); [ $i != %d ] || %s:; done; cd /tmp # says %[2]s.%[3]d %[1]d", lines, v.name, n, lines/2, pause)
		o, killed := v.call(ctx, t, v.random.IntN(3) == 0, 300, "session", "exec", v.name, "--", text)
		want := sayings(text)
		switch {
		case killed:
		case o.status == 0 && o.stdout != want, !strings.HasPrefix(want, o.stdout):
			t.Errorf("%.100s: status %d, %d bytes of %d: %.200q, %.300q", text, o.status, len(o.stdout), len(want), o.stdout, o.stderr)
		case o.status != 0 && ctx.Err() == nil && !strings.Contains(o.stderr, "session.busy"):
			// The daemon may have died a moment ago.
			if !strings.Contains(o.stderr, "daemon.") && !strings.Contains(o.stderr, "link.lost") {
				t.Errorf("%.100s: %d %.300q", text, o.status, o.stderr)
			}
		}
	}
}

// call calls gateway, and kills it within so many milliseconds if it is to.
func (v *victim) call(ctx context.Context, t *testing.T, kill bool, within int, args ...string) (o outcome, killed bool) {
	cmd := v.command(t, args...)
	if !kill {
		return outcomeOf(t, cmd), false
	}
	if err := cmd.Start(); err != nil {
		t.Error(err)
		return o, true
	}
	select {
	case <-time.After(time.Duration(v.random.IntN(within)) * time.Millisecond):
	case <-ctx.Done():
	}
	_ = cmd.Process.Kill() // it may have ended
	_ = cmd.Wait()
	return o, true
}

// records reads what the dead daemon has left as it stands on the disk, and
// returns the commands, as their last lines say.
func (d *disaster) records(t *testing.T) map[string]api.Command {
	t.Helper()
	root := filepath.Join(d.home, ".local/state/gateway/sessions")
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	commands := map[string]api.Command{}
	for _, entry := range entries {
		dir := filepath.Join(root, entry.Name())
		var s api.Session
		data, err := os.ReadFile(filepath.Join(dir, "session.json"))
		if err == nil {
			err = json.Unmarshal(data, &s)
		}
		if err != nil || s.ID != entry.Name() || s.Host != "web1" {
			t.Errorf("%s: %v, %.200q", dir, err, data)
		}
		data, _ = os.ReadFile(filepath.Join(dir, "commands.jsonl")) // there may have been none
		lines := bytes.Split(data, []byte("\n"))
		for i, line := range lines[:len(lines)-1] { // what follows the last newline is torn
			var c api.Command
			if err := json.Unmarshal(line, &c); err != nil {
				// A daemon that came later writes behind a torn line.
				if s.State != api.Lost && s.State != api.Closed || len(line) > 0 && i != len(lines)-3 {
					t.Errorf("%s, line %d of %d: %v", dir, i+1, len(lines), err)
				}
				continue
			}
			c.Text = cmp.Or(c.Text, commands[c.ID].Text) // the first line has it
			commands[c.ID] = c
		}
	}
	for id, c := range commands {
		log, err := transcript.Open(filepath.Join(root, c.Session))
		if err != nil {
			t.Errorf("%s: %v", id, err)
			continue
		}
		to := log.End()
		if c.Over() {
			to = transcript.Cursor(c.To)
		}
		page, err := log.View(transcript.Cursor(c.From), to, transcript.Stream(session.Stdout)).Read(transcript.Cursor(c.From), 1<<20)
		d.true(t, c, string(transcript.Bytes(page.Chunks)))
		if err != nil || page.Dropped > 0 {
			t.Errorf("%s: %d bytes dropped, %v", id, page.Dropped, err)
		}
	}
	return commands
}

// true checks what there is of a command's output.
func (d *disaster) true(t *testing.T, c api.Command, stdout string) {
	t.Helper()
	want := sayings(c.Text)
	switch {
	case c.State == "exited" && stdout != want, !strings.HasPrefix(want, stdout):
		t.Errorf("%s %s: %d bytes of %d, %.200q", c.ID, c.State, len(stdout), len(want), stdout)
	}
}

// known checks what the next daemon says.
func (d *disaster) known(t *testing.T, c *client.Client, commands map[string]api.Command) {
	t.Helper()
	list, err := c.Sessions(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	lost := 0
	for _, s := range list {
		if s.State != api.Closed {
			lost++
		}
		if !s.State.Over() || s.Reason == "" || s.ClosedAt == nil || s.Command != nil && !s.Command.Over() {
			t.Errorf("a session of a dead daemon is %+v, with %+v", s, s.Command)
		}
	}
	for id, before := range commands {
		now, err := c.Command(t.Context(), id, 1<<20)
		if err != nil || now.Result == nil || before.Over() && now.State != before.State || !before.Over() && (now.State != "unknown" || gateway.Code(now.Result.Err) != "link.lost") {
			t.Errorf("%s was %s and is %s, %v", id, before.State, now.State, err)
			continue
		}
		d.true(t, now, string(now.Result.Stdout))
	}
	for _, s := range list {
		if s.State == api.Lost {
			if _, err := c.Close(t.Context(), s.ID); err != nil { // it is seen
				t.Error(err)
			}
		}
	}
	t.Logf("%d sessions, %d of them lost; %d commands", len(list), lost, len(commands))
}
