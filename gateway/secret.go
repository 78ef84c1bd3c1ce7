package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"gateway/hosts"
	"gateway/internal/printed"
	"gateway/transport"
)

const hintReference = "the reference stands in the inventory: see gateway hosts show HOST --explain"

// secretTimeout bounds a command that prints a secret, and who writes one into a
// pipe. Password managers may ask a person first.
const secretTimeout = 2 * time.Minute

// maxSecret bounds a secret; keys are the longest.
const maxSecret = 64 << 10

// Secret resolves a reference: env:NAME, file:PATH or cmd:COMMAND. A file is a
// regular one, or what the process has open (/dev/fd/N). One newline at the end
// is taken off. No error ever holds the secret, nor what a command wrote beside
// it.
func Secret(ctx context.Context, reference string) (string, error) {
	kind, rest, err := hosts.ParseReference(reference)
	if err != nil {
		return "", err
	}
	var value []byte
	switch kind {
	case "env":
		text, ok := os.LookupEnv(rest)
		if !ok {
			return "", unreadable(reference, "the variable is not set", hintReference)
		}
		value = []byte(text)
	case "file":
		if value, err = secretFromFile(ctx, rest); err != nil {
			hint := hintReference
			if errors.As(err, new(irregular)) {
				hint = "file: is for regular files; cmd:cat PATH reads others, for two minutes at most"
			}
			return "", unreadable(reference, cause(err), hint)
		}
	case "cmd":
		if value, err = secretFromCommand(ctx, rest); err != nil {
			return "", unreadable("cmd:…", err.Error(), hintReference)
		}
	}
	if len(value) > maxSecret {
		return "", unreadable(kind+":…", "longer than 64 KiB", hintReference)
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(value), "\n"), "\r"), nil
}

// secretFromFile reads no more than shows that it is too long, and waits no
// longer than the caller does.
func secretFromFile(ctx context.Context, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, secretTimeout)
	defer cancel()
	type read struct {
		value []byte
		err   error
	}
	done := make(chan read, 1)
	go func() { // outlives the call only where a file system hangs
		value, err := readSecret(ctx, path)
		done <- read{value, err}
	}()
	select {
	case r := <-done:
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return r.value, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func readSecret(ctx context.Context, path string) ([]byte, error) {
	info, err := os.Stat(path) // first, for some devices do something when they are opened
	if err != nil {
		return nil, err
	}
	if err := readable(path, info); err != nil {
		return nil, err
	}
	// It may be a FIFO by now: without O_NONBLOCK open waits for who writes.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return nil, err
	}
	if err := readable(path, info); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = f.SetReadDeadline(time.Unix(1, 0)) }) // only pipes have one
	defer stop()
	return io.ReadAll(io.LimitReader(f, maxSecret+1))
}

// readable refuses what may have no end, or none that comes: FIFOs and devices.
// A pipe that the process has been given has one, as bash's <(…).
func readable(path string, info os.FileInfo) error {
	given := path == "/dev/stdin" || strings.HasPrefix(path, "/dev/fd/") || strings.HasPrefix(path, "/proc/self/fd/")
	switch mode := info.Mode(); {
	case mode.IsRegular(), mode&os.ModeNamedPipe != 0 && given:
		return nil
	case mode.IsDir():
		return syscall.EISDIR
	case mode&os.ModeNamedPipe != 0:
		return irregular("a FIFO")
	case mode&os.ModeSocket != 0:
		return irregular("a socket")
	}
	return irregular("a device")
}

// irregular says what is in the place of a regular file.
type irregular string

func (i irregular) Error() string { return string(i) + ", and no regular file" }

// secretFromCommand runs a command of the inventory on this machine and returns
// what it prints.
func secretFromCommand(ctx context.Context, command string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, secretTimeout)
	defer cancel()
	out, _, err := printed.By(exec.CommandContext(ctx, "/bin/sh", "-c", command))
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return out, err
}

func unreadable(what, why, hint string) error {
	return &transport.Error{
		Code:    "secret.unreadable",
		Message: fmt.Sprintf("gateway: secret %s: %s", what, why),
		Hint:    hint,
	}
}

// cause returns the text of a system error without the path, which the message
// has already.
func cause(err error) string {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err.Error()
	}
	return err.Error()
}
