package gateway

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"gateway/session"
)

var names = []string{"0123456789abcdef", "fedcba9876543210"}

// found returns the names of the account's abandoned sessions, and gives them up
// again.
func found(l *ledger, account string) (found []string) {
	for _, e := range l.Abandoned(account) {
		found = append(found, e.Names()...)
		e.Close(false)
	}
	return found
}

func TestLedger(t *testing.T) {
	l := &ledger{dir: t.TempDir()}
	e := l.Enter("deploy@host")
	e.Note(names[:1])
	e.Note(names)
	if got := found(l, "deploy@host"); got != nil {
		t.Errorf("an open session is abandoned: %q", got)
	}
	e.Close(false)
	e.Close(true) // too late
	if got := found(l, "root@host"); got != nil {
		t.Errorf("another account has %q", got)
	}
	if got := found(l, "deploy@host"); !slices.Equal(got, names) {
		t.Errorf("got %q, want %q", got, names)
	}
	claimed := l.Abandoned("deploy@host")
	if got := found(l, "deploy@host"); len(claimed) != 1 || got != nil {
		t.Errorf("claimed %d times, and once more %q", len(claimed), got)
	}
	claimed[0].Close(true)
	if left, _ := os.ReadDir(l.dir); len(left) > 0 {
		t.Errorf("struck out, and %v is there", left)
	}
}

// TestLedgerOfOtherProcesses: what a process that lives has open is not
// abandoned, and what one has left that died is.
func TestLedgerOfOtherProcesses(t *testing.T) {
	const key = "GATEWAY_TEST_LEDGER"
	if dir := os.Getenv(key); dir != "" { // the other process
		(&ledger{dir: dir}).Enter("a").Note(names)
		fmt.Println("up")
		os.Stdin.Read(make([]byte, 1)) // until it is killed
		os.Exit(1)
	}
	l := &ledger{dir: t.TempDir()}
	cmd := exec.Command(os.Args[0], "-test.run", "^TestLedgerOfOtherProcesses$")
	cmd.Env = append(os.Environ(), key+"="+l.dir)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stdout.Read(make([]byte, 3))
	if got := found(l, "a"); got != nil {
		t.Errorf("of a process that lives: %q", got)
	}
	cmd.Process.Kill()
	cmd.Wait()
	if got := found(l, "a"); !slices.Equal(got, names) {
		t.Errorf("of a process that was killed: %q, want %q", got, names)
	}
}

// TestLedgerRefuses: what another machine wrote into a shared home, what is too
// old, and what is no entry.
func TestLedgerRefuses(t *testing.T) {
	good := machine() + "\n" + names[0] + "\n"
	for name, make := range map[string]func(path string) error{
		"another machine": func(path string) error { return os.WriteFile(path, []byte("x\n"+names[0]+"\n"), 0o600) },
		"empty":           func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"too old": func(path string) error {
			err := os.WriteFile(path, []byte(good), 0o600)
			past := time.Now().Add(-maxLedgerAge - time.Hour)
			return cmp.Or(err, os.Chtimes(path, past, past))
		},
		"a link": func(path string) error {
			target := filepath.Join(filepath.Dir(path), "target")
			return cmp.Or(os.WriteFile(target, []byte(good), 0o600), os.Symlink(target, path))
		},
		"a directory": func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		t.Run(name, func(t *testing.T) {
			l := &ledger{dir: t.TempDir()}
			if err := make(filepath.Join(l.dir, prefix("a")+"1")); err != nil {
				t.Fatal(err)
			}
			if got := found(l, "a"); got != nil {
				t.Errorf("got %q, want nothing", got)
			}
		})
	}
}

// TestLedgerLeftBehind: what a process has left that was killed before its entry had
// a name goes; one that is being made stays.
func TestLedgerLeftBehind(t *testing.T) {
	l := &ledger{dir: t.TempDir()}
	left, made := filepath.Join(l.dir, "new-1"), filepath.Join(l.dir, "new-2")
	for _, path := range []string{left, made} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	past := time.Now().Add(-maxLedgerAge - time.Hour)
	if err := os.Chtimes(left, past, past); err != nil {
		t.Fatal(err)
	}
	if got := found(l, "a"); got != nil {
		t.Errorf("got %q, want nothing", got)
	}
	if there, _ := filepath.Glob(filepath.Join(l.dir, "*")); !slices.Equal(there, []string{made}) {
		t.Errorf("%q are there, want %s", there, made)
	}
}

// TestLedgerIsBounded: one opening ends a few sessions, the next one more.
func TestLedgerIsBounded(t *testing.T) {
	l := &ledger{dir: t.TempDir()}
	for range maxAbandoned + 1 {
		e := l.Enter("a")
		e.Note(names[:1])
		e.Close(false)
	}
	first := l.Abandoned("a")
	if rest := l.Abandoned("a"); len(first) != maxAbandoned || len(rest) != 1 {
		t.Errorf("got %d and then %d, want %d and 1", len(first), len(rest), maxAbandoned)
	}
}

// TestLedgerOfMany: what many sessions hold is not tried for each of them, and
// what is given up among them is found a little later.
func TestLedgerOfMany(t *testing.T) {
	l := &ledger{dir: t.TempDir()}
	var last session.Entry
	for range manyHeld + 1 {
		last = l.Enter("a")
		last.Note(names[:1])
	}
	if got := found(l, "a"); got != nil {
		t.Errorf("open sessions are abandoned: %q", got)
	}
	last.Close(false)
	if got := found(l, "a"); got != nil {
		t.Errorf("looked through again at once: %q", got)
	}
	l.next = nil // lookAgain has passed
	if got := found(l, "a"); !slices.Equal(got, names[:1]) {
		t.Errorf("got %q, want %q", got, names[:1])
	}
}

// TestNoLedger: a session does without.
func TestNoLedger(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l := &ledger{dir: filepath.Join(file, "below")}
	e := l.Enter("a")
	e.Note(names)
	e.Close(false)
	if got := found(l, "a"); got != nil || NewLedger("") != nil {
		t.Errorf("got %q from nowhere", got)
	}
}
