package session_test

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"gateway/gateway"
	"gateway/internal/sshdtest"
	"gateway/session"
	"gateway/transport/local"
)

// container starts a command in namespaces of its own, as a server may start each channel, after
// a script that prepares them.
func container(script string, namespaces ...string) func(string) string {
	return func(command string) string {
		return "exec unshare " + strings.Join(namespaces, " ") + " --propagation private sh -c " + session.Quote(script+command)
	}
}

// TestChannelsInNamespaces: a shell that can't reach the side channel has all on the terminal, and one
// that can has its streams apart.
func TestChannelsInNamespaces(t *testing.T) {
	t.Parallel()
	if exec.Command("unshare", "-mpf", "--mount-proc", "script", "-qec", "true", "/dev/null").Run() != nil {
		sshdtest.Skip(t, "no namespaces here: they take root, unshare(1) and script(1)")
	}
	// A container has a terminal of its own.
	inside := func(start func(string) string) func(string) string {
		return func(command string) string { return start(recording(command)) }
	}
	own := container("for d in /dev/shm /tmp; do mount -t tmpfs -o mode=1777 none $d; done; ", "-mpf", "--mount-proc", "--kill-child")
	machines := map[string]struct {
		onTerminal, onPipe func(string) string
		streams            session.Streams
	}{
		"a container for each":       {inside(own), own, session.OnTerminal},
		"a container for terminals":  {inside(own), nil, session.OnTerminal},
		"other processes, same disk": {inside(container("", "-mpf", "--mount-proc", "--kill-child")), nil, session.OnTerminal},
		"other mounts, same names":   {container("", "-m"), container("", "-m"), session.Split},
	}
	for name, m := range machines {
		for _, shell := range shells {
			t.Run(name+" "+shell, func(t *testing.T) {
				t.Parallel()
				tr := local.New(local.Config{Env: []string{"HOME=/", "XDG_RUNTIME_DIR=", "SSH_TTY=/dev/pts/another"}})
				s := openOn(t, altered{Transport: tr, onTerminal: m.onTerminal, onPipe: m.onPipe}, session.Config{Shell: shell})
				for range 2 {
					r := run(t, s, "echo out; echo err >&2; (exit 3)")
					if out := string(r.Stdout) + string(r.Stderr); out != "out\nerr\n" || r.ExitCode != 3 || r.Streams != m.streams {
						t.Errorf("got %d %q on %s, want all on %s", r.ExitCode, out, r.Streams, m.streams)
					}
				}
				r, err := s.Run(t.Context(), session.Command{Text: "echo part; sleep 1000", Timeout: 200 * time.Millisecond})
				if r.Verdict != session.TimedOut || err == nil || !strings.HasPrefix(string(r.Stdout), "part\n") || r.Ended {
					t.Errorf("got %s %q ended=%v, %v", r.Verdict, r.Stdout, r.Ended, err)
				}
				if m.streams == session.OnTerminal {
					r, err = s.Run(t.Context(), session.Command{Text: "cat", Stdin: strings.NewReader("x")})
					if r.Verdict != session.NotStarted || gateway.Code(err) != "shell.unsupported" {
						t.Errorf("stdin on it = %s, %v, want not_started", r.Verdict, err)
					}
				}
				s.Close()
				if name == "a container for each" {
					_, err := session.Open(t.Context(), altered{Transport: tr, onTerminal: m.onTerminal, onPipe: m.onPipe}, session.Config{Shell: shell, Sudo: &session.Sudo{}})
					if gateway.Code(err) != "shell.unsupported" {
						t.Errorf("with sudo: %v, want shell.unsupported", err)
					}
				}
				eventually(t, "no process left", func() bool { return len(processes(s.ID())) == 0 })
			})
		}
	}
}
