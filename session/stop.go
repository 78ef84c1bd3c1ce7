package session

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"time"

	"gateway/transport"
)

// stop ends the command that runs, as gently as it lets itself be ended, and
// keeps the session. Each rung waits for the shell to read commands again.
func (s *Session) stop(r *run, verdict Verdict, cause error) (Result, error) {
	defer s.vigil(r)()
	r.stopped.Store(true)
	if s.progress(r).stdout { // it ended by itself, and what it wrote last is on its way
		if s.drain(r); r.complete(s.progress(r)) {
			return s.over(r)
		}
		verdict, cause = "", nil
	} else if closed(s.ended) {
		return s.shellEnded(r)
	}
	ended := s.climb(r)
	select {
	case <-s.ended:
		result, err := s.shellEnded(r)
		if r.deaf.Load() && result.Verdict == Unknown {
			err = errNothingAnswers
		}
		if result.Verdict != Unknown && verdict != "" {
			result.Verdict, err = verdict, cause
		}
		return result, err
	default:
	}
	if !ended {
		return s.giveUp(r, verdict, cause)
	}
	// What it had started must not outlive it, and what that had written is the
	// command's.
	if r.keeper != nil && !r.keeper.isGone() {
		_ = r.keeper.control(killLine(s.scope(r)))
		s.drain(r)
		s.sweep(r, Kill, r.started)
	}
	if !s.resume(r) {
		return s.giveUp(r, verdict, cause)
	}
	return s.finish(r, verdict, cause)
}

// catchUp takes in what has come by the time that a limit is noticed to be over, if that
// is late: this process was stopped (^Z, SIGSTOP), and has not read how the command ended, or
// what it wrote.
func (s *Session) catchUp(r *run, late time.Duration) {
	if late < stopped || r.keeper == nil || r.delivering.Load() > 0 {
		return
	}
	s.awaitAnswer(r.keeper, 2, s.trip)
	if closed(s.terminal.Done()) {
		within(leavingGrace+s.trip, s.ended)
	}
}

// stopped is how late a process that is only slow does not look at its clock.
const stopped = 500 * time.Millisecond

// lifeGrace is how long the far side may say nothing at all, not even that it
// is there, when a command is to end: the link is dead then, or as good as dead.
// A deadline is answered within two seconds.
const lifeGrace = 1500 * time.Millisecond

// vigil asks the far side for a sign of life, and hangs up if there is none:
// what waits for it, or is stuck in writing to it, then goes on. The returned
// function ends the vigil.
func (s *Session) vigil(r *run) (end func()) {
	if r.keeper == nil {
		return func() {}
	}
	heard := s.heard.Load() + r.keeper.heard.Load()
	over, begun := make(chan struct{}), time.Now()
	go func() { // ends with the vigil
		for within(lifeGrace+s.trip, over); !closed(over); within(lifeGrace, over) {
			// A caller that does not take the output keeps the answer from being read.
			if s.heard.Load()+r.keeper.heard.Load() != heard || r.delivering.Load() > 0 {
				return
			}
			// What others on the link are sent may be in front of the answer.
			if time.Since(begun) > maxLag || s.silentFor() > lifeGrace {
				r.deaf.Store(true)
				r.keeper.pipe.Close()
				s.terminal.Close()
				return
			}
		}
	}()
	r.measured = make(chan struct{})
	go func() { // ends with the pipe
		defer close(r.measured)
		if asked := time.Now(); s.answers(r.keeper, 1) {
			r.trip.Store(int64(time.Since(asked)))
		}
	}()
	return func() { close(over) }
}

// maxLag is how long an answer may take on a link that is alive.
const maxLag = 15 * time.Second

// silentFor is how long nothing has come over the link, for whomever that is; where that is
// not known, for ever.
func (s *Session) silentFor() time.Duration {
	if link, ok := s.terminal.(transport.Listener); ok {
		return time.Since(link.Heard())
	}
	return math.MaxInt64
}

// lag is by how much an answer takes longer than here. The start of the shell is the
// first measure, and a bad one where that takes its time, or the link has more to carry by
// now; the vigil has a better one.
func (s *Session) lag(r *run) time.Duration {
	return cmp.Or(min(maxLag, time.Duration(r.trip.Load())), s.trip)
}

