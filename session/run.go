package session

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"gateway/internal/ends"
)

// run is one command in progress.
type run struct {
	ctx     context.Context // the caller's
	command Command
	nonce   string
	rest    string // see frame.discard
	keeper  *keeper
	loud    bool // the prompt behind it says that its bytes on the terminal have come
	awaited bool // it is likely to have some
	silent  bool // its text starts no program
	outputs [3]*ends.Spooled

	// wake is sent to when progress says something that the goroutine of Run has
	// to act on: not for every mark, for each waking costs more than the mark.
	wake chan struct{}

	// Guarded by Session.mu.
	progress progress
	asking   bool // it waits for input
	mute     bool // what comes on the terminal is the echo of what is typed to bring the shell back

	started  time.Time
	handed   chan struct{}         // closed once Command.Started has been called
	display  *display              // nil but for a command with TTY
	activity atomic.Int64          // when the last byte came, in nanoseconds since started
	pressed  atomic.Bool           // ^C was typed: the shell starts a new line on the terminal
	stopped  atomic.Bool           // it is to end
	keyed    atomic.Bool           // Session.Write typed to it: it may have left some of that to the shell
	ordered  atomic.Pointer[order] // Session.Interrupt ended it
	deaf     atomic.Bool           // the far side did not answer in time
	cutShort atomic.Bool           // nobody took what was still to come
	trip     atomic.Int64          // how long the keeper took to answer when it was to end, in nanoseconds
	measured chan struct{}         // closed once that is known, or no answer will come; set when it is to end
	typed    chan [3]int64         // something was typed to it, when so many bytes had come
	typing   sync.Mutex            // held by who types to it: Session.Write, and what ends that
	veil     veil
	pursued  chan Level // see pursuit
	// told: there was a call of Interrupt. signaling are those that are at work: the next
	// command is not theirs.
	told      atomic.Bool
	signaling sync.WaitGroup

	delivering atomic.Int32  // how many of its streams wait for the caller, or for a disk
	outlets    [3]sync.Mutex // one call of Output at a time for a stream

	// Used by the goroutine of Run only.
	located  bool     // the shell has said where it is, behind the command
	unmarked bool     // it was asked, and has not: it may be that it can write no marks
	answered [3]int64 // bytes of each stream at the last answer
	prompt   Prompt
	before   string // the unfinished line of the command before, a part of the same script
	feeder   *feeder
	left     time.Time     // when the shell was seen to be gone
	looks    []<-chan mark // those of a pursuit that have not answered
}

// quiet returns for how long nothing has come.
func (r *run) quiet() time.Duration {
	return time.Since(r.started) - time.Duration(r.activity.Load())
}

// hurries reports whether the command is to end by now.
func (r *run) hurries() bool {
	return r.stopped.Load() || r.ctx.Err() != nil || r.command.Timeout > 0 && time.Since(r.started) > r.command.Timeout
}

// moves reports whether something has come since a count of reads was taken, or
// waits for the caller, and takes the count anew.
func (r *run) moves(heard *atomic.Int64, since *int64) bool {
	now := heard.Load()
	moved := now != *since || r.delivering.Load() > 0
	*since = now
	return moved
}

// takes reports whether bytes of a stream are the command's. On the terminal, what
// comes behind the prompt is what the shell says of its own, or a job that was left.
// The caller holds Session.mu.
func (r *run) takes(from Stream) bool {
	p := r.progress
	return !p.closed[from] && (from != Terminal || !r.command.TTY || p.begun && !p.prompted)
}

// cut reports whether bytes of a stream are a trace of the frame. The caller
// holds Session.mu.
func (r *run) cut(from Stream) bool { return r.progress.closed[from] && !r.progress.ended[from] }

// write takes bytes of the command.
func (r *run) write(from Stream, b []byte) {
	r.delivering.Add(1)
	defer r.delivering.Add(-1)
	<-r.handed
	r.activity.Store(int64(time.Since(r.started)))
	outlet := r.outlet(from)
	outlet.Lock()
	defer outlet.Unlock()
	if b = r.veil.over(from, b); len(b) > 0 {
		r.deliver(from, b)
	}
}

