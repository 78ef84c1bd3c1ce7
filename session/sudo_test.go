package session

import (
	"context"
	"errors"
	"testing"

	"gateway/transport"
)

// Whoever gives up while sudo's password is looked for is told that, and not that there is none.
func TestSudoPasswordGivenUp(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("a signal")
	s := &Session{config: Config{Sudo: &Sudo{Password: func(ctx context.Context, _ int) (string, error) {
		cancel(cause)
		return "", transport.Cause(ctx)
	}}}}
	err := s.answerSudo(ctx, mark{}, 1)
	if e, ok := errors.AsType[*transport.Error](err); ok || !errors.Is(err, context.Canceled) || !errors.Is(err, cause) {
		t.Errorf("%v (%+v), want %v", err, e, cause)
	}
}