// patience is lag where more than the link may take its time.
func (s *Session) patience(r *run) time.Duration { return max(s.trip, s.lag(r)) }

// measure waits until the lag is known, and reports whether the command has ended meanwhile.
// A ladder that is climbed faster would have what is above it done before what is below is seen.
func (s *Session) measure(r *run) bool {
	if r.keeper == nil || r.delivering.Load() > 0 {
		return false
	}
	timeout := time.After(maxLag)
	for {
		select {
		case <-r.wake:
			if s.ends(r, 0) {
				return true
			}
		case <-s.ended:
			return true
		case <-r.measured:
			return s.ends(r, 0)
		case <-timeout:
			return false
		}
	}
}

// errNothingAnswers is why an outcome is unknown where the link looks alive.
var errNothingAnswers = failure(codeLost, ErrLost, "it may still run: look before running it again", "the command was to end, and nothing answers")

// climb is the ladder. It reports whether the command has ended.
//
// The interrupt comes first because it lets programs end in their own way and
// makes the shell leave a loop; of what ignores it, most do not ignore quit.
// Signals to the foreground group instead would meet the shell itself in a
// shell without job control. The last signals may take their time, for the
// keeper looks at every process of a machine that may be busy: it answers when
// they are sent.
func (s *Session) climb(r *run) bool {
	type rung struct {
		do    func()
		grace time.Duration
	}
	ladder := []rung{
		{func() { s.press(r, "\x03", "INT") }, 200 * time.Millisecond},
		{func() { s.quit(r); s.signalShell(r, "CONT") }, 200 * time.Millisecond},
		{func() { s.insist(r) }, 50 * time.Millisecond},
		{func() { s.signal(r, "TERM") }, 500 * time.Millisecond},
		{func() { s.signal(r, "KILL"); s.signalShell(r, "CONT"); s.drain(r) }, time.Second + s.trip},
		// An earlier one may have taken the end of the line that is typed below, within
		// its quotes: the shell then reads on.
		{func() { s.insist(r) }, 200 * time.Millisecond},
		// With job control, ^C meets a loop's programs and not the shell: those that
		// ignore it keep the loop going.
		{func() { s.signalShell(r, "INT") }, 200 * time.Millisecond},
	}
	if r.keeper == nil {
		ladder = ladder[:3] // nobody sends signals
	} else if rouse := s.dialect.rouse; rouse != "" {
		ladder = append(ladder, rung{func() { s.signalShell(r, rouse) }, 500 * time.Millisecond})
	}
	for i, rung := range ladder {
		rung.do()
		if s.ends(r, rung.grace) || i == 0 && s.measure(r) || s.ends(r, s.lag(r)) {
			return true
		}
		if s.listens(r) { // typed any earlier, it would race the interrupt
			s.recall(r, "")
			if s.ends(r, promptGrace+s.lag(r)) {
				return true
			}
		}
	}
	return false
}

// insist interrupts until that meets a loop of short programs: bash goes on with it
// where the program has not died of the interrupt, and one that is only about to begin
// does not. One in ten is lost on that. Where the keeper has to look for what there is to
// signal, a busy machine gets fewer of them: what follows would have to wait for each.
func (s *Session) insist(r *run) {
	const times, pause = 12, 20 * time.Millisecond
	begun := time.Now()
	for range times {
		typed := s.types(r, "INT")
		if typed || s.dialect.leads || r.keeper == nil {
			s.press(r, "\x03", "INT")
		} else {
			_ = r.keeper.control(strikeLine(s.scope(r)))
		}
		if s.ends(r, pause) {
			return
		}
		if typed {
			continue
		}
		if s.heed(r); time.Since(begun) > times*pause {
			return
		}
	}
}

// heed waits until the keeper has done what it was told.
func (s *Session) heed(r *run) {
	if r.keeper != nil && !r.deaf.Load() {
		s.awaitAnswer(r.keeper, 1, s.patience(r))
	}
}

// awaitAnswer waits for a keeper to have come to what it is asked now, but not for long.
func (s *Session) awaitAnswer(k *keeper, streams int, trip time.Duration) {
	done := make(chan struct{})
	go func() { // ends with the pipe, which a dead link may keep from being written to
		defer close(done)
		s.answers(k, streams)
	}()
	within(heedGrace+trip, done)
}

