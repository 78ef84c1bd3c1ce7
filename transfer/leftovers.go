package transfer

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"sync"
)

// leftovers are the parts that earlier copies have left in directories, each of
// which is listed once.
type leftovers struct {
	mu   sync.Mutex
	dirs map[string]*leftover // guarded by mu
}

type leftover struct {
	once  sync.Once
	parts []Info
	err   error
}

// in returns those in a directory. In one that can't be listed, or is not there, there is
// nothing to go on with.
func (l *leftovers) in(ctx context.Context, m Tree, dir string) ([]Info, error) {
	l.mu.Lock()
	found := l.dirs[dir]
	if found == nil {
		if l.dirs == nil {
			l.dirs = make(map[string]*leftover)
		}
		found = new(leftover)
		l.dirs[dir] = found
	}
	l.mu.Unlock()
	found.once.Do(func() {
		found.err = m.List(ctx, dir, func(info Info) error {
			if info.Mode.IsRegular() && strings.HasSuffix(info.Name, partSuffix) {
				found.parts = append(found.parts, info)
			}
			return nil
		})
		if errors.Is(found.err, fs.ErrPermission) || errors.Is(found.err, fs.ErrNotExist) {
			found.parts, found.err = nil, nil
		}
	})
	return found.parts, found.err
}
