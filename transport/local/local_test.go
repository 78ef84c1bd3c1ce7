package local_test

import (
	"io"
	"strings"
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

func TestEnvironmentIsALoginsAndNotTheCallers(t *testing.T) {
	t.Setenv("GWTEST_SECRET", "x")
	t.Setenv("LC_TIME", "C")
	tr := local.New(local.Config{Env: []string{"ADDED=1"}})
	defer tr.Close()
	pipe, err := tr.Pipe(t.Context(), "env; pwd")
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	b, err := io.ReadAll(pipe.Stdout)
	if err != nil {
		t.Fatal(err)
	}
	out := string(b)
	for _, want := range []string{"HOME=", "USER=", "LOGNAME=", "SHELL=", "PATH=", "LC_TIME=C\n", "ADDED=1\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("environment has no %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "GWTEST_SECRET") {
		t.Errorf("the caller's own variable went in:\n%s", out)
	}
}
