package session

import (
	"context"
	"fmt"

	"gateway/transport"
)

// between is what the jobs of a script write while none of its commands runs. It is the
// next one's.
type between struct {
	streams [2][]byte
	cut     bool // there was more
}

// betweenLimit bounds it: whoever writes that much between two commands floods.
const betweenLimit = 1 << 20

func (b *between) add(from Stream, data []byte) {
	room := betweenLimit - len(b.streams[Stdout]) - len(b.streams[Stderr])
	b.cut = b.cut || len(data) > room
	b.streams[from] = append(b.streams[from], data[:min(len(data), room)]...)
}

func (b *between) any() bool { return len(b.streams[Stdout])+len(b.streams[Stderr]) > 0 }

// joins reports whether a command is a part of the last one's script.
func (s *Session) joins(c Command) bool { return c.Script != nil && c.Script == s.script }

// inherit hands out what has come since the command before, which is a part of the same
// script. A caller who does not take it is not waited for any longer than the command
// may take.
func (r *run) inherit(ctx context.Context, b between) error {
	if b.cut {
		r.cutShort.Store(true)
	}
	if !b.any() {
		return nil
	}
	if r.command.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, r.command.Timeout, &transport.Error{
			Code: codeTimeout, Message: fmt.Sprintf("its timeout of %v is over", r.command.Timeout), Err: context.DeadlineExceeded,
		})
		defer cancel()
	}
	taken := make(chan struct{})
	go func() { // ends with the caller's Output
		defer close(taken)
		for i, data := range b.streams {
			if len(data) > 0 {
				r.deliver(Stream(i), data)
			}
		}
	}()
	select {
	case <-taken:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("session: nobody takes the output: %w", transport.Cause(ctx))
	}
}
