package printed_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"

	"gateway/internal/printed"
)

func TestBy(t *testing.T) {
	for _, test := range []struct {
		name, text, stdout, stderr string
		fails                      bool
	}{
		{"both", "echo out; echo err >&2", "out\n", "err\n", false},
		{"nothing", ":", "", "", false},
		{"a status", "echo out; exit 3", "out\n", "", true},
		{"what holds on to it", "sleep 5 & echo out; echo err >&2", "out\n", "err\n", false},
		{"what goes on writing", "(trap '' PIPE; for i in 1 2 3 4 5; do sleep 1; echo late; done) & echo out", "out\n", "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
			defer cancel()
			stdout, stderr, err := printed.By(exec.CommandContext(ctx, "/bin/sh", "-c", test.text))
			if string(stdout) != test.stdout || string(stderr) != test.stderr || (err != nil) != test.fails || ctx.Err() != nil {
				t.Errorf("got %q, %q, %v, %v", stdout, stderr, err, ctx.Err())
			}
		})
	}
}

func TestMuch(t *testing.T) {
	stdout, stderr, err := printed.By(exec.Command("/bin/sh", "-c", "yes | head -c 3000001; yes n | head -c 200001 >&2"))
	if err != nil || !bytes.Equal(stdout, bytes.Repeat([]byte("y\n"), 1500001)[:3000001]) || !bytes.Equal(stderr, bytes.Repeat([]byte("n\n"), 100001)[:200001]) {
		t.Errorf("%d and %d bytes, %v", len(stdout), len(stderr), err)
	}
}

// What prints without an end is not waited for, and ends.
func TestEndless(t *testing.T) {
	for _, text := range []string{"yes", "yes >&2", "yes & wait"} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		stdout, stderr, err := printed.By(exec.CommandContext(ctx, "/bin/sh", "-c", text))
		if !errors.Is(err, printed.ErrMuch) || len(stdout)+len(stderr) > 5<<20 || ctx.Err() != nil {
			t.Errorf("%s: %d and %d bytes, %v, %v, want %v", text, len(stdout), len(stderr), err, ctx.Err(), printed.ErrMuch)
		}
		cancel()
	}
}

func TestDeadline(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	from, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	defer to.Close()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", "echo out; echo >&3; exec sleep 60")
	cmd.ExtraFiles = []*os.File{to}
	go func() { // ends with the program's word, or with the pipe
		_, _ = from.Read(make([]byte, 1))
		cancel()
	}()
	stdout, _, err := printed.By(cmd)
	if string(stdout) != "out\n" || err == nil {
		t.Errorf("got %q, %v", stdout, err)
	}
}

func TestNoSuchProgram(t *testing.T) {
	if _, _, err := printed.By(exec.Command("/nonexistent")); err == nil {
		t.Error("no error")
	}
}
