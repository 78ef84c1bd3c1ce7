package session

import (
	"context"
	"fmt"
	"io"
	"time"

	"gateway/transport"
)

// A text that can't be typed is stored on the machine.

// slowestUpload is how many bytes of a text a second are waited for, beside the time that
// a keeper may take to answer: a modem takes 5 KiB.
const slowestUpload = 4 << 10

// upload stores a text that can't be typed in the keeper's directory. Where that fails in
// its midst the session ends: the keeper would take the rest of it for control lines. Who
// gives up while the keeper takes it waits for that, for a moment.
func (s *Session) upload(ctx context.Context, k *keeper, text string) error {
	limit := s.config.OpenTimeout + time.Duration(len(text))*time.Second/slowestUpload
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	nonce, stored := s.expectLate(k, "A", 1)
	written := make(chan struct{})
	stop := context.AfterFunc(bounded, func() {
		if within(keeperGrace, written); !closed(written) {
			k.pipe.Close() // frees a write that is stuck
		}
	})
	err := k.upload(nonce, text)
	close(written)
	stop()
	if err == nil {
		select {
		case m := <-stored:
			switch {
			case ctx.Err() != nil: // it is there for nobody
				return fmt.Errorf("session: %w", transport.Cause(ctx))
			case m.payload == "1":
				return nil
			}
			return failure(codeInternal, nil, "try again: another place is taken then, if there is one; or free some space there",
				"no room for a command of %d bytes in %s on the machine", len(text), k.dir)
		case <-k.ended:
			err = io.ErrUnexpectedEOF
		case <-bounded.Done():
			select {
			case <-stored:
				return fmt.Errorf("session: %w", transport.Cause(bounded))
			case <-k.ended:
			case <-time.After(keeperGrace + s.trip):
			}
		}
	}
	switch {
	case ctx.Err() != nil:
		s.end()
		return fmt.Errorf("session: %w", transport.Cause(ctx))
	case bounded.Err() != nil:
		s.end()
		return failure(codeClosed, ErrClosed, hintClosed, "a command of %d bytes has not come through in %v", len(text), limit)
	}
	return s.terminalGone(err)
}

// upload stores text in the keeper's directory; mark A tells whether it is
// there, whole. Where there is no room, the rest of it is read all the same: it
// would be taken for control lines. It is one write, so that nobody else's line
// falls between.
func (k *keeper) upload(nonce, text string) error {
	line := fmt.Sprintf(`head -c %d | { cat >%s || cat; }; [ $(wc -c <%s) -eq %d ] && x=1 || x=0; printf %s "$x" >&3`,
		len(text), k.text(), k.text(), len(text), controlMark('A', nonce, "%s"))
	return k.control(line + "\n" + text)
}
