package session

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"gateway/transport"
)

// watch notices that a command waits for input. It takes two signs: silence,
// and a look at the machine that finds a process reading the terminal. Neither
// alone is enough: programs fall silent in the middle of a line, and a shell
// reads the terminal between two commands.
type watch struct {
	session *Session
	ctx     context.Context
	run     *run
	timer   *time.Timer
	quiet   time.Duration      // how long it is to be silent before the next look
	last    int64              // when the last byte before it came, in run.activity's clock
	asked   int64              // when it was sent, in run.activity's clock
	probed  <-chan mark        // nil: no probe is on its way
	cancel  context.CancelFunc // ends the question that is open
	answers chan answer
	found   string   // what the probe has, while its other sign is awaited: that nothing comes
	seen    [3]int64 // bytes of each stream at the question
	left    bool     // the question is left to who types: see Command.Waiting
}

type answer struct {
	text string
	err  error
	late bool // nobody reads any more
}

const (
	// silence after something that looks like a prompt, before a look.
	silence = 150 * time.Millisecond
	// firstLook is the same after anything else. Further looks at a command that
	// stays silent come after twice the time, up to lastLook.
	firstLook = 250 * time.Millisecond
	lastLook  = 30 * time.Second
	// longSilence is how long a process may be silent that can't be told from one
	// that waits, and has not asked anything.
	longSilence = 5 * time.Second
)

func newWatch(s *Session, ctx context.Context, r *run) *watch {
	w := &watch{session: s, ctx: ctx, run: r, last: -1, answers: make(chan answer, 1)}
	w.timer = time.NewTimer(silence - time.Since(r.started))
	if r.command.TTY && r.command.Answer == nil && r.command.Waiting == nil || r.keeper == nil || s.tty == "" {
		w.timer.Stop()
	}
	return w
}

func (w *watch) stop() {
	w.timer.Stop()
	if w.cancel != nil {
		w.cancel()
	}
}

// look asks the machine once the command has been silent for long enough.
func (w *watch) look() {
	if w.cancel != nil || w.probed != nil {
		return // a question or a probe is open; both start the timer again
	}
	if w.left {
		if w.run.activity.Load() != w.asked {
			w.resume(w.seen) // it did not wait for long
			return
		}
		w.timer.Reset(silence)
		return
	}
	if found := w.found; found != "" {
		if w.found = ""; w.stillWaits() {
			w.ask(found[1:])
			return
		}
	}
	if last := w.run.activity.Load(); last != w.last {
		if w.last, w.quiet = last, firstLook; w.suspicious() {
			w.quiet = silence
		}
	}
	if idle := w.run.quiet(); idle < w.quiet {
		w.timer.Reset(min(w.quiet-idle, silence))
		return
	}
	// It is the caller who takes his time, or the shell.
	if w.run.delivering.Load() > 0 || w.run.command.TTY && !w.session.progress(w.run).begun {
		w.timer.Reset(silence)
		return
	}
	w.quiet = min(2*w.quiet, lastLook)
	nonce, probed := w.session.expectLate(w.run.keeper, "R", 1)
	w.probed = probed
	w.asked = w.run.activity.Load()
	w.run.keeper.tell(probeLine(nonce, w.session.pid, w.session.tty, w.run.command.TTY))
}

// suspicious reports whether the last thing that came may be a prompt.
func (w *watch) suspicious() bool {
	outputs := &w.run.outputs
	terminal := outputs[Terminal].Total()
	return terminal > w.run.answered[Terminal] ||
		outputs[Stdout].Unfinished() && outputs[Stdout].Total() > w.run.answered[Stdout] ||
		outputs[Stderr].Unfinished() && outputs[Stderr].Total() > w.run.answered[Stderr]
}

// stillWaits reports whether nothing has come since the probe was sent: no
// output, which the caller may not have taken yet, and no mark of an end.
func (w *watch) stillWaits() bool {
	p := w.session.progress(w.run)
	return w.run.activity.Load() == w.asked && w.run.delivering.Load() == 0 && !p.prompted && p.closed == [3]bool{}
}

