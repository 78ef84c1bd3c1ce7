package transfer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
)

// umasks are what a server leaves of permissions. That is the directory's, too: one
// with a default ACL has its own (acl(5)).
type umasks struct {
	mu    sync.Mutex
	last  map[fs.FileMode]umask // guarded by mu; by the permissions that were asked for
	exact string                // where permissions were last seen to become what they should; guarded by mu
}

type umask struct {
	dir  string
	made fs.FileMode
}

// of returns the permissions of a file that was just made, and asks for them if it
// is the first of its directory.
func (u *umasks) of(path string, perm fs.FileMode, stat func() (fs.FileInfo, error)) (fs.FileMode, error) {
	dir, _ := split(path)
	u.mu.Lock()
	known := u.last[perm]
	u.mu.Unlock()
	if known.made != 0 && known.dir == dir {
		return known.made, nil
	}
	info, err := stat()
	if err != nil {
		return 0, err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.last == nil {
		u.last = make(map[fs.FileMode]umask)
	}
	u.last[perm] = umask{dir, info.Mode().Perm()}
	return info.Mode().Perm(), nil
}

func (u *umasks) obeyed(dir string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.exact == dir
}

func (u *umasks) obeys(dir string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.exact = dir
}

// begin returns what makes a file in the place of its first redirection, which would let
// others read it; nothing where the umask is enough.
func (s *Shell) begin(ctx context.Context, path string) (script string, err error) {
	dir, _ := split(path)
	look := func() (bool, error) { return s.isUmasked(ctx, path) }
	ok, err := s.umasked.of(dir, look)
	for errors.Is(err, context.Canceled) && ctx.Err() == nil { // another one's
		ok, err = s.umasked.of(dir, look)
	}
	if ok || err != nil {
		return "", err
	}
	return fmt.Sprintf("printf '' >%s && %s && ", word(path), private(word(path))), nil
}

// isUmasked makes a file to see whether the umask does what it should, and removes it.
func (s *Shell) isUmasked(ctx context.Context, path string) (bool, error) {
	probe := word(partPath(path))
	out, err := s.run(ctx, fmt.Sprintf("{ umask 177; set -C; printf '' >%s && %s %[1]s && rm -f %[1]s; } 2>&1", probe, s.stat))
	if err != nil {
		return false, err
	}
	info, err := parseStat(strings.TrimSuffix(string(out), "\n"))
	return info.Mode.Perm() == onlyOwner, err
}
