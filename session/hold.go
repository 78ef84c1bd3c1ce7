package session

import (
	"context"
	"time"
)

// hold has a keeper hold the terminal open, with its stderr, where it says nothing, and for
// reading only. A program in place of the shell need not, and dropbear 2026.94 takes a terminal
// that nobody has open for ended, and hangs that program up. Elsewhere that would only hide
// when a terminal does end. Behind sudo there is a shell that holds it.
func (s *Session) hold(k *keeper) error {
	if !s.holds(k) {
		return nil
	}
	return k.control("command exec 2<" + Quote(s.tty))
}

func (s *Session) holds(k *keeper) bool {
	return k != nil && k.server != "" && s.tty != "" && s.config.Sudo == nil
}

// holdGrace bounds the wait for a keeper that has just come to hold the terminal, beside a
// round trip.
const holdGrace = 200 * time.Millisecond

// awaitHold waits until the keeper does so, where a text may replace the shell. It has stored
// its frames by then, behind that; where it can't store any, that takes all of the grace.
func (s *Session) awaitHold(ctx context.Context, text string) {
	k := s.keeper
	if !s.holds(k) || closed(k.stored) || !replacesShell(text) {
		return
	}
	select {
	case <-k.stored:
	case <-k.ended:
	case <-ctx.Done():
	case <-time.After(s.trip + holdGrace):
	}
}
