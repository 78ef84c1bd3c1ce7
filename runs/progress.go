package runs

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Beside the record of a run that is under way stands its progress: a line for
// each host that is begun, and one for how it went there. The run holds a lock on
// the file: what the kernel has unlocked belongs to a run that is gone, whichever
// way its process ended. The end of a run takes the file away.
const progressSuffix = ".progress"

// A progress is where a run tells how far it is. A nil one tells nobody.
type progress struct {
	file *os.File
	torn bool // the last line may not be whole
}

// A beginning is the first line.
type beginning struct {
	// Boot names the boot of the machine. After another one lines may be missing
	// that had been written: nothing waits for the disk.
	Boot string `json:"boot"`
}

// A step is every further line.
type step struct {
	Host int   `json:"n"`              // its place in the record
	Went *Host `json:"went,omitempty"` // nil: it is being tried
}

// track begins the progress of a run, which is locked before the record can be
// found. Where there is no room or no lock for it, the record does without: it
// says nothing of any host until the run has ended.
func (s Store) track(id string) *progress {
	if s.Dir == "" || os.MkdirAll(s.Dir, 0o700) != nil {
		return nil
	}
	file, err := os.OpenFile(s.progressPath(id), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil
	}
	p := &progress{file: file}
	if syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil || p.write(beginning{boot()}) != nil {
		p.end()
		return nil
	}
	return p
}

func (s Store) progressPath(id string) string { return filepath.Join(s.Dir, id+progressSuffix) }

// tell appends a line.
func (p *progress) tell(what step) {
	if p != nil && p.write(what) != nil {
		p.torn = true
		// Of a host whose line is missing nobody may say that it was never tried.
		if _, err := p.file.WriteAt([]byte("-"), 0); err != nil {
			os.Remove(p.file.Name())
		}
	}
}

func (p *progress) write(line any) error {
	data, err := json.Marshal(line)
	if err != nil {
		return err
	}
	if p.torn {
		data = append([]byte{'\n'}, data...)
	}
	if _, err = p.file.Write(append(data, '\n')); err == nil {
		p.torn = false
	}
	return err
}

// end takes the file away.
func (p *progress) end() {
	if p != nil {
		os.Remove(p.file.Name()) // before the lock is gone
		p.leave()
	}
}

// leave leaves the file as what is known of the run.
func (p *progress) leave() {
	if p != nil {
		p.file.Close()
	}
}

// follow puts what a run has told into its record, which has no end. Where a run
// had no progress there is nothing to put in.
func (s Store) follow(r *Record) error {
	file, err := os.Open(s.progressPath(r.ID))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	r.Running = errors.Is(err, syscall.EWOULDBLOCK)
	text, err := io.ReadAll(file)
	if err != nil {
		return err
	}
	first, lines, _ := bytes.Cut(text, []byte("\n"))
	begun, told := r.replay(lines)
	var from beginning
	whole := json.Unmarshal(first, &from) == nil && from.Boot != "" && from.Boot == boot()
	for i := range r.Hosts {
		h := &r.Hosts[i]
		switch {
		case told[i]:
		case begun[i] && r.Running:
			h.Outcome, h.Verdict = outcomeRunning, outcomeRunning
		case begun[i] || !whole:
		case r.Running:
			h.Outcome, h.Verdict = outcomePending, verdictNotStarted
		default:
			h.Outcome, h.Verdict = outcomeSkipped, verdictNotStarted
		}
	}
	return nil
}

// replay puts lines into the record. It returns which hosts were begun, and of
// which it is told how it went. A line that is not whole, as the last one of a
// process that was killed, says nothing.
func (r *Record) replay(lines []byte) (begun, told []bool) {
	begun, told = make([]bool, len(r.Hosts)), make([]bool, len(r.Hosts))
	for text := range bytes.SplitSeq(lines, []byte("\n")) {
		var s step
		if json.Unmarshal(text, &s) != nil || s.Host < 0 || s.Host >= len(r.Hosts) {
			continue
		}
		begun[s.Host] = true
		if s.Went != nil {
			r.Hosts[s.Host], told[s.Host] = *s.Went, true
		}
	}
	return begun, told
}
