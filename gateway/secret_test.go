package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gateway/gateway"
)

// A reference to a file is to a regular one, or to what the process was given.
// Nothing else is waited for or read without an end.
func TestSecretFile(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	for name, content := range map[string]string{"short": "hunter2\n", "largest": strings.Repeat("x", 64<<10), "larger": strings.Repeat("x", 64<<10+1)} {
		must(t, os.WriteFile(path(name), []byte(content), 0o600))
	}
	sparse, err := os.Create(path("sparse"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(sparse.Truncate(8<<30), sparse.Close(), syscall.Mkfifo(path("fifo"), 0o600),
		os.Symlink("short", path("link")), os.Symlink("fifo", path("fifolink")), os.Mkdir(path("directory"), 0o700)); err != nil {
		t.Fatal(err)
	}
	from, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	if _, err := to.WriteString("given\n"); err != nil {
		t.Fatal(err)
	}
	to.Close()
	for _, test := range []struct{ path, want, err, hint string }{
		{path("short"), "hunter2", "", ""},
		{path("link"), "hunter2", "", ""},
		{path("largest"), strings.Repeat("x", 64<<10), "", ""},
		{path("larger"), "", "file:…: longer than 64 KiB", "hosts show"},
		{path("sparse"), "", "file:…: longer than 64 KiB", "hosts show"},
		{path("nope"), "", "file:" + path("nope") + ": no such file or directory", "hosts show"},
		{path("directory"), "", "file:" + path("directory") + ": is a directory", "hosts show"},
		{path("fifo"), "", "file:" + path("fifo") + ": a FIFO, and no regular file", "cmd:cat"},
		{path("fifolink"), "", "file:" + path("fifolink") + ": a FIFO, and no regular file", "cmd:cat"},
		{"/dev/zero", "", "file:/dev/zero: a device, and no regular file", "cmd:cat"},
		{fmt.Sprintf("/dev/fd/%d", from.Fd()), "given", "", ""},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		got, err := gateway.Secret(ctx, "file:"+test.path)
		cancel()
		if test.err == "" {
			if err != nil || got != test.want {
				t.Errorf("%s: %.20q, %v, want %.20q", test.path, got, err, test.want)
			}
			continue
		}
		if err == nil || err.Error() != "gateway: secret "+test.err || gateway.Code(err) != "secret.unreadable" || !strings.Contains(gateway.Hint(err), test.hint) {
			t.Errorf("%s: %.20q, %v, want %s", test.path, got, err, test.err)
		}
	}
}

// An empty variable is what a job has that was given no secret.
func TestSecretIsEmpty(t *testing.T) {
	t.Setenv("GATEWAY_TEST_EMPTY", "")
	for reference, shown := range map[string]string{"env:GATEWAY_TEST_EMPTY": "env:GATEWAY_TEST_EMPTY", "cmd:echo": "cmd:…"} {
		if got, err := gateway.Secret(t.Context(), reference); gateway.Code(err) != "secret.unreadable" || err.Error() != "gateway: secret "+shown+": it is empty" {
			t.Errorf("Secret(%q) = %q, %v, want an error that it is empty", reference, got, err)
		}
	}
}

// Who writes into a pipe may never end; the caller's patience does.
func TestSecretOfAnOpenPipe(t *testing.T) {
	from, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	defer to.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if got, err := gateway.Secret(ctx, fmt.Sprintf("file:/dev/fd/%d", from.Fd())); err == nil || gateway.Code(err) != "secret.unreadable" || !strings.Contains(err.Error(), "deadline exceeded") {
		t.Errorf("%q, %v, want the deadline", got, err)
	}
}

// Whoever gives up is told that, and not that the secret can't be read.
func TestSecretGivenUp(t *testing.T) {
	from, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	defer to.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("a signal")
	cancel(cause)
	for _, reference := range []string{"cmd:sleep 60", fmt.Sprintf("file:/dev/fd/%d", from.Fd())} {
		got, err := gateway.Secret(ctx, reference)
		if gateway.Code(err) != "cmd.interrupted" || !errors.Is(err, context.Canceled) || !errors.Is(err, cause) {
			t.Errorf("%s: %q, %v (%s), want %v", reference, got, err, gateway.Code(err), cause)
		}
	}
}
