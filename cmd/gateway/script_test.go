package main

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"gateway": main, "activate": activate})
}

// environ is what the tests' gateway sees: an account without settings. The
// race detector would make every call a second longer.
func environ(home string) []string {
	return []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "GORACE=atexit_sleep_ms=0", "TERM=xterm"}
}

// heedHangUps is for whoever runs the tests and ignores the signal (nohup): an
// ignored signal stays so in a child, and one that is caught does not.
var heedHangUps = sync.OnceFunc(func() { signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP) })

func TestScripts(t *testing.T) {
	heedHangUps()
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			home := filepath.Join(env.WorkDir, "home")
			env.Setenv("HOME", home)
			env.Setenv("GORACE", "atexit_sleep_ms=0")
			env.Defer(func() { endDaemons(t, env) })
			return os.MkdirAll(home, 0o700)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
	})
}

// exits runs a command and wants a status: exits 3 gateway exec …
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS COMMAND...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%s: %v", args[1], err)
	}
	if got != want {
		ts.Fatalf("status %d, want %d", got, want)
	}
}

// A call may take 15 ms before it does anything.
func BenchmarkStart(b *testing.B) {
	home := b.TempDir()
	for b.Loop() {
		cmd := exec.Command("gateway", "config", "show")
		cmd.Env = environ(home)
		must(b, cmd.Run())
	}
}
