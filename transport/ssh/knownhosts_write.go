package ssh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	gossh "golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
	"golang.org/x/sys/unix"
)

// lockWait bounds the wait for the lock on known_hosts. It is held for one
// read and one write; whoever holds it longer is stuck.
const lockWait = 10 * time.Second

// Trust records a host key: of a certificate, the key in it. A key that is
// recorded already is not written again. Keys recorded before stay trusted. The
// error may be that of Refused, and else has the code hostkey.unknown.
func (h *HostKeys) Trust(key gossh.PublicKey) error {
	if err := h.Refused(key); err != nil {
		return err
	}
	return h.accept(context.Background(), plainKey(key), false)
}

// writeFile is the file for new keys, or "".
func (h *HostKeys) writeFile() string {
	switch {
	case h.Write == "none":
		return ""
	case h.Write == "" && len(h.Files) > 0:
		return h.Files[0]
	}
	return h.Write
}

// record appends the key to the file under a lock. With onlyNew the key is
// judged again under the lock: another process may have recorded one for the
// host since, and a different one refuses this one.
func (h *HostKeys) record(ctx context.Context, key gossh.PublicKey, onlyNew bool) error {
	path := h.writeFile()
	if path == "" {
		return errors.New("no known_hosts file")
	}
	name := h.lookups()[0].name
	// Such a name would be a pattern, another line, or several names.
	if name == "" || strings.ContainsAny(name, " \t\r\n,*?!#@|") {
		return fmt.Errorf("%q cannot stand in known_hosts", name)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	// A FIFO would take the key and keep nothing.
	if there, err := openKeys(path); err == nil {
		there.Close()
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := openLocked(ctx, path)
	if err != nil {
		return err
	}
	defer f.Close() // and the lock with it
	if onlyNew {
		switch v := h.known().judge(key); v.kind {
		case keyUnknown:
		case keyKnown:
			return nil
		default:
			return h.refused(v)
		}
	}
	return appendKnownHost(f, name, key, h.HashNew)
}

// appendKnownHost appends the line to the locked file, unless it is there.
func appendKnownHost(f *os.File, name string, key gossh.PublicKey, hash bool) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	entries, err := parseKnownHosts(io.NewSectionReader(f, 0, info.Size()), []string{name}, func(int, string) {})
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.marker == markNone && sameKey(e.key, key) {
			return nil
		}
	}
	if hash {
		name = knownhosts.HashHostname(name)
	}
	line := name + " " + string(gossh.MarshalAuthorizedKey(key))
	if size := info.Size(); size > 0 {
		last := make([]byte, 1)
		if _, err := f.ReadAt(last, size-1); err != nil {
			return err
		}
		if last[0] != '\n' {
			line = "\n" + line
		}
	}
	// One write with O_APPEND: ssh appends without a lock.
	if _, err := f.WriteString(line); err != nil {
		return err
	}
	// Neither a device such as /dev/null nor every file system has fsync(2): the
	// line is written all the same.
	if err := f.Sync(); !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOTSUP) {
		return err
	}
	return nil
}

// openLocked opens the file for reading and appending and locks it, creating it
// if it is missing. Close gives the lock back.
func openLocked(ctx context.Context, path string) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		if err := lock(ctx, f); err != nil {
			f.Close()
			return nil, err
		}
		// ssh-keygen -R renames a new file into place: the lock must be on the one that is there.
		held, err1 := f.Stat()
		there, err2 := os.Stat(path)
		if err1 == nil && err2 == nil && os.SameFile(held, there) {
			return f, nil
		}
		f.Close()
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
}

// lock takes the advisory lock of flock(2). It polls, as a blocked flock
// cannot be called off.
func lock(ctx context.Context, f *os.File) error {
	ctx, cancel := context.WithTimeoutCause(ctx, lockWait, fmt.Errorf("%s stays locked by another process", f.Name()))
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, unix.ENOLCK), errors.Is(err, unix.ENOTSUP):
			// A file system without locks. The one write is what matters; at
			// worst a line stands there twice.
			return nil
		case !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR):
			return &os.PathError{Op: "lock", Path: f.Name(), Err: err}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
