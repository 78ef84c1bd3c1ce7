package daemon_test

import (
	"os"
	"syscall"
	"testing"

	"gateway/gateway"
)

// TestNoDescriptorsForALoan: a daemon that can take no more files lends nothing, which is
// no failure of the machine: with this error, a borrower dials itself.
func TestNoDescriptorsForALoan(t *testing.T) {
	var before syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before))
	path, _ := serveLoans(t, here(t))
	refused := 0
	for more := range uint64(12) {
		tr := borrow(t, path)
		probe, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		limit := before
		limit.Cur = uint64(probe.Fd()) + more // the pipes' ends are of this process, too
		probe.Close()
		must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
		pipe, err := tr.Pipe(t.Context(), "true")
		must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before))
		switch code := gateway.Code(err); {
		case err == nil:
			pipe.Close()
		case code == "daemon.unreachable" && gateway.Hint(err) != "":
			refused++
		case code != "session.limit":
			t.Errorf("with %d more: %v (%s)", more, err, code)
		}
		tr.Close()
	}
	if refused == 0 {
		t.Error("nothing was refused by the daemon")
	}
}
