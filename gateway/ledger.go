package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/oklog/ulid/v2"

	"gateway/session"
)

const (
	// maxLedgerAge is how long a session is looked for. Servers and kernels give a
	// silent connection up within hours.
	maxLedgerAge = 7 * 24 * time.Hour
	// maxAbandoned is how many sessions one opening ends.
	maxAbandoned = 8
	// unnamed begins the names of entries that are being made.
	unnamed = "new-"
	// maxEntry is the size of a file that can be an entry.
	maxEntry = 4 << 10
	// manyHeld is how many open sessions of an account make the next look wait for
	// lookAgain: to try the locks of hundreds takes longer than to open one more,
	// and they are opened hundreds at a time.
	manyHeld  = 16
	lookAgain = time.Second
)

// ledger implements [session.Ledger] in a directory, with a file for each
// session. The process that has the session open holds a lock on its file: what
// the kernel has unlocked belongs to nobody any more, whichever way its process
// ended. The sessions of other processes are never touched.
type ledger struct {
	dir string

	mu   sync.Mutex           // guards what follows
	next map[string]time.Time // when to look again, by the prefix of an account
}

// NewLedger returns a ledger for sessions in a directory, which several processes
// may share, or nil where dir is empty.
func NewLedger(dir string) session.Ledger {
	if dir == "" {
		return nil
	}
	return &ledger{dir: dir}
}

// Enter implements [session.Ledger]. A session does without an entry where
// there is no room or no lock for one.
func (l *ledger) Enter(account string) session.Entry {
	e, err := l.create(account)
	if err != nil {
		return &entry{}
	}
	return e
}

// create makes an entry that is locked before it can be found.
func (l *ledger) create(account string) (*entry, error) {
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return nil, err
	}
	id := ulid.Make().String()
	file, err := os.OpenFile(filepath.Join(l.dir, unnamed+id), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err = lock(file); err == nil {
		_, err = fmt.Fprintln(file, machine())
	}
	path := filepath.Join(l.dir, prefix(account)+id)
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		os.Remove(file.Name())
		file.Close()
		return nil, err
	}
	return &entry{file: file, path: path}, nil
}

// Abandoned implements [session.Ledger].
func (l *ledger) Abandoned(account string) []session.Entry {
	wanted := prefix(account)
	if !l.due(wanted) {
		return nil
	}
	names, err := os.ReadDir(l.dir)
	if err != nil {
		return nil
	}
	var found []session.Entry
	held := 0
	for _, name := range names {
		if strings.HasPrefix(name.Name(), unnamed) {
			l.clear(name)
		}
		if !strings.HasPrefix(name.Name(), wanted) {
			continue
		}
		if e := claim(filepath.Join(l.dir, name.Name())); e != nil {
			found = append(found, e)
		} else if held++; held == manyHeld {
			l.later(wanted)
		}
		if len(found) == maxAbandoned {
			break
		}
	}
	return found
}

// clear removes what a process has left that was killed while it made an entry.
func (l *ledger) clear(left os.DirEntry) {
	if info, err := left.Info(); err == nil && time.Since(info.ModTime()) > maxLedgerAge {
		os.Remove(filepath.Join(l.dir, left.Name()))
	}
}

func (l *ledger) due(prefix string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !time.Now().Before(l.next[prefix])
}

func (l *ledger) later(prefix string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next == nil {
		l.next = map[string]time.Time{}
	}
	l.next[prefix] = time.Now().Add(lookAgain)
}

// claim returns the entry in a file, or nil if it is not to be had: a process
// lives that has it, or it was written elsewhere, where locks may not be seen.
func claim(path string) *entry {
	file, err := os.OpenFile(path, os.O_RDWR|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil
	}
	mine := false
	defer func() {
		if !mine {
			file.Close()
		}
	}()
	if lock(file) != nil {
		return nil
	}
	held, err := file.Stat()
	if err != nil || !held.Mode().IsRegular() {
		return nil
	}
	if there, err := os.Lstat(path); err != nil || !os.SameFile(there, held) {
		return nil // struck out meanwhile
	}
	text, err := io.ReadAll(io.LimitReader(file, maxEntry))
	if err != nil {
		return nil
	}
	lines := strings.Fields(string(text))
	switch {
	case time.Since(held.ModTime()) > maxLedgerAge:
		os.Remove(path)
		return nil
	case len(lines) == 0 || lines[0] != machine():
		return nil
	}
	mine = true
	return &entry{file: file, path: path, names: lines[1:]}
}

func lock(file *os.File) error { return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }

// prefix begins the names of an account's entries.
func prefix(account string) string {
	sum := sha256.Sum256([]byte(account))
	return hex.EncodeToString(sum[:8]) + "-"
}

// machine returns a word for this machine: a home may be shared with others.
var machine = sync.OnceValue(func() string {
	name, err := os.Hostname()
	if err != nil {
		name = "unknown"
	}
	id, _ := os.ReadFile("/etc/machine-id") // not everywhere
	sum := sha256.Sum256([]byte(name + "\x00" + string(id)))
	return hex.EncodeToString(sum[:8])
})

// entry implements [session.Entry]. Without a file it notes nothing.
type entry struct {
	path string

	mu    sync.Mutex // guards what follows
	file  *os.File   // nil once it is closed
	names []string
}

func (e *entry) Note(names []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.names = slices.Clone(names)
	if e.file != nil {
		// Names have one length: a shorter list never follows a longer one. What
		// can't be written is not known later.
		_, _ = e.file.WriteAt([]byte(machine()+"\n"+strings.Join(names, "\n")+"\n"), 0)
	}
}

func (e *entry) Names() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.names)
}

func (e *entry) Close(ended bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.file == nil {
		return
	}
	if ended {
		os.Remove(e.path) // before the lock is gone
	}
	e.file.Close()
	e.file = nil
}