// judge weighs the probe's answer. A shell at its prompt reads the terminal too,
// and what it said on the terminal may still be on its way.
func (w *watch) judge(m mark) {
	w.probed = nil
	code := m.payload[:1]
	waiting := code == probeReads
	switch code {
	case probePolls: // it may wait for something else; what edits a line or draws has keys for itself
		keys := strings.Contains(m.payload, "r")
		waiting = w.suspicious() && (keys || question.MatchString(w.promptText())) || w.run.quiet() > longSilence
	case probeSleeps:
		waiting = w.suspicious() && !w.asksStdin(m.payload) && (question.MatchString(w.promptText()) || w.run.quiet() > longSilence)
	case probeShell:
		waiting = w.suspicious() && question.MatchString(w.promptText()) || w.run.quiet() > longSilence && w.session.reached(w.run)
	}
	if !waiting || !w.stillWaits() {
		w.timer.Reset(silence)
		return
	}
	w.found = m.payload
	w.timer.Reset(promptGrace)
}

// reached reports whether something has come over the shell's link since it should have begun
// the command; before, that may be the last one's prompt. A keeper may have another link, and
// see the shell read because the command is still on its way.
func (s *Session) reached(r *run) bool {
	link, ok := s.terminal.(transport.Listener)
	return !ok || link.Heard().Sub(r.started) > beginning+s.trip
}

// asksStdin reports whether a secret was asked for, but not on the terminal: it is read from
// standard input then, as by sudo -S and su, and that question stays the last line while what
// they start works in silence. What runs on the terminal asks there anyway; of sudo it is
// known that it would have switched the echo off to read there.
func (w *watch) asksStdin(modes string) bool {
	text := w.promptText()
	if w.run.command.TTY {
		return w.run.command.Echo && strings.Contains(modes, "e") && sudoWords.MatchString(text)
	}
	return asksSecret(text) && lastLine(w.run.fresh(Terminal)) != text
}

// question matches the ends of most of them.
var question = regexp.MustCompile(`([:：?>\]#$]|\([yY](es)?/[nN]o?\))\s*$`)

// ask puts the question to whoever can answer it.
func (w *watch) ask(modes string) {
	w.run.prompt = w.describe(modes)
	w.asking(true)
	if w.run.command.Answer == nil && w.run.command.Waiting != nil {
		w.left, w.seen = true, w.run.counts()
		w.run.command.Waiting(&w.run.prompt)
		w.timer.Reset(silence)
		return
	}
	if w.run.command.Answer == nil {
		w.answers <- answer{err: fmt.Errorf("nobody to ask")}
		return
	}
	ctx, cancel := context.WithCancel(w.ctx)
	w.cancel = cancel
	prompt := w.run.prompt
	go func() { // ends with Answer, whose context stop cancels
		text, err := w.run.command.Answer(ctx, prompt)
		w.answers <- answer{text, err, err == nil && !w.session.stillReads(w.run, prompt.Root)}
	}()
}

// stillReads looks once more whether a command waits for the terminal: it may have gone on
// in silence, and what is typed then would be the shell's next command. A program that
// counts down stops reading now and then. Where nobody is there to look, it was seen reading:
// what is for root alone is not typed then.
func (s *Session) stillReads(r *run, root bool) bool {
	timeout := time.After(drainGrace + s.trip)
	for range 3 {
		nonce, told := s.expectLate(r.keeper, "R", 1)
		r.keeper.tell(probeLine(nonce, s.pid, s.tty, r.command.TTY))
		select {
		case m := <-told:
			if m.payload != probeNobody {
				return !root || strings.Contains(m.payload, "s")
			}
		case <-r.keeper.exited:
			return !root
		case <-timeout:
			return !root
		}
	}
	return false
}

// asking tells Session.Write whether somebody reads.
func (w *watch) asking(now bool) {
	w.session.mu.Lock()
	w.run.asking = now
	w.session.mu.Unlock()
}

