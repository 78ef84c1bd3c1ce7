package transfer

import (
	"cmp"
	"context"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pkg/sftp"

	"gateway/gateway"
)

// A channel's window lets 2 MiB be under way, which is 20 MB/s at 100 ms. So a
// large file that goes far goes over two channels.
const (
	laneSize = 16 << 20
	laneFar  = 5 * time.Millisecond
)

// early is how much of a file is written before the disk is told of it: or all of
// it would have to wait for the disk at the end. A server that writes to the disk
// does nothing else meanwhile, so that is asked of a second channel, too.
const early = 32 << 20

// A secondLink is a second channel to the same server, for all files. It is opened once,
// and each of them waits for that as long as it likes.
type secondLink struct {
	mu      sync.Mutex
	opening *pending           // nil: nobody has asked for it; guarded by mu
	cancel  context.CancelFunc // ends opening; guarded by mu
	link    *link              // nil: there is none; read it when opening is done
}

func (s *secondLink) open(ctx context.Context, r *Remote) *link {
	s.mu.Lock()
	if s.opening == nil && r.connection != nil {
		var own context.Context
		own, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
		s.opening = r.link.begin(func() error {
			// The connection's own Subsystem may replace it, which others are using.
			pipe, err := gateway.Subsystem(own, r.connection.Transport, "sftp")
			if err != nil {
				return err
			}
			go drain(pipe.Stderr) // ends with the pipe
			s.link, err = newLink(own, pipe)
			return err
		})
	}
	opening := s.opening
	s.mu.Unlock()
	if opening == nil {
		return nil
	}
	if err := opening.wait(ctx); err != nil {
		return nil
	}
	return s.link
}

func (s *secondLink) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opening == nil {
		return
	}
	s.cancel()
	if <-s.opening.done; s.link != nil {
		s.link.close()
	}
}

// A lane is a file that is open on a channel.
type lane struct {
	link *link
	file *sftp.File
}

// open opens a file. One that comes when nobody waits for it any more, or that call
// refuses, is closed.
func (l *link) open(ctx context.Context, call func() (*sftp.File, error)) (*sftp.File, error) {
	var file *sftp.File
	opening := l.begin(func() (err error) {
		file, err = call()
		return cmp.Or(err, l.in.sound())
	})
	err := opening.wait(ctx)
	if err == nil {
		return file, nil
	}
	l.begin(func() error {
		if <-opening.done; file == nil {
			return opening.err
		}
		return file.Close()
	})
	return nil, err
}

// lanes are the one or two of a file. The second one comes when it is open, so
// that nobody waits for it.
type lanes struct {
	first   lane
	second  atomic.Pointer[lane]
	cancel  context.CancelFunc
	opening sync.WaitGroup
	turn    int
	far     bool // the second one carries every other block
}

// widen opens a second lane, if it is worth it. check, if not nil, refuses what
// was opened: another file may have the name since.
func (l *lanes) widen(ctx context.Context, r *Remote, path string, flags int, size int64, check func(context.Context, *sftp.File) error) {
	l.far = size >= laneSize && time.Duration(r.link.far.Load()) >= laneFar
	if !l.far && (flags != os.O_WRONLY || size < 2*early) {
		return
	}
	ctx, l.cancel = context.WithCancel(ctx)
	l.opening.Go(func() {
		link := r.second.open(ctx, r)
		if link == nil {
			return
		}
		file, err := link.open(ctx, func() (*sftp.File, error) {
			file, err := link.OpenFile(path, flags)
			if err == nil && check != nil {
				err = check(ctx, file)
			}
			return file, err
		})
		if err == nil { // else the first one does it all
			l.second.Store(&lane{link, file})
		}
	})
}

// next returns the lanes in turn.
func (l *lanes) next() lane {
	l.turn++
	if second := l.second.Load(); second != nil && l.far && l.turn%2 == 0 {
		return *second
	}
	return l.first
}

// leave closes the second lane's file, if there is one, behind a call to it that
// may be begun and not sent yet. Nobody waits for that.
func (l *lanes) leave(last *pending) {
	if l.cancel == nil {
		return
	}
	l.cancel()
	l.opening.Wait()
	second := l.second.Swap(nil)
	if second == nil {
		return
	}
	second.link.begin(func() error {
		if last != nil {
			<-last.done
		}
		return second.file.Close()
	})
}
