package runs

import (
	"os"
	"testing"
)

// Where not even that can be noted that a line is missing, the run has no progress.
// What stands there would say that its host was never tried.
func TestProgressCannotBeWritten(t *testing.T) {
	s := Store{Dir: t.TempDir()}
	const id = "01M7ZHS0014HYS8ZKKXEA1HYEM"
	s.track(id).leave()
	file, err := os.Open(s.progressPath(id)) // not for writing
	if err != nil {
		t.Fatal(err)
	}
	p := &progress{file: file}
	defer p.end()
	p.tell(step{Host: 0})
	r := &Record{ID: id, Hosts: []Host{{Host: "a", Outcome: outcomeUnknown}}}
	if err := s.follow(r); err != nil || r.Hosts[0].Outcome != outcomeUnknown {
		t.Errorf("a host that was begun is %s, %v", r.Hosts[0].Outcome, err)
	}
}
