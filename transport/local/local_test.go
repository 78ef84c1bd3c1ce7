package local_test

import (
	"io"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"gateway/transport"
	"gateway/transport/local"
	"gateway/transport/transporttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestContract(t *testing.T) {
	transporttest.Run(t, func(t testing.TB) transport.Transport {
		tr := local.New(local.Config{})
		t.Cleanup(func() { tr.Close() })
		return tr
	})
}

// TestPipeMayCleanUp has a program take its time after the hang-up.
func TestPipeMayCleanUp(t *testing.T) {
	tr := local.New(local.Config{Dir: t.TempDir()})
	defer tr.Close()
	pipe, err := tr.Pipe(t.Context(), `trap "" HUP; touch left; echo; read -r x; sleep 1; rm left`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(pipe.Stdout, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	pipe.Close()
	if exit, err := pipe.Wait(); exit != (transport.Exit{}) || err != nil {
		t.Errorf("Wait = %+v, %v; want its own end", exit, err)
	}
}

// TestLastWordOnTheTerminal has programs that let go of the terminal say something on it
// just before they end, while nobody looks at it.
func TestLastWordOnTheTerminal(t *testing.T) {
	tr := local.New(local.Config{Dir: t.TempDir()})
	defer tr.Close()
	var all sync.WaitGroup
	for range 8 {
		terminal, err := tr.Terminal(t.Context(), "exec </dev/null >/dev/null 2>&1; sleep 0.2; echo bye >/dev/tty", transport.TerminalOptions{})
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			defer terminal.Close()
			if b, err := io.ReadAll(terminal); string(b) != "bye\n" || err != nil {
				t.Errorf("read %q, %v; want the last word", b, err)
			}
		})
	}
	all.Wait()
}

func TestEnvironmentIsALoginsAndNotTheCallers(t *testing.T) {
	t.Setenv("GWTEST_SECRET", "x")
	t.Setenv("LC_TIME", "C")
	t.Setenv("LANG", "C")
	t.Setenv("TZ", "UTC")
	out := output(t, local.Config{Env: []string{"ADDED=1"}}, "env; pwd")
	for _, want := range []string{"HOME=", "USER=", "LOGNAME=", "SHELL=", "PATH=", "LC_TIME=C\n", "LANG=C\n", "TZ=UTC\n", "ADDED=1\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("environment has no %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "GWTEST_SECRET") {
		t.Errorf("the caller's own variable went in:\n%s", out)
	}
}
