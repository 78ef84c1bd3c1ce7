package transfer

import (
	"context"
	"crypto/sha256"
	"errors"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/pkg/sftp"

	"gateway/transport"
	"gateway/transport/local"
)

// TestSumElsewhere: a relative path begins where the server says, though programs
// begin in another directory that has one of the name.
func TestSumElsewhere(t *testing.T) {
	served, home := t.TempDir(), t.TempDir()
	for dir, text := range map[string]string{served: "right", home: "wrong"} {
		must(t, os.WriteFile(dir+"/f", []byte(text), 0o600))
	}
	near, far := net.Pipe()
	s, err := sftp.NewServer(far, sftp.WithServerWorkingDirectory(served))
	if err != nil {
		t.Fatal(err)
	}
	here := local.New(local.Config{})
	t.Cleanup(func() { here.Close() })
	r := &Remote{name: "web1", link: linkTo(t, s, near, near), hasher: newHasher(func(ctx context.Context, command string) (*transport.Pipe, error) {
		return here.Pipe(ctx, "cd "+quote(home)+"; "+command)
	})}
	t.Cleanup(r.hasher.close)
	if sum, err := r.Sum(t.Context(), "f", 0, -1); err != nil || sum != sha256.Sum256([]byte("right")) {
		t.Errorf("%x, %v, want the hash of what is served", sum, err)
	}
}

// TestHasherIsFoundLater: a shell that there was no place for is asked for again; one
// that has answered, and knows no program, is not.
func TestHasherIsFoundLater(t *testing.T) {
	here := local.New(local.Config{})
	t.Cleanup(func() { here.Close() })
	dir := t.TempDir()
	for _, program := range []string{"sha256sum", "head"} {
		script(t, dir+"/"+program, "PATH=/usr/bin:/bin exec "+program+" \"$@\"")
	}
	for name, test := range map[string]struct {
		first func(ctx context.Context, command string) (*transport.Pipe, error)
		works bool // later
	}{
		"no place for a channel": {func(context.Context, string) (*transport.Pipe, error) {
			return nil, &transport.Error{Code: "session.limit", Message: "ssh: web1: no more channels"}
		}, true},
		"a shell that dies while it looks": {func(ctx context.Context, _ string) (*transport.Pipe, error) {
			return here.Pipe(ctx, "echo; echo "+ready)
		}, true},
		"no program": {func(ctx context.Context, command string) (*transport.Pipe, error) {
			return here.Pipe(ctx, strings.ReplaceAll(command, "exec sh", "PATH=/nowhere; exec /bin/sh"))
		}, false},
		"no dd, which cuts a piece out of a file": {func(ctx context.Context, command string) (*transport.Pipe, error) {
			return here.Pipe(ctx, strings.ReplaceAll(command, "exec sh", "PATH="+dir+"; exec /bin/sh"))
		}, false},
		"no shell": {func(ctx context.Context, _ string) (*transport.Pipe, error) { return here.Pipe(ctx, "exec true") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			starts := 0
			h := newHasher(func(ctx context.Context, command string) (*transport.Pipe, error) {
				if starts++; starts == 1 {
					return test.first(ctx, command)
				}
				return here.Pipe(ctx, command)
			})
			t.Cleanup(h.close)
			if err := h.settle(t.Context(), t.TempDir()); err != nil {
				t.Errorf("settle: %v, want nothing told", err)
			}
			if h.works(t.Context()) != test.works || test.works != (starts == 2) {
				t.Errorf("works: %v after %d starts, want %v", !test.works, starts, test.works)
			}
		})
	}
	h := newHasher(func(context.Context, string) (*transport.Pipe, error) { return nil, errors.New("no place") })
	t.Cleanup(h.close)
	if _, err := h.sum(t.Context(), "/f", 0, -1); !errors.Is(err, errNoHasher) {
		t.Errorf("%v, want %v", err, errNoHasher)
	}
}
