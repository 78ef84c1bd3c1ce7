package transfer

import "sync"

// A perDir finds something out about directories, once about each.
type perDir[T any] struct {
	mu   sync.Mutex
	dirs map[string]func() (T, error) // guarded by mu
}

// of returns what look finds out about a directory. Who comes meanwhile gets the same answer;
// an error is not kept for others.
func (p *perDir[T]) of(dir string, look func() (T, error)) (T, error) {
	p.mu.Lock()
	once := p.dirs[dir]
	if once == nil {
		if p.dirs == nil {
			p.dirs = make(map[string]func() (T, error))
		}
		once = sync.OnceValues(look)
		p.dirs[dir] = once
	}
	p.mu.Unlock()
	found, err := once()
	if err != nil {
		p.mu.Lock()
		delete(p.dirs, dir)
		p.mu.Unlock()
	}
	return found, err
}
