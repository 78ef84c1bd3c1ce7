package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gateway/transport"
)

// await waits for the command's end, and makes the result of it.
func (s *Session) await(ctx context.Context, r *run) (Result, error) {
	if s.soon(ctx, r) {
		return s.settle(r)
	}
	a := newAwaiting(ctx, s, r)
	defer a.stop()
	for {
		if end := a.next(); end != nil {
			return end()
		}
	}
}

// awaiting is the wait for the end of a command that is not over at once, and for
// everything that may have to be done before.
type awaiting struct {
	ctx     context.Context
	session *Session
	run     *run

	deadline chan struct{} // closed at Command.Timeout
	idle     *time.Timer   // for Command.Idle
	watch    *watch
	pursuit  *pursuit
	leaving  *leaving
	release  []func() bool

	stranded <-chan struct{}  // closed when nobody may read the FIFOs that the command writes to
	freed    bool             // somebody does again, so that its marks come
	late     <-chan time.Time // when marks that the prompt has overtaken are waited for no longer
	hidden   <-chan time.Time // when a prompt is not, that has fallen behind the marks
	shown    int64            // reads of the terminal when hidden was set
	fed      bool             // the feeder has begun
}

// An ending ends the wait with a result. nil goes on with it.
type ending func() (Result, error)

func newAwaiting(ctx context.Context, s *Session, r *run) *awaiting {
	a := &awaiting{
		ctx: ctx, session: s, run: r,
		deadline: make(chan struct{}), idle: time.NewTimer(r.command.Idle - time.Since(r.started)),
		watch: newWatch(s, ctx, r), pursuit: newPursuit(s, r), leaving: newLeaving(s, r),
		stranded: s.stranded(r.keeper),
	}
	// What waits for the caller of Output waits no longer then; see drain.
	a.release = append(a.release, context.AfterFunc(ctx, func() { r.stopped.Store(true) }), a.idle.Stop)
	if r.command.Idle <= 0 {
		a.idle.Stop()
	}
	if r.command.Timeout > 0 {
		timer := time.AfterFunc(r.command.Timeout-time.Since(r.started), func() {
			r.stopped.Store(true)
			close(a.deadline)
		})
		a.release = append(a.release, timer.Stop)
	}
	return a
}

func (a *awaiting) stop() {
	a.pursuit.stop()
	a.watch.stop()
	for _, release := range a.release {
		release()
	}
}

// next waits for one thing, and does what it asks for.
func (a *awaiting) next() ending {
	s, r := a.session, a.run
	select {
	case <-r.wake:
		return a.hear()
	case <-a.late:
		return a.ask
	case <-a.hidden:
		return a.uncover()
	case <-s.ended:
		return func() (Result, error) { return s.shellEnded(r) }
	case <-a.leaving.gone:
		a.leaving.begin()
	case <-a.leaving.quiet:
		a.leaving.look()
	case <-a.stranded:
		a.free()
	case <-a.deadline:
		s.catchUp(r, time.Since(r.started)-r.command.Timeout)
		return a.timeout(fmt.Sprintf("its timeout of %v", r.command.Timeout))
	case <-a.idle.C:
		return a.tire()
	case <-a.ctx.Done():
		return a.cancel
	case level := <-r.pursued:
		a.pursuit.begin(level)
		if level != typedLevel { // what lives through it asks the same
			a.watch.resume(r.answered)
		}
	case <-a.pursuit.timer.C:
		a.pursuit.look()
	case m := <-a.pursuit.told:
		a.pursuit.judge(m)
	case <-a.watch.timer.C:
		if a.pursuit.level != "" { // it may be the shell that reads
			a.watch.timer.Reset(silence)
			break
		}
		a.watch.look()
	case seen := <-r.typed:
		a.watch.resume(seen)
	case m := <-a.watch.probed:
		a.watch.judge(m)
	case answer := <-a.watch.answers:
		if err := a.watch.answer(answer); err != nil {
			return func() (Result, error) { return s.stop(r, Interrupted, err) }
		}
	}
	return nil
}

