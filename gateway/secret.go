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
	"gateway/internal/printed"
	"gateway/transport"
)

// secretTimeout bounds a command that prints a secret. Password managers may
// ask a person first.
const secretTimeout = 2 * time.Minute

// maxSecret bounds a secret; keys are the longest.
const maxSecret = 64 << 10

// Secret resolves a reference: env:NAME, file:PATH or cmd:COMMAND. One newline
// at the end is taken off. No error ever holds the secret, nor what a command
// wrote beside it.
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
			return "", unreadable(reference, "the variable is not set")
		}
		value = []byte(text)
	case "file":
		if value, err = os.ReadFile(rest); err != nil {
			return "", unreadable(reference, cause(err))
		}
	case "cmd":
		if value, err = secretFromCommand(ctx, rest); err != nil {
			return "", unreadable("cmd:…", err.Error())
		}
	}
	if len(value) > maxSecret {
		return "", unreadable(kind+":…", "longer than 64 KiB")
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(value), "\n"), "\r"), nil
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

func unreadable(what, why string) error {
	return &transport.Error{
		Code:    "secret.unreadable",
		Message: fmt.Sprintf("gateway: secret %s: %s", what, why),
		Hint:    "the reference stands in the inventory: see gateway hosts show HOST --explain",
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