// answer types what came back, unless it is too late, or explains why the command is
// interrupted.
func (w *watch) answer(a answer) error {
	if w.cancel != nil {
		w.cancel()
		w.cancel = nil
	}
	if a.err != nil {
		at := ""
		if text := w.run.prompt.Text; text != "" {
			at = fmt.Sprintf(" at %.200q", text)
		}
		return failure(codeNeedsInput, ErrNeedsInput, "answer it at a terminal with this host alone, give the host a reference to the password, or use an option of the command that asks nothing",
			"command waits for input%s: %v", at, a.err)
	}
	password := w.run.prompt.Kind == PasswordPrompt
	// It may ask for something else by now, or draw its question anew.
	if text := w.promptText(); a.late || password && text != w.run.prompt.Text && !asksSecret(text) {
		w.goOn(w.run.answered)
		return nil
	}
	if password {
		w.run.veil.hideEcho(a.text)
	}
	w.goOn(w.run.counts())
	w.run.keyed.Store(true)
	w.session.typeKeys(a.text + "\n")
	return nil
}

// goOn begins to look anew, at what comes behind the bytes that were answered.
func (w *watch) goOn(answered [3]int64) {
	w.run.answered, w.last = answered, -1
	w.timer.Reset(silence)
	w.asking(false)
}

// resume is for a command whose question was left to who types, and that does
// not wait any more.
func (w *watch) resume(answered [3]int64) {
	if w.left {
		w.left = false
		w.goOn(answered)
		w.run.command.Waiting(nil)
	}
}

// describe says what the command waits for. A program that reads single keys
// waits for them if it draws, as a pager does, or asks nothing; a line is what
// the others take too.
func (w *watch) describe(modes string) Prompt {
	p := Prompt{Text: w.promptText(), Kind: LinePrompt, Root: strings.Contains(modes, "s")}
	raw, hidden := strings.Contains(modes, "r"), w.run.command.Echo && !strings.Contains(modes, "e")
	switch {
	case w.run.fullScreen(), raw && (p.Text == "" || p.Text == ":" || w.draws()):
		p.Kind = ScreenPrompt
	case asksSecret(p.Text), hidden && !raw:
		p.Kind = PasswordPrompt
	}
	return p
}

// draws reports whether what came last was put at a place of the screen, or
// stands out there.
func (w *watch) draws() bool { return drawing.Match(w.run.fresh(w.run.shown())) }

var drawing = regexp.MustCompile(`\x1b\[(\d+;\d+)?[Hf]|\x1b\[([0-9;]*;)?7m[^\n]*\z`)

// promptText returns the unfinished last line that was said last: prompts are
// on the terminal, or where a program with its stdin on the terminal puts them.
func (w *watch) promptText() string {
	line, finished := w.run.lastSaid()
	if line == "" && finished == "" && w.run.answered == [3]int64{} {
		return w.run.before
	}
	return cmp.Or(line, finished)
}

// lastSaid returns the unfinished last line, or else one that is finished.
func (r *run) lastSaid() (unfinished, finished string) {
	for _, from := range []Stream{Terminal, Stderr, Stdout} {
		line := lastLine(jobNotice.ReplaceAll(r.fresh(from), nil))
		if line != "" && r.outputs[from].Unfinished() {
			return line, ""
		}
		finished = cmp.Or(finished, line)
	}
	return "", finished
}

// fresh returns what has come on a stream since the last answer, or the end of
// it.
func (r *run) fresh(from Stream) []byte {
	output := r.outputs[from]
	kept := output.Bytes()
	if fresh := output.Total() - r.answered[from]; fresh < int64(len(kept)) {
		kept = kept[int64(len(kept))-fresh:]
	}
	return kept[max(0, len(kept)-4096):]
}

// jobNotice matches what zsh says of a job that ends, in the middle of whatever
// runs.
var jobNotice = regexp.MustCompile(`\[\d+\]  [ +-] [a-z].*\n`)

// lastLine returns the last line of b as a terminal shows it. One that is empty
// because a newline stands at the end gives the one before it.
func lastLine(b []byte) string {
	text := strings.TrimRight(escapes.ReplaceAllString(string(b), ""), "\r\n")
	return text[strings.LastIndexAny(text, "\r\n")+1:]
}

// escapes matches what a terminal does not show: control sequences, titles, and
// single control characters.
var escapes = regexp.MustCompile(`\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(\x07|\x1b\\)?|\x1b[ -/]*[0-~]|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]`)
