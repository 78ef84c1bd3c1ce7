package script

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"gateway/gateway"
	"gateway/internal/redact"
	"gateway/transport"
)

// ReadSecrets resolves the script's secrets. One that is too short is refused: it
// could not be masked.
func (s *Script) ReadSecrets(ctx context.Context) (map[string]string, error) {
	values := make(map[string]string, len(s.Secrets))
	for _, secret := range s.Secrets {
		value, err := gateway.Secret(ctx, secret.Reference)
		fail := func(hint, format string, args ...any) (map[string]string, error) {
			return nil, &transport.Error{
				Code:    "secret.unreadable",
				Message: fmt.Sprintf("%s:%d:%d: secret %s: ", s.File, secret.Line, secret.Column, secret.Name) + fmt.Sprintf(format, args...),
				Hint:    hint, Err: err,
			}
		}
		switch {
		case errors.Is(err, context.Canceled):
			return nil, err
		case err != nil:
			return fail("see that the reference leads to it: env:NAME, file: and a regular file, or cmd:COMMAND", "%s", strings.TrimPrefix(err.Error(), "gateway: secret "))
		case !redact.Maskable(value):
			return fail("so short a text can't be masked: use a longer one, or a variable", "shorter than %d bytes", redact.Min)
		case strings.ContainsRune(value, 0):
			return fail("", "holds a NUL byte, which no shell can read")
		}
		values[secret.Name] = value
	}
	return values, nil
}
