package transfer_test

import (
	"io"
	"strings"
	"testing"

	"gateway/gateway"
	"gateway/hosts"
	"gateway/transfer"
)

// TestHomeHere: the files of localhost begin where its programs do, whatever the caller's
// HOME is.
func TestHomeHere(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	c, err := gateway.New(gateway.Config{Inventory: hosts.New()}).Connect(t.Context(), "localhost", "")
	if err != nil {
		t.Fatal(err)
	}
	p, err := c.Pipe(t.Context(), "pwd -P")
	if err != nil {
		t.Fatal(err)
	}
	want, err := io.ReadAll(p.Stdout)
	if err != nil {
		t.Fatal(err)
	}
	m, err := transfer.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	home, err := m.Home(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if real, err := transfer.Resolve(t.Context(), m, home, true); err != nil || real.Path != strings.TrimSuffix(string(want), "\n") {
		t.Errorf("files begin in %q, %v, and programs in %q", real.Path, err, want)
	}
}
