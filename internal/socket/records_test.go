package socket_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gateway/internal/socket"
	"gateway/transport"
)

// Where the records can't be locked, the place of the socket is not what has to change,
// and it is given back.
func TestRecordsThatCannotBeLocked(t *testing.T) {
	path, state := place(t), openDir(t)
	_, err := socket.Listen(t.Context(), path, state) // no file
	wantFailure(t, err, state)
	if e := new(transport.Error); !errors.As(err, &e) || !strings.Contains(e.Hint, "XDG_STATE_HOME") || strings.Contains(e.Hint, "socket") {
		t.Errorf("the hint is %q", e.Hint)
	}
	l, err := socket.Listen(t.Context(), path, filepath.Join(state, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	l.Release()
	if _, err := os.Stat(path); err == nil {
		t.Error("the socket is still there")
	}
}
