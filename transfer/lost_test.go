package transfer_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"

	"gateway/gateway"
	"gateway/transfer"
	"gateway/transport"
)

// cutOff is a machine whose link is lost while so many files get their names.
type cutOff struct {
	*transfer.Local
	underWay *sync.WaitGroup
}

func (m cutOff) Create(ctx context.Context, s transfer.Spec) (transfer.Part, error) {
	p, err := m.Local.Create(ctx, s)
	return cutOffPart{p, m.underWay}, err
}

type cutOffPart struct {
	transfer.Part
	underWay *sync.WaitGroup
}

func (p cutOffPart) Commit(ctx context.Context) error {
	p.underWay.Done()
	p.underWay.Wait()
	if err := p.Part.Commit(ctx); err != nil {
		return err
	}
	return &transport.Error{Code: "link.lost", Message: "link lost", Err: transport.ErrLost}
}

// ends are the events of what failed.
type ends struct {
	mu    sync.Mutex
	paths []string
}

func (*ends) Found(int64)                {}
func (*ends) Begin(string, int64, int64) {}
func (*ends) Moved(string, int)          {}

func (e *ends) End(end transfer.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if end.Done == transfer.Failed && transfer.MayBeDone(end.Err) {
		e.paths = append(e.paths, end.Path)
	}
}

// Every file that may have been written is named, not only the first one whose
// end ends the copy, and also where there were problems enough before.
func TestNamesWhatMayBeThere(t *testing.T) {
	const underWay, refused = 8, 120
	files, into := make(map[string]string), make(map[string]string)
	var names []string
	for i := range refused + underWay {
		name := fmt.Sprintf("%03d", i)
		files[name] = "new"
		names = append(names, name)
		if i < refused { // a directory has its name
			into[name+"/in"] = ""
		}
	}
	from, to := tree(t, files), tree(t, into)
	for i, name := range names {
		names[i] = filepath.Join(from, name)
	}
	want := names[refused:]
	var all sync.WaitGroup
	all.Add(underWay)
	var watch ends
	report := (&transfer.Copy{
		From: &transfer.Local{}, To: cutOff{&transfer.Local{}, &all}, Paths: names, Into: to, Watch: &watch,
	}).Run(t.Context())
	var named []string
	for _, p := range report.Problems {
		if transfer.MayBeDone(p.Err) {
			named = append(named, p.Path)
			if gateway.Code(p.Err) != "link.lost" {
				t.Errorf("%v is %s, want link.lost", p.Err, gateway.Code(p.Err))
			}
		}
	}
	for what, got := range map[string][]string{"problems": named, "events": watch.paths} {
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s name %q, want %q", what, got, want)
		}
	}
	if report.Unsure != underWay || report.Failed != underWay+refused {
		t.Errorf("%d unsure, %d failed", report.Unsure, report.Failed)
	}
}

// lostBehind is a machine whose link is lost when a file has got its name.
type lostBehind struct{ *transfer.Local }

func (lostBehind) Chattr(context.Context, string, transfer.Attr) error {
	return &transport.Error{Code: "link.lost", Message: "link lost", Err: transport.ErrLost}
}

// TestLostBehindTheName: a file that is to lose what its owner may read has its name by
// then, and nobody is told that what was there is untouched.
func TestLostBehindTheName(t *testing.T) {
	from, into := tree(t, map[string]string{"f": "new"}), tree(t, map[string]string{"f": "old"})
	to := lostBehind{&transfer.Local{}}
	mode := fs.FileMode(0o200)
	report := (&transfer.Copy{From: &transfer.Local{}, To: to, Paths: []string{from + "/f"}, Into: into, Mode: &mode}).Run(t.Context())
	if report.Unsure != 1 || len(report.Problems) != 1 || !transfer.MayBeDone(report.Problems[0].Err) {
		t.Errorf("%+v", report)
	}
	if err := transfer.Write(t.Context(), to, into+"/f", []byte("newer"), &mode); !transfer.MayBeDone(err) {
		t.Errorf("%v", err)
	}
}

// narrow is a disk that takes no file beyond a size, as FAT does from 4 GiB on.
type narrow struct {
	*transfer.Local
	most int
}

func (m narrow) Create(ctx context.Context, s transfer.Spec) (transfer.Part, error) {
	p, err := m.Local.Create(ctx, s)
	return &narrowPart{p, m.most}, err
}

type narrowPart struct {
	transfer.Part
	room int
}

func (p *narrowPart) Write(b []byte) (int, error) {
	if p.room -= len(b); p.room < 0 {
		return 0, &transport.Error{Code: "file.failed", Message: "file too large", Err: syscall.EFBIG}
	}
	return p.Part.Write(b)
}

// What a disk will never take whole is not kept to go on with.
func TestTooLargeIsNotKept(t *testing.T) {
	from, there := t.TempDir(), t.TempDir()
	must(t, os.WriteFile(from+"/f", make([]byte, 12<<20), 0o600))
	for _, resume := range []bool{false, true} {
		c := transfer.Copy{From: &transfer.Local{}, To: narrow{&transfer.Local{}, 10 << 20}, Paths: []string{from + "/f"}, Into: there, Resume: resume}
		if r := c.Run(t.Context()); r.Failed != 1 || r.Kept != 0 {
			t.Errorf("%+v", r)
		}
		if left, err := os.ReadDir(there); err != nil || len(left) > 0 {
			t.Errorf("left: %v, %v", left, err)
		}
	}
}
