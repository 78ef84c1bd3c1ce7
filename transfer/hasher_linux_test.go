package transfer

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gateway/internal/sshdtest"
	"gateway/transport"
	"gateway/transport/local"
)

// cut is a program whose link goes: it gets no signal.
type cut struct{ *transport.Pipe }

func (c cut) Close() error { return c.Stdin.Close() }

// TestHashEnds: a hash ends with who asked for it, whatever sh is, and who watches
// for that ends with the hash.
func TestHashEnds(t *testing.T) {
	for _, sh := range []string{"bash", "busybox sh", "dash", "ksh93", "mksh", "yash", "zsh"} {
		t.Run(sh, func(t *testing.T) {
			name, _, _ := strings.Cut(sh, " ")
			if _, err := exec.LookPath(name); err != nil {
				sshdtest.Skip(t, "no shell to hash with: %v", err)
			}
			here := local.New(local.Config{})
			t.Cleanup(func() { here.Close() })
			for what, to := range map[string]int64{"whole": -1, "steps": 1 << 40, "bytes": 1<<40 + 1} {
				t.Run(what, func(t *testing.T) {
					var program *transport.Pipe
					h := newHasher(func(ctx context.Context, command string) (*transport.Pipe, error) {
						p, err := here.Pipe(ctx, strings.ReplaceAll(command, "exec sh", "exec "+sh))
						if err != nil {
							return nil, err
						}
						program = p
						return &transport.Pipe{Stdin: p.Stdin, Stdout: p.Stdout, Stderr: p.Stderr, Program: cut{p}}, nil
					})
					hashesAndEnds(t, h, to)
					if _, err := io.Copy(io.Discard, program.Stdout); err != nil { // who holds it is gone
						t.Error(err)
					}
					program.Close()
				})
			}
		})
	}
}

// TestHashOfASlowDisk: a machine that logs out who is idle for some seconds (TMOUT) leaves a
// hash the time that it takes. bash and ksh93 heed that in any read.
func TestHashOfASlowDisk(t *testing.T) {
	t.Parallel()
	for _, sh := range []string{"bash", "ksh93"} {
		t.Run(sh, func(t *testing.T) {
			t.Parallel()
			here := local.New(local.Config{Env: []string{"TMOUT=1"}})
			defer here.Close()
			h := newHasher(func(ctx context.Context, command string) (*transport.Pipe, error) {
				return here.Pipe(ctx, strings.ReplaceAll(command, "exec sh", "exec "+sh))
			})
			defer h.close()
			slow := t.TempDir() + "/slow"
			must(t, syscall.Mkfifo(slow, 0o600))
			go func() { // ends with the hash, or before
				if disk, err := os.OpenFile(slow, os.O_WRONLY, 0); err == nil {
					time.Sleep(1500 * time.Millisecond)
					io.WriteString(disk, "abc")
					disk.Close()
				}
			}()
			if sum, err := h.sum(t.Context(), slow, 0, 1<<40); err != nil || sum != sha256.Sum256([]byte("abc")) {
				t.Errorf("%x, %v", sum, err)
			}
		})
	}
}

// hashesAndEnds has a file hashed, and then a part of one that does not end.
func hashesAndEnds(t *testing.T, h *hasher, to int64) {
	t.Helper()
	dir := t.TempDir()
	file := dir + "/a file"
	must(t, errors.Join(os.WriteFile(file, []byte("abc"), 0o600), syscall.Mkfifo(dir+"/endless", 0o600)))
	if sum, err := h.sum(t.Context(), file, 0, to); err != nil || sum != sha256.Sum256([]byte("abc")) {
		t.Errorf("%x, %v", sum, err)
	}
	if sum, err := h.sum(t.Context(), dir+"/none", 0, to); !errors.Is(err, errNotHashed) {
		t.Errorf("what is not there has the hash %x, %v", sum, err)
	}
	// What has had its end read from it may take a moment to be gone.
	left := &question{script: func(string) string {
		return "i=0; while read -r x </proc/$$/task/$$/children; [ \"$x\" ] && [ $i -lt 9999 ]; do i=$((i + 1)); done; echo \"$x\"\n"
	}}
	if line, err := h.ask(t.Context(), left); err != nil || line != "" {
		t.Errorf("left behind: %q, %v", line, err)
	}
	go h.sum(t.Context(), dir+"/endless", 0, to)
	endless, err := os.OpenFile(dir+"/endless", os.O_WRONLY, 0) // waits for who reads it
	if err != nil {
		t.Fatal(err)
	}
	defer endless.Close()
	var closing sync.WaitGroup
	closing.Go(h.close)
	defer closing.Wait()
	must(t, endless.SetWriteDeadline(time.Now().Add(20*time.Second)))
	for err == nil {
		_, err = endless.Write(zeros)
	}
	if !errors.Is(err, syscall.EPIPE) {
		t.Errorf("it is read on: %v", err)
	}
}
