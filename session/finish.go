package session

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"time"

	"gateway/internal/ends"
)

// finish makes the result, with the verdict that the marks tell if there is no
// other, and notes what the session has learnt.
func (s *Session) finish(r *run, verdict Verdict, err error) (Result, error) {
	s.awaitLooks(r)
	p := s.detach(r)
	s.release(r)
	if verdict == "" {
		verdict, err = r.verdict(p)
	}
	if s.asked = ""; r.command.Script != nil {
		s.asked, _ = r.lastSaid()
	}
	result := r.result(p, verdict)
	s.learn(r, p, result)
	if result.Cwd == "" && !p.stdout { // else it has moved, nobody knows where to
		result.Cwd = s.cwd
	}
	result.Background = s.takeLate(r)
	s.judgeStreams(r, p, result)
	if verdict == Unknown && r.keeper.isGone() && !s.lost {
		result.Streams = Lost
	}
	if verdict == Unknown && s.config.Sudo != nil && !s.lost {
		s.end() // its keeper is gone, and there is no other
		result.Ended = true
	}
	switch {
	case err != nil:
	case notRun[p.status]:
		err = s.refused(r, p.status)
	case verdict == Unknown:
		err = failure(codeLost, ErrLost, "it may have run: look before running it again", "the command left no status behind")
	}
	return result, err
}

// verdict returns what the marks tell, and why the command was not started if they tell
// that of its stdin.
func (r *run) verdict(p progress) (Verdict, error) {
	switch verdict := p.verdict(); {
	case r.unmarked && !p.stdout: // what the prompt tells is the status of the marks
		return Unknown, nil
	case r.feeder != nil && verdict == Exited && p.stdout && !p.begun:
		return NotStarted, r.feeder.unopened()
	default:
		return verdict, nil
	}
}

// takeLate reports whether bytes have come between this command and the one before, or
// may be among its own. It notes a shell that has spoken during the command.
func (s *Session) takeLate(r *run) (late bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noisy = s.noisy || r.outputs[Terminal].Total() > 0 && !r.command.TTY
	late, s.late = s.late, false
	return late
}

// awaitLooks waits for those of a pursuit that may still answer.
func (s *Session) awaitLooks(r *run) {
	for _, told := range r.looks {
		if r.heldUp() {
			return
		}
		if _, came := s.awaitLook(r, told); !came && r.keeper.isGone() {
			return // nor will those behind it
		}
	}
}

// learn notes where the shell is behind a command, and what the next frame has to mend.
func (s *Session) learn(r *run, p progress, result Result) {
	// A frame that is echoed: a program has left its own modes behind.
	s.modes = !s.traced && r.veil.echoed()
	s.traced = s.traced || r.veil.traces() // a file or a function has set it
	if p.cwd != "" && r.command.Cwd == "" {
		s.cwd = p.cwd
	}
	if result.Verdict != NotStarted {
		s.status = max(result.ExitCode, 0)
	}
	s.left = result.Verdict != Exited || !p.stdout || r.pressed.Load() || r.keyed.Load()
	if p.stdout { // else an interrupt may have met the frame before its beginning
		s.once = ""
	}
	if p.isInterrupted() {
		s.once = s.dialect.mend
	}
	if r.command.Cwd != "" && !r.located && (!p.stdout || r.pressed.Load()) { // the line was left there, or may have been
		s.once += s.wayBack()
	}
	if retrap := s.dialect.retrap; strings.Contains(r.command.Text, "trap") && !strings.Contains(s.once, retrap) {
		s.once += retrap
	}
}

// judgeStreams notes whether somebody may hold the streams for longer than the command
// lived, and which job was the last.
func (s *Session) judgeStreams(r *run, p progress, result Result) {
	shows := !s.traced && r.showsFrame(result)
	s.traced = s.traced || shows
	if s.keeper != nil {
		s.rotate = s.config.Sudo == nil && (result.Cut || result.Verdict != Exited || !p.stdout) // else there is no other
		s.shared = s.shared || result.Background || p.job != s.job || shows                      // mksh goes on tracing to there
	}
	if p.stdout {
		s.job = p.job
	}
	if s.job != "" || !p.stdout {
		s.jobs.Store(true)
	}
	if !s.rotate && !s.shared && s.config.Sudo == nil && !r.silent {
		s.holders.ended()
	}
}

// wayBack is a piece of a frame that goes back to where the session is.
func (s *Session) wayBack() string { return "\n" + s.dialect.back(s.cwd) + "\n" }