// answers waits until a keeper has come to what it is asked now, and says so in one of its
// streams or in both, behind what was written there before. It reports whether it has. It may
// have to wait for the pipe's end.
func (s *Session) answers(k *keeper, streams int) bool {
	answered, err := s.flush(k)
	if err != nil {
		return false
	}
	for range streams {
		select {
		case <-answered:
		case <-k.ended:
			return false
		}
	}
	return true
}

// heedGrace is enough for a look at the processes of a machine that is busy.
const heedGrace = 500 * time.Millisecond

// recall types the line that brings the prompt back, which the text may have
// changed, to a shell that reads lines, and another one in front of it.
func (s *Session) recall(r *run, before string) {
	gives := s.dialect.gives
	if s.tty == "" {
		gives = "" // it would be a character as any other
	}
	s.typeKeys(gives + before + " PS2=;" + prompt(r.nonce) + "\n")
}

// press types control characters, or sends the signal where there is no
// terminal to do it, or where the terminal's would meet the shell together with
// its programs and must not; see [dialect.leads].
func (s *Session) press(r *run, keys, signal string) {
	r.pressed.Store(true)
	switch {
	case s.types(r, signal):
		s.typeKeys(keys)
	case signal != "INT":
		s.signal(r, signal)
	case s.dialect.leads:
		s.signalShell(r, signal)
		s.signal(r, signal)
	case r.keeper != nil:
		_ = r.keeper.control(interruptLine(s.scope(r)))
	}
}

// quit presses the key for it behind one more interrupt: the first may have met what was
// only about to begin, and what dies of one at once dies of that.
func (s *Session) quit(r *run) {
	if s.types(r, "QUIT") {
		s.press(r, "\x03\x1c", "QUIT")
		return
	}
	s.press(r, "\x03", "INT")
	s.press(r, "\x1c", "QUIT")
}

// types reports whether press types: the terminal then sends the signal to all of
// the foreground at once.
func (s *Session) types(r *run, signal string) bool {
	leads := signal == "INT" && s.dialect.leads
	return s.tty != "" && !(leads && r.keeper != nil && !r.keeper.isGone() && !r.command.TTY)
}

// typeKeys types, if the terminal is there; if not, its end is noticed. Nobody may
// take it, nor what is typed before it: then it is left behind, for whoever does.
func (s *Session) typeKeys(keys string) {
	typed := make(chan struct{})
	go func() { // ends with the terminal
		defer close(typed)
		_, _ = io.WriteString(s.terminal, keys)
	}()
	within(typeGrace, typed)
}

// typeGrace is longer than a terminal takes for a line that somebody reads.
const typeGrace = 100 * time.Millisecond

// unevenness is by how much a link may become slower while a command runs. Jobs
// that were started no longer before it, and of which the shell knows nothing,
// can't be told from the command's own.
const unevenness = time.Second

// signal sends a signal, if the keeper is there to do it, to what the command
// has started, but for the shell.
func (s *Session) signal(r *run, name string) {
	if r.keeper != nil {
		_ = r.keeper.control(signalLine(name, s.scope(r)))
	}
}

func (s *Session) scope(r *run) scope {
	return scope{run: r.nonce, pid: s.pid, id: s.config.ID, age: s.age(r)}
}

// age is how old what the command has started may be.
// A machine that was asleep meanwhile counts that time for its processes, and the clock that
// only ever goes on does not.
func (s *Session) age(r *run) time.Duration {
	asleep := time.Now().Round(0).Sub(r.started.Round(0))
	return max(time.Since(r.started), asleep) + unevenness + 2*s.patience(r)
}

func (s *Session) signalShell(r *run, name string) {
	if r.keeper != nil {
		_ = r.keeper.control(fmt.Sprintf(`if [ "$j" ]; then shell %[1]s; else kill -%[1]s %[2]d; fi`, name, s.pid))
	}
}

// ends waits until the shell reads commands again, or is gone.
func (s *Session) ends(r *run, grace time.Duration) bool {
	timeout := time.After(grace)
	for {
		if p := s.progress(r); p.prompted || r.complete(p) {
			return true
		}
		select {
		case <-r.wake:
		case <-s.ended:
			return true
		case <-timeout:
			return false
		}
	}
}
