package daemon

import (
	"path/filepath"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"gateway/internal/transcript"
)

// A transcript that is read page by page is opened once, and not kept for long;
// nor are many.
func TestPastLogs(t *testing.T) {
	root := t.TempDir()
	dir := func(i int) string { return filepath.Join(root, strconv.Itoa(i)) }
	for i := range maxPastLogs + 1 {
		log, err := transcript.Create(dir(i), transcript.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := log.Append(0, []byte("hi\n")); err != nil {
			t.Fatal(err)
		}
		log.Close()
	}
	synctest.Test(t, func(t *testing.T) {
		var logs pastLogs
		open := func(i int) *transcript.Log {
			log, err := logs.open(dir(i), 0)
			if err != nil || log.End() != 3 {
				t.Fatalf("open = %+v, %v", log, err)
			}
			return log
		}
		kept := func() int {
			logs.mu.Lock()
			defer logs.mu.Unlock()
			return len(logs.of)
		}
		first := open(0)
		for range 3 {
			time.Sleep(keepPastLog - time.Second)
			if open(0) != first {
				t.Fatal("opened again between two pages")
			}
		}
		time.Sleep(keepPastLog + time.Second)
		synctest.Wait()
		if open(0) == first || kept() != 1 {
			t.Errorf("it is kept for ever; there are %d", kept())
		}
		for i := range maxPastLogs + 1 {
			open(i)
		}
		if n := kept(); n != maxPastLogs {
			t.Errorf("%d are kept", n)
		}
		time.Sleep(keepPastLog + time.Second)
		synctest.Wait()
		if n := kept(); n != 0 {
			t.Errorf("%d are kept for ever", n)
		}
	})
}