// refused is the error of a command that the shell could not run as it was asked to.
func (s *Session) refused(r *run, why string) error {
	switch why {
	case noWayBack:
		return failure(codeCwd, nil, "change to another one first",
			"its own directory %q can't be entered again: there would be no way back from %q", s.cwd, r.command.Cwd)
	case noEnv:
		return failure(codeUsage, nil, "one that is readonly there can't be set for a command either",
			"the shell does not take a variable of %q", slices.Sorted(maps.Keys(r.command.Env)))
	}
	return noDirectory(r.command.Cwd)
}

func (r *run) result(p progress, verdict Verdict) Result {
	r.unveil()
	out, errs, terminal := r.outputs[Stdout].Finish(), r.outputs[Stderr].Finish(), r.outputs[Terminal].Finish()
	cut := r.cutShort.Load()
	result := Result{
		Verdict: verdict, ExitCode: p.exitCode(),
		Stdout: out.Data, StdoutBytes: out.Total,
		Stderr: errs.Data, StderrBytes: errs.Total,
		Truncated: out.Truncated || errs.Truncated || cut,
		Cut:       cut,
		Spool:     out.Spool,
		Terminal:  said(terminal, p.job),
		Streams:   Split,
		Cwd:       p.cwd,
		Started:   r.started,
		Duration:  time.Since(r.started),
		Prompt:    r.prompt.Text,
	}
	if result.SpoolStderr = errs.Spool; !out.Truncated {
		result.Spool = errs.Spool
	}
	switch {
	case r.command.TTY || r.keeper == nil:
		result.Streams = OnTerminal
	case r.command.Merge, p.joined:
		result.Streams = Merged
	}
	switch verdict {
	case NotStarted:
		result.Started, result.Duration, result.ExitCode = time.Time{}, 0, -1
	case Unknown:
		result.ExitCode = -1
	}
	return result
}

// said returns what the terminal said without a shell's notice of the job that
// the mark names.
func said(terminal ends.Stream, job string) []byte {
	said := terminal.Data
	if line, ok := bytes.CutSuffix(said, []byte("] "+job+"\n")); ok && job != "" {
		if start := bytes.LastIndexByte(line, '\n') + 1; start < len(line) && line[start] == '[' {
			said = said[:start]
		}
	}
	return said
}

// drainGrace bounds the wait for what is still in the FIFOs of a command that
// is over, where that is to be soon. A link that carries nothing for so long is lost.
const drainGrace = 5 * time.Second

// maxSilence is how long a link that carries nothing is waited for where nobody hurries. By
// default the keepalive ends one that is dead a little later.
const maxSilence = 3 * maxLag

// drain waits until everything that has been written to the streams is here. Who closes
// the session meanwhile has nobody take what is left.
func (s *Session) drain(r *run) {
	if r.keeper == nil || s.drained(r) || !s.closing.Load() {
		return
	}
	if p := s.progress(r); !p.stdout || !p.stderr {
		r.cutShort.Store(true)
	}
}

// drained waits, and reports whether it knows that everything is here. Where the machine has
// joined the streams, both marks come on one.
func (s *Session) drained(r *run) bool {
	flushed, err := s.flush(r.keeper)
	if err != nil {
		within(keeperGrace+s.patience(r), r.keeper.ended) // what it had sent may still come
		return false
	}
	heard, since := r.keeper.heard.Load(), time.Now()
	timeout := time.NewTimer(drainGrace + s.patience(r))
	defer timeout.Stop()
	here, marks := [3]bool{}, 0
	for marks < 2 && (!here[Stdout] || !here[Stderr]) {
		select {
		case m := <-flushed:
			here[m.from] = true
			marks++
			heard = r.keeper.heard.Load() // the mark itself is no sign that the other stream moves
		case m := <-s.behindSudo:
			here[m.from] = true
		case <-r.keeper.ended:
			return false
		case <-r.keeper.exited:
			within(keeperGrace+s.patience(r), r.keeper.ended)
			return false
		case <-timeout.C:
			now, delivering := r.keeper.heard.Load(), r.delivering.Load() > 0
			switch {
			case now != heard || delivering && !r.stopped.Load(): // it is the link that is slow, or the caller
				heard, since = now, time.Now()
				timeout.Reset(drainGrace + s.patience(r))
			case delivering && s.config.Sudo == nil: // the next command has another keeper
				r.cutShort.Store(true)
				return false
			case !r.hurries() && time.Since(since) < maxSilence:
				timeout.Reset(lifeGrace)
			default:
				r.deaf.Store(true)
				return false
			}
		}
	}
	if !here[Stderr] {
		s.mu.Lock()
		r.progress.joined = true
		s.mu.Unlock()
	}
	return true
}
