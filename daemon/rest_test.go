package daemon

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"gateway/daemon/api"
	"gateway/internal/transcript"
)

// Thousands of sessions would have as many open files: one that is idle has none, long
// before its TTL.
func TestTranscriptIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "log")
		log, err := transcript.Create(dir, transcript.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer log.Close()
		s := &live{log: log, session: api.Session{TTL: api.Duration(time.Hour)}}
		s.timer = time.AfterFunc(time.Hour, s.expire)
		defer s.timer.Stop()
		write := func() error {
			_, err := log.Append(0, []byte("x"))
			return err
		}
		if err := write(); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		s.use()
		s.startTimer()
		time.Sleep(restTime / 2)
		synctest.Wait()
		if err := write(); err != nil {
			t.Errorf("soon behind a command it is not open: %v", err)
		}
		time.Sleep(restTime)
		synctest.Wait()
		if write() == nil {
			t.Error("it is open for as long as the session")
		}
	})
}