// hear acts on what the marks have told.
func (a *awaiting) hear() ending {
	s, r := a.session, a.run
	p := s.progress(r)
	switch {
	case r.complete(p) && a.freed: // what it wrote before is lost
		return func() (Result, error) { return s.finish(r, Unknown, nil) }
	case r.complete(p):
		return func() (Result, error) { return s.settle(r) }
	case p.prompted && a.late == nil:
		a.late = time.After(promptGrace)
	case p.stdout && p.stderr && a.hidden == nil:
		a.hide()
	case p.begun && !a.fed && r.feeder != nil:
		a.fed = true
		go r.feeder.feed(r.command.Stdin) // ends with the stdin, or with the feeder
	}
	return nil
}

// promptGrace is how long marks may come behind a prompt that overtook them
// before they are asked for.
const promptGrace = 20 * time.Millisecond

// ask asks for marks that have not come. The shell reads commands again: the text made it
// leave the line. Or nothing could be written to the streams, and the prompt's status is
// not the command's.
func (a *awaiting) ask() (Result, error) {
	s, r := a.session, a.run
	s.drain(r)
	if !r.complete(s.progress(r)) {
		if r.keeper.isGone() || r.deaf.Load() {
			if r.pressed.Load() && !r.deaf.Load() && !s.resume(r) {
				return s.giveUp(r, Unknown, nil)
			}
			return s.finish(r, Unknown, nil)
		}
		if !s.locate(r) && !closed(s.ended) {
			s.locate(r) // the machine may be busy
		}
		if closed(s.ended) {
			return s.giveUp(r, Unknown, nil)
		}
	}
	return s.over(r)
}

// hide waits for a prompt that has fallen behind.
func (a *awaiting) hide() {
	a.shown, a.hidden = a.session.heard.Load(), time.After(owedGrace+a.session.trip)
}

// uncover brings back a prompt that has not come. The command is over: either its output is
// still on its way, in front of the prompt, or the text has taken the prompt away.
func (a *awaiting) uncover() ending {
	s, r := a.session, a.run
	if r.moves(&s.heard, &a.shown) {
		a.hide()
		return nil
	}
	s.recall(r, "")
	for !s.ends(r, owedGrace+s.trip) && r.moves(&s.heard, &a.shown) {
	}
	if closed(s.ended) {
		return func() (Result, error) { return s.shellEnded(r) }
	}
	return func() (Result, error) { return s.settle(r) }
}

// tire ends a command from which nothing has come for Command.Idle.
func (a *awaiting) tire() ending {
	r := a.run
	a.session.catchUp(r, r.quiet()-r.command.Idle)
	left := r.command.Idle - r.quiet()
	if r.delivering.Load() > 0 { // it is the caller who takes his time
		left = max(left, silence)
	}
	if left > 0 {
		a.idle.Reset(left)
		return nil
	}
	return a.timeout(fmt.Sprintf("%v without output", r.command.Idle))
}

// timeout ends the command after one of its limits.
func (a *awaiting) timeout(limit string) ending {
	return func() (Result, error) {
		return a.session.stop(a.run, TimedOut, failure(codeTimeout, context.DeadlineExceeded, "", "command ended after %s", limit))
	}
}

// cancel ends the command because its context has ended.
func (a *awaiting) cancel() (Result, error) {
	verdict, code, what := Interrupted, codeInterrupted, "interrupted"
	if errors.Is(a.ctx.Err(), context.DeadlineExceeded) {
		verdict, code, what = TimedOut, codeTimeout, "ended after its deadline"
		if at, ok := a.ctx.Deadline(); ok {
			a.session.catchUp(a.run, time.Since(at))
		}
	}
	cause := transport.Cause(a.ctx)
	return a.session.stop(a.run, verdict, failure(code, cause, "", "command %s: %v", what, cause))
}
