package transfer

import (
	"context"
	"errors"
	"testing"

	"gateway/gateway"
)

// greets returns a server's files that says what it speaks, and nothing more.
func greets(t *testing.T) *Remote {
	t.Helper()
	pipe, err := polite{}.Subsystem(t.Context(), "sftp")
	if err != nil {
		t.Fatal(err)
	}
	l, err := newLink(t.Context(), pipe)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.close)
	return &Remote{name: "web1", link: l, hasher: newHasher(mute{}.Pipe)}
}

// TestOwnCause: who cancels for a reason of his own finds both in the error.
func TestOwnCause(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	cancel(cause)
	server, shell, here := greets(t), shellHere(t, "stat"), &Local{Dir: t.TempDir()}
	t.Cleanup(server.hasher.close)
	pipe, err := mute{}.Pipe(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	must(t, Write(t.Context(), here, "f", []byte("text"), nil))
	for name, do := range map[string]func() error{
		"ask a server":       func() error { _, err := server.Stat(ctx, "/f", false); return err },
		"list on a server":   func() error { return server.List(ctx, "/", nil) },
		"write on a server":  func() error { return Write(ctx, server, "/f", nil, nil) },
		"hash there":         func() error { _, err := server.hasher.sum(ctx, "/f", 0, -1); return err },
		"greet a server":     func() error { _, err := newLink(ctx, pipe); return err },
		"greet a shell":      func() error { _, err := openShell(ctx, mute{}.Pipe, greeting); return err },
		"ask a shell":        func() error { _, err := shell.Stat(ctx, "/", false); return err },
		"have a shell write": func() error { _, err := shell.launch(ctx, ":", true); return err },
		"list here":          func() error { return here.List(ctx, "", func(Info) error { return nil }) },
		"hash here":          func() error { _, err := here.Sum(ctx, "f", 0, -1); return err },
		"write here":         func() error { return Write(ctx, here, "f", nil, nil) },
		"copy":               func() error { return (&Copy{From: here, To: here, Paths: []string{"f"}, Into: "g"}).Run(ctx).Err },
	} {
		if err := do(); !errors.Is(err, cause) || !errors.Is(err, context.Canceled) || gateway.Code(err) != "cmd.interrupted" {
			t.Errorf("%s: %v (%s), want %v and that it was cancelled", name, err, gateway.Code(err), cause)
		}
	}
}
