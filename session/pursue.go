package session

import (
	"fmt"
	"slices"
	"time"
)

// A pursuit sees to it that an interrupt reaches its command. A ^C throws away
// what the shell has not read yet, and may meet it at its prompt; any signal may
// come before the command has started anything, or meet a process that is about
// to become a program and still has the shell's handlers.
type pursuit struct {
	session *Session
	run     *run
	level   Level // empty: none is on
	timer   *time.Timer
	pause   time.Duration
	sent    time.Time   // when it was sent last
	told    <-chan mark // nil: no look is on its way
	roused  bool
	left    int // how often it may yet be repeated
}

// typedLevel stands for a ^C that a person typed.
const typedLevel Level = "typed"

const (
	// arrival is how long an interrupt may take to end what it ends.
	arrival = 100 * time.Millisecond
	// beginning is how long a shell may take to begin a command. An interrupt
	// within it that has met nothing at all is repeated, with growing pauses.
	beginning = time.Second
	repeats   = 5
	gently    = 2 // one at a time: a program may be about to handle it
	// firmly is after what time level kill is taken to the shell, too.
	firmly = 250 * time.Millisecond
)

func newPursuit(s *Session, r *run) *pursuit {
	p := &pursuit{session: s, run: r, timer: time.NewTimer(arrival)}
	p.timer.Stop()
	return p
}

// pursue asks the goroutine of Run to look after an interrupt.
func (r *run) pursue(level Level) {
	for {
		select {
		case r.pursued <- level:
			return
		case <-r.pursued: // it has taken none yet, and this is the last word
		}
	}
}

func (p *pursuit) begin(level Level) {
	p.stop()
	p.level, p.pause, p.roused, p.left, p.sent = level, arrival, false, 0, time.Now()
	if p.run.isEarly(p.session) || p.insists() {
		p.left = repeats
	}
	p.timer.Reset(p.pause + p.session.trip)
}

// insists: one interrupt may not be enough, although there was something to meet. A
// shell goes on with a loop whose program has not died of it, and one that is only about
// to begin does not. bash must have had the same one as its program.
func (p *pursuit) insists() bool {
	return p.level == Int && !p.run.command.TTY
}

func (p *pursuit) stop() {
	p.timer.Stop()
	p.level, p.told = "", nil
}

// look signals what has missed the interrupt, and asks what is there.
func (p *pursuit) look() {
	s, r := p.session, p.run
	if r.keeper == nil {
		if !r.command.TTY && s.lacksPrompt(r) {
			p.rouse()
		}
		p.stop()
		return
	}
	nonce, told := s.expectLate(r.keeper, "I", 1)
	p.told = told
	r.looks = append(r.looks, told)
	r.keeper.tell(pursueLine(nonce, p.level, time.Since(p.sent), s.scope(r), s.tty, p.insists()))
}

// isEarly reports whether the shell may not have begun the command yet.
func (r *run) isEarly(s *Session) bool { return time.Since(r.started) < beginning+s.trip }

// judge repeats what has met nothing.
func (p *pursuit) judge(m mark) {
	defer p.run.notice() // what came while it insisted was heard there
	level := p.level
	p.run.looks = slices.DeleteFunc(p.run.looks, func(told <-chan mark) bool { return told == p.told })
	p.told = nil
	atPrompt := m.payload == metPrompt && !p.session.announces(p.run)
	switch {
	case atPrompt && !p.roused:
		p.rouse()
	case atPrompt: // an interrupt may leave zsh reading lines and running none
		p.roused = false
		p.session.press(p.run, "\x03", "INT")
		p.sent = time.Now()
	case level == Kill:
		if time.Since(p.sent) >= firmly { // what goes on is the shell's own
			p.session.insist(p.run)
			p.session.signalShell(p.run, "INT") // with job control, ^C does not meet it
			p.begin(Int)
			return
		}
	case m.payload == metSome, m.payload == metPrompt, p.left == 0, m.payload == metHidden && !p.run.isEarly(p.session):
		p.stop()
		return
	case level == Int:
		if p.left > repeats-gently {
			p.session.press(p.run, "\x03", "INT")
		} else { // a loop, whose programs have all missed it so far
			p.session.insist(p.run)
			if p.session.types(p.run, "INT") && !p.session.ends(p.run, 0) { // or ^C is no key any more
				_ = p.run.keeper.control(foregroundLine("INT", p.session.pid))
			}
		}
		p.sent = time.Now()
	}
	p.left = max(0, p.left-1)
	p.pause *= 2
	p.timer.Reset(p.pause + p.session.trip)
}

// rouse makes the shell say that it reads commands: what was thrown away would
// have set the prompt that says so. zsh may throw the next line away too.
func (p *pursuit) rouse() {
	p.roused = true
	p.session.recall(p.run, p.session.dialect.settles+"\n")
}

// What a look has met, beside nothing and what is to have the interrupt once more:
// processes of the command, or the shell at its prompt. Where the system shows nobody
// another user's processes (proc(5), hidepid), one that cleans up may be among those.
const (
	metSome   = "1"
	metPrompt = "2"
	metHidden = "3"
)

// nearly is how long before an interrupt a process may have started that was only
// about to become a program when it came.
const nearly = 50 * time.Millisecond