// counts returns how many bytes of each stream have come.
func (r *run) counts() (n [3]int64) {
	for i, o := range r.outputs {
		n[i] = o.Total()
	}
	return n
}

// unveil hands out what only looked like the beginning of a secret. A caller who has not
// taken what came before it does not get it: he may never do.
func (r *run) unveil() {
	for _, from := range []Stream{Stdout, Stderr, Terminal} {
		b := r.veil.rest(from)
		if len(b) == 0 {
			continue
		}
		outlet := r.outlet(from)
		if !outlet.TryLock() {
			r.cutShort.Store(true)
			continue
		}
		r.deliver(from, b)
		outlet.Unlock()
	}
}

// outlet is held by who hands out bytes of a stream.
func (r *run) outlet(from Stream) *sync.Mutex {
	if from == Terminal {
		from = r.shown()
	}
	return &r.outlets[from]
}

// shown is the stream that has what the terminal shows.
func (r *run) shown() Stream {
	if r.command.TTY || r.keeper == nil {
		return Stdout
	}
	return Terminal
}

// fullScreen reports whether the command draws on the alternate screen.
func (r *run) fullScreen() bool { return r.display != nil && r.display.alternate() }

// deliver hands out bytes of the command.
func (r *run) deliver(from Stream, b []byte) {
	if from == Terminal && r.pressed.Load() {
		b = withoutShards(b, r.nonce, r.shown() == Stdout)
		if r.shown() == Terminal && r.veil.echoed() {
			b = pressedKeys.ReplaceAll(b, nil)
		}
		if len(b) == 0 || (r.shown() == Terminal || r.stopped.Load()) && len(bytes.Trim(b, "\r\n")) == 0 {
			return
		}
	}
	if from == Terminal && r.display != nil {
		r.display.write(b)
	}
	if from == Terminal {
		from = r.shown()
	}
	if r.outputs[from].Add(b) && r.command.Output != nil {
		r.command.Output(from, b)
	}
}

// Run runs a command and returns what happened. One command runs at a time; a
// second one is refused with [ErrBusy].
//
// A command that ends by itself is no error, whatever its status, unless it did not
// get all of its stdin ([InputFailed]): its verdict then is exited or signaled all the
// same. With any other verdict the error wraps, along with the Result of what is known,
//
//   - context.DeadlineExceeded after Command.Timeout or Command.Idle, or the context's cause
//     after its end: the command was ended, the session lives unless
//     Result.Ended;
//   - [ErrNeedsInput] when a prompt went unanswered;
//   - [ErrLost] when the outcome is unknown. Nothing is sent a second time;
//   - [ErrClosed], [ErrBusy] or any other error with verdict not_started.
//
// After the deadline or the context's end Run takes up to two seconds more to end
// the command, and a little longer for a shell that can't be brought back, or over a
// link whose answers take long. Where nothing answers the outcome is unknown then, and
// the session has ended; a link that brings other things has fifteen seconds. A
// Command.Output that does not return is waited for, five seconds at the most
// once the command is to end: Result.Truncated then says that some is missing.
func (s *Session) Run(ctx context.Context, command Command) (Result, error) {
	if err := command.check(); err != nil {
		return notStarted, err
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	default:
		if s.closing.Load() || closed(s.ended) || closed(s.terminal.Done()) { // who looks after its end is no other command
			return notStarted, hasEnded()
		}
		return notStarted, failure(codeBusy, ErrBusy, "wait for it, interrupt it, or open another session", "another command is running")
	}
	return s.runNext(ctx, command)
}

// notStarted is the result of a command of which nothing has been sent.
var notStarted = Result{Verdict: NotStarted, ExitCode: -1, Streams: Split}

// runNext runs a command for the holder of the turn.
func (s *Session) runNext(ctx context.Context, command Command) (Result, error) {
	if err := s.usable(); err != nil {
		return notStarted, err
	}
	r, err := s.begin(ctx, command)
	if err != nil {
		result := notStarted
		result.Ended = s.lost
		return result, err
	}
	defer s.leave(r)
	result, err := s.await(ctx, r)
	if err == nil {
		err = r.feeder.failure(keeperGrace + s.trip)
	}
	return result, err
}
