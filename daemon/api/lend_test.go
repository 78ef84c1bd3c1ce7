package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"testing"

	"gateway/daemon/api"
	"gateway/gateway"
	"gateway/transport"
)

// TestErrorsSurvive: whoever looks at an error that went on the way sees what
// its maker would see.
func TestErrorsSurvive(t *testing.T) {
	values := []error{
		transport.ErrUnreachable, transport.ErrAuth, transport.ErrHostKey, transport.ErrLost, transport.ErrClosed,
		context.Canceled, context.DeadlineExceeded, io.ErrClosedPipe, io.ErrUnexpectedEOF,
	}
	for _, err := range []error{
		nil,
		errors.New("plain"),
		fmt.Errorf("ssh: web1: %w", transport.ErrClosed),
		fmt.Errorf("ssh: web1: opening: %w", errors.Join(context.Canceled, errors.New("hung up"))),
		io.ErrClosedPipe,
		&transport.Error{Code: "link.lost", Message: "ssh: web1: link lost", Hint: "look", Err: io.ErrUnexpectedEOF},
		&transport.Error{Code: "tcp.timeout", Message: "ssh: web1: no TCP connection", Err: context.DeadlineExceeded},
		&transport.Error{Code: "auth.rejected", Message: "ssh: web1: refused"},
		&transport.Error{Code: "hostkey.changed", Message: "ssh: web1: changed"},
		&transport.Error{Code: "session.limit", Message: "ssh: web1: full"},
		fmt.Errorf("session: %w", &transport.Error{Code: "link.lost", Message: "ssh: web1: link lost", Hint: "look"}),
	} {
		line, failed := json.Marshal(api.NewLendError(err))
		if failed != nil {
			t.Fatal(failed)
		}
		var sent *api.LendError
		if err := json.Unmarshal(line, &sent); err != nil {
			t.Fatal(err)
		}
		got := sent.Err()
		if fmt.Sprint(got) != fmt.Sprint(err) || gateway.Code(got) != gateway.Code(err) || gateway.Hint(got) != gateway.Hint(err) {
			t.Errorf("got %v (%s, %s), want %v (%s, %s)", got, gateway.Code(got), gateway.Hint(got), err, gateway.Code(err), gateway.Hint(err))
		}
		for _, value := range values {
			if errors.Is(got, value) != errors.Is(err, value) {
				t.Errorf("errors.Is(%v, %v) = %v", got, value, errors.Is(got, value))
			}
		}
		var was, is *transport.Error
		if errors.As(err, &was) != errors.As(got, &is) {
			t.Errorf("%v: a *transport.Error: %v, want %v", err, is != nil, was != nil)
		}
	}
}
