package daemon_test

import (
	"os/exec"
	"testing"
	"time"

	"gateway/daemon"
	"gateway/daemon/api"
	"gateway/gateway"
	"gateway/internal/sshdtest"
	"gateway/session"
)

// TestStreamsOfWhatRuns: where the terminal carries all, that is not said of the result
// alone.
func TestStreamsOfWhatRuns(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("script"); err != nil {
		sshdtest.Skip(t, "no script(1)")
	}
	s := sshdtest.Start(t, sshdtest.Options{Config: []string{`ForceCommand exec script -qec "$SSH_ORIGINAL_COMMAND" /dev/null`}})
	c := start(t, daemon.Config{})("")
	opened := open(t, c, api.Open{Target: gateway.Target{
		Name: "web1", Addr: s.Host, Port: s.Port, User: s.User,
		Identities: []gateway.Identity{{Key: s.KeyFile}}, IdentitiesOnly: true,
		HostKeys: gateway.HostKeyRule{Files: []string{s.KnownHosts}, Write: "none", Policy: "strict"},
	}})
	running, err := c.Run(t.Context(), opened.ID, api.Run{Text: "sleep 1000"})
	if err != nil || running.Over() || running.Streams() != session.OnTerminal {
		t.Errorf("it runs as %+v, %v, its streams are %s", running, err, running.Streams())
	}
	var waited api.Waited
	for begun := time.Now(); !waited.Met && err == nil && time.Since(begun) < 20*time.Second; {
		// A ^C is lost on a program that is about to begin, and here nobody looks for that. The
		// command may be over by now.
		_ = c.Interrupt(t.Context(), opened.ID, api.Interrupt{Level: string(session.Int)})
		waited, err = c.Wait(t.Context(), opened.ID, api.Wait{Until: api.UntilExit, Max: api.Duration(time.Second)})
	}
	if err != nil || waited.Command == nil || waited.Command.Result == nil || waited.Command.Result.Streams != session.OnTerminal {
		t.Errorf("it ends as %+v, %v", waited, err)
	}
}