// missed are the processes that a signal has passed by, since so long: those that
// have no handler for it and do not ignore it, for it would have ended them; and
// those that were not there, or only just, whatever handlers they have by now. mask
// is [has]'s.
//
// What another process has started that was there, and handles the signal, is that
// one's: it may be cleaning up. A copy of the shell that still has its handlers is
// only about to become a program.
func missed(mask string) string {
	return has(mask) + `has "[BCI]" $i && cmp -s $p/cmdline /proc/$sh/cmdline && continue; ` + lives +
		`q=$i; while [ $q -gt 1 ] && ` + descends + ` && read -r m </proc/$q/stat; do set -- ${m##*\) }; n=$2; ` +
		fmt.Sprintf(`[ ${20} -lt $((m0 - %d)) ] && has "[BCI]" $q && { a=1; continue 2; }; q=$n; done; `, nearly.Milliseconds()/10)
}

// descends reports whether $q is below the shell, as far as those tell that are above
// it; see [above].
const descends = `[ $q != $sh ] && case $r in *" $q "*) false;; esac`

// ignoring passes over what a shell without job control has put into the background,
// which ignores an interrupt (POSIX XCU 2.11): it has not met it in the command's place.
const ignoring = `while read -r m v; do case $m$v in SigIgn:*[67ef]) continue 2;; esac; done <$p/status; `

// lives passes over what has ended, and of which somebody may not have taken notice
// yet. It is in no state to be asked for its handlers, and nothing has met the signal.
const lives = `read -r m <$p/stat && set -- ${m##*\) } && { [ $1 != Z ] || [ ${18} -gt 1 ]; } || continue; `

// still is for [signalWhere]: what has ended since it was looked at has not met the signal.
const still = `n=$k; k=; for i in $n; do p=/proc/$i; ` + lives + `a=1; k="$k $i"; done`

// passedBy returns a level's signal, and which processes it has passed by.
func passedBy(level Level) (sig, condition string) {
	switch level {
	case Term:
		return "TERM", missed("*[4567cdef]???")
	case Kill:
		return "KILL", ""
	case typedLevel:
		return "0", ""
	}
	return "INT", missed(interrupt)
}

// sweeps bounds how often is looked for what a signal has passed by.
const sweeps = 5

// sweep is for a command that is over and drained, and a signal that went to one
// process after the other. Each may have started another between the look for whom
// to signal and its own turn, and nobody waits for that one. So it is signaled, until
// a look finds nobody. Where the streams are held up, no answer would come.
//
// One look that finds nobody may have listed the processes before a fork, and have come
// to the parent after its end.
func (s *Session) sweep(r *run, level Level, since time.Time) {
	nobody := 0
	for range sweeps {
		if r.keeper == nil || r.keeper.isGone() || r.heldUp() {
			return
		}
		nonce, told := s.expectLate(r.keeper, "I", 1)
		if r.keeper.control(sweepLine(nonce, level, time.Since(since), s.scope(r), "")) != nil {
			return
		}
		m, came := s.awaitLook(r, told)
		if m.payload != metSome {
			nobody++
		}
		if !came || nobody == 2 {
			return
		}
		s.drain(r)
	}
}

// heldUp reports whether draining the streams has shown that nothing comes of them.
func (r *run) heldUp() bool { return r.deaf.Load() || r.cutShort.Load() }

// awaitLook waits for a look that is on its way: one that is late would signal what
// the next command has started. Of a keeper that was killed, only what it had begun is.
func (s *Session) awaitLook(r *run, told <-chan mark) (m mark, came bool) {
	timeout := time.NewTimer(drainGrace + s.patience(r))
	defer timeout.Stop()
	exited := r.keeper.exited
	for {
		select {
		case m = <-told:
			return m, true
		case <-exited:
			exited = nil
			timeout.Reset(keeperGrace + s.patience(r))
		case <-r.keeper.ended:
			return mark{}, false
		case <-timeout.C:
			return mark{}, false
		}
	}
}

// inFront passes over what is not in the terminal's foreground: a ^C is not for that.
const inFront = `[ "$f" ] || continue; `

// again returns what sends a level's signal to those that it has passed by. It was sent in
// the tick $m0, as [noted] has it, or so long before the line was written. What else is to
// be passed over comes first.
func again(level Level, since time.Duration, of scope, passOver, behind string) string {
	sig, condition := passedBy(level)
	return sinceLine(of) + fmt.Sprintf(`; [ "$r1" = %s%s ] || m0=$((u - %d)); `, of.run, sig, since.Milliseconds()/10) + signalWhere(passOver+condition, behind, sig, of)
}

// sweepLine returns the control line of one look, which answers mark I.
func sweepLine(nonce string, level Level, since time.Duration, of scope, passOver string) string {
	return answerLine('I', nonce, again(level, since, of, passOver, still))
}

// pursueLine returns the control line that sends a level's signal to what has
// missed it, since so long, and answers mark I. With spare, nothing is signaled if all has
// missed it, and there is nothing to tell of: the shell has to have the next one, too.
func pursueLine(nonce string, level Level, since time.Duration, of scope, tty string, spare bool) string {
	passOver, behind := "", still
	switch terminal := level == Int && tty != ""; {
	case terminal && spare:
		passOver = inFront
	case terminal:
		passOver = `[ "$f" ] || { ` + lives + `a=1; continue; }; `
	}
	if spare {
		passOver, behind = ignoring+passOver, ":"
	}
	look := again(level, since, of, passOver, behind) + `; ` +
		`[ "$a" ] || { ` + atPrompt(of.pid, tty) + ` && a=2; }; ` +
		`[ "$a" ] || read -r l </proc/1/stat || a=3`
	return answerLine('I', nonce, look)
}
