package gateway

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"gateway/hosts"
	"gateway/internal/phrase"
	"gateway/internal/printed"
	"gateway/internal/regular"
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
// is taken off. An empty one is an error: as a password it would be refused, and
// counted. No error ever holds the secret, nor what a command wrote beside
// it.
func Secret(ctx context.Context, reference string) (string, error) {
	kind, rest, err := hosts.ParseReference(reference)
	if err != nil {
		return "", err
	}
	var value []byte
	shown, hint := hosts.ShowReference(reference), hintReference
	switch kind {
	case "env":
		text, ok := os.LookupEnv(rest)
		if !ok {
			return "", unreadable(shown, "the variable is not set", hintReference)
		}
		value = []byte(text)
	case "file":
		value, err = secretFromFile(ctx, rest)
		if errors.As(err, new(regular.Error)) {
			hint = "file: is for regular files; cmd:cat PATH reads others, for two minutes at most"
		}
		err = phrase.WithoutPath(err)
	case "cmd":
		value, err = secretFromCommand(ctx, rest)
	}
	switch {
	case err != nil && errors.Is(ctx.Err(), context.Canceled): // which says nothing about it
		return "", fmt.Errorf("gateway: secret %s: %w", shown, transport.Cause(ctx))
	case err != nil:
		return "", unreadable(shown, err.Error(), hint)
	}
	if len(value) > maxSecret {
		return "", unreadable(kind+":…", "longer than 64 KiB", hintReference)
	}
	secret := strings.TrimSuffix(strings.TrimSuffix(string(value), "\n"), "\r")
	if secret == "" { // a job that was not given it has an empty variable
		return "", unreadable(shown, "it is empty", hintReference)
	}
	return secret, nil
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
		value, err := regular.Read(ctx, path, maxSecret+1)
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
