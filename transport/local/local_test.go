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
