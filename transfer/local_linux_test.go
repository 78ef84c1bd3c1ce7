package transfer

import (
	"errors"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gateway/gateway"
)

// What was copied into a directory that its user may not list is on the disk.
func TestSettleUnreadable(t *testing.T) {
	t.Chdir(t.TempDir()) // whose parents another user may not enter
	must(t, os.Mkdir("drop", 0o300))
	must(t, os.Chmod("drop", 0o333)) // the umask has spoken
	done := make(chan struct{})
	go func() {
		defer close(done)
		if os.Getuid() == 0 {
			runtime.LockOSThread() // it ends with the goroutine
			if err := unix.Setfsuid(65534); err != nil {
				t.Error(err)
				return
			}
		}
		if _, err := os.ReadDir("drop"); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%v, want %v", err, fs.ErrPermission)
		}
		if err := (&Local{}).Settle(t.Context(), "drop"); err != nil {
			t.Error(err)
		}
	}()
	<-done
	err := (&Local{}).Settle(t.Context(), "nothing")
	if gateway.Code(err) != codeNotFound || !strings.Contains(err.Error(), "nothing") {
		t.Errorf("%v, want %s", err, codeNotFound)
	}
}
