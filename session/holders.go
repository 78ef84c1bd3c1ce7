package session

import (
	"sync/atomic"
	"time"
)

// holders notices that a command has left somebody behind who holds its streams, of whom
// the shell knows nothing: a server that a script has started, for one. What that writes
// later would be the next command's, so that gets streams of its own.
//
// To look takes some milliseconds of the machine's time, so it is done when the session has
// been idle for a while, and not between the commands of a script.
type holders struct {
	session *Session
	timer   *time.Timer
	isSet   atomic.Bool
	since   atomic.Int64 // when the command ended that may have left somebody; 0: none has
	found   atomic.Bool
}

// holdersGrace is how long a session is idle before it looks.
const holdersGrace = 200 * time.Millisecond

func newHolders(s *Session) *holders {
	h := &holders{session: s}
	h.timer = time.AfterFunc(holdersGrace, h.ring)
	h.isSet.Store(true)
	return h
}

// ended notes the end of a command that may have started a program. A timer that runs is
// left to: see alarm.
func (h *holders) ended() {
	h.since.Store(time.Now().UnixNano())
	if !h.isSet.Swap(true) {
		h.timer.Reset(holdersGrace)
	}
}

// begun notes the beginning of a command.
func (h *holders) begun() { h.since.Store(0) }

func (h *holders) stop() {
	h.begun()
	h.timer.Stop()
}

func (h *holders) ring() {
	h.isSet.Store(false)
	since := h.since.Load()
	if since == 0 {
		return
	}
	if left := holdersGrace - time.Since(time.Unix(0, since)); left > 0 {
		h.isSet.Store(true)
		h.timer.Reset(left)
		return
	}
	h.look(since)
}

// look asks who has the streams. What has begun meanwhile would be found itself.
func (h *holders) look(since int64) {
	s := h.session
	s.mu.Lock()
	k := s.keeper
	s.mu.Unlock()
	if k == nil {
		return
	}
	nonce, told := s.expectLate(k, "H", 1)
	k.tell(holdersLine(nonce, s.config.ID))
	select {
	case m := <-told:
		if h.since.CompareAndSwap(since, 0) {
			h.found.Store(m.payload == "1")
		}
	case <-k.ended:
	}
}

// holdersLine returns the control line that answers mark H: whether one of the session's
// processes but the shell, or one that has left it and has its name in the environment, has
// the keeper's streams open. It needs what arm has set. What is older than the shell is none
// of the session's: where a server gives a shell without a terminal no session of its own, it
// is the server.
func holdersLine(nonce, id string) string {
	look := `a=0; for i in ` + listed("[0-9]*/environ [0-9]*/stat", ofSession("$s", ".")+` -e GATEWAY_SESSION=`+id) + `; do f=${i#*/}; i=${i%/*}; ` +
		`read -r l </proc/$i/stat || continue; set -- ${l##*\) }; case $f$4 in stat$s) ;; stat*|environ$s) continue;; esac; ` +
		`[ $i != $h ] && [ $i != $$ ] && [ $2 != $$ ] && [ ${20} -ge $j ] || continue; ` +
		`for f in /proc/$i/fd/*; do if [ $f -ef /proc/$$/fd/3 ] || [ $f -ef /proc/$$/fd/4 ]; then a=1; break 2; fi; done; done`
	return answerLine('H', nonce, look)
}
