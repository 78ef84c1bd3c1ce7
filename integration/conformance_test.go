package integration

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"sync"
	"testing"
	"time"

	"gateway/internal/sshdtest"
	"gateway/session"
	"gateway/session/conformance"
	"gateway/transport"
)

// allShells are those that a session can drive.
var allShells = []string{"bash", "dash", "zsh", "ksh", "mksh", "yash", "busybox ash"}

// TestConformance runs every case in every shell on every machine. With
// GATEWAY_CONFORMANCE_MATRIX it writes what came of it to that file. As many cells run
// side by side as -parallel says.
func TestConformance(t *testing.T) {
	var m matrix
	runtime := t.TempDir()
	all := machines(t, runtime)
	all = append(all, machine{"lent", true, func(t testing.TB) transport.Transport { return lent(t, all[1].open(t)) }})
	var cells sync.WaitGroup
	slots := make(chan struct{}, flag.Lookup("test.parallel").Value.(flag.Getter).Get().(int))
	for _, shell := range allShells {
		for _, machine := range all {
			cells.Go(func() { // ends with its cell
				slots <- struct{}{}
				defer func() { <-slots }()
				t.Run(shell+"/"+machine.name, func(t *testing.T) { runCell(t, shell, machine, &m) })
			})
		}
	}
	cells.Wait()
	left := time.Now().Add(time.Minute) // jobs that were let go hold streams for up to 20 s
	for !empty(runtime) && time.Now().Before(left) {
		<-time.After(50 * time.Millisecond)
	}
	if !empty(runtime) {
		t.Error("a keeper's directory is left")
	}
	t.Log(m.summary())
	if file := os.Getenv("GATEWAY_CONFORMANCE_MATRIX"); file != "" {
		must(t, os.WriteFile(file, []byte(m.markdown(allShells, all)), 0o600))
	}
}

// runCell runs all cases in one shell on one machine, with a session for each
// group.
func runCell(t *testing.T, shell string, machine machine, m *matrix) {
	tr := machine.open(t)
	for _, group := range conformance.Groups() {
		t.Run(group.Letter, func(t *testing.T) {
			runner := newRunner(t, tr, shell)
			defer runner.Close()
			must(t, runner.Start(t.Context()))
			for _, c := range group.Cases {
				at := spot{c.ID, shell, machine.name}
				if reason := c.Reason(shell, machine.tty); reason != "" {
					m.note(at, reason)
					continue
				}
				t.Run(c.ID, func(t *testing.T) {
					m.note(at, failed)
					problems := runner.Run(t.Context(), c)
					m.noteLate(at, runner.Late)
					if runner.Again {
						t.Log("a fault of the shell itself: run again")
					}
					for _, problem := range problems {
						t.Errorf("%s: %s", c.Name, problem)
					}
					if len(problems) == 0 {
						m.note(at, passed)
					}
				})
			}
		})
	}
}

// newRunner opens sessions with a scratch directory of their own.
func newRunner(t *testing.T, tr transport.Transport, shell string) *conformance.Runner {
	t.Helper()
	dir := realDir(t)
	env := map[string]string{"T": dir}
	if shell == "yash" {
		env["LC_ALL"] = "C.UTF-8" // it reads characters of the locale; a server may have none
	}
	return &conformance.Runner{
		Shell: shell, Dir: dir, Watch: sshdtest.WatchFault,
		Open: func(ctx context.Context, config session.Config) (*session.Session, error) {
			all := maps.Clone(env)
			maps.Copy(all, config.Env)
			config.Shell, config.Env = shell, all
			s, err := session.Open(ctx, tr, config)
			if err != nil {
				return nil, fmt.Errorf("a session of %s: %w", shell, err)
			}
			return s, nil
		},
	}
}
