// Package session is the engine: a shell on a terminal that outlives its
// commands, and one result for each of them that is never wrong about what
// happened.
//
// The terminal is for control and pipes are for data. The shell sits on a
// terminal without echo; its commands write to two pipes of a [keeper], which
// come home apart and byte for byte. Two sentinels end a command: a mark
// with its status behind each stream, and the shell's next prompt on the
// terminal.
package session

import (
	"bytes"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gateway/transport"
)

// Config says what a session is like. The zero value is bash where there is
// one, else sh, in the account's home.
type Config struct {
	// ID names the session in the environment of its processes
	// (GATEWAY_SESSION); empty means a random one. Letters, digits and dashes.
	ID string
	// Group is what the session's programs belong to; empty means the session. See
	// [transport.Together].
	Group string
	// Shell is the program that reads the commands; see the contract.
	Shell string
	// Login reads the login profile first.
	Login bool
	// Env is exported in the session.
	Env map[string]string
	// Cwd is where the session starts; empty means home.
	Cwd string
	// Sudo, if there is one, makes the session another user's.
	Sudo *Sudo
	// Size and Term describe the terminal. An empty Term means a terminal that
	// nobody looks at: TERM=dumb, and cat for every pager.
	Size transport.Size
	Term string
	// NoTerminal starts the shell on plain pipes: nothing has a terminal, and
	// nothing is asked there.
	NoTerminal bool
	// Reopen keeps what [Session.Reopen] needs, for 20 µs a command.
	Reopen bool
	// Ledger, if there is one, notes the session as long as something of it may be
	// on the machine, and tells it which others to end there.
	Ledger Ledger
	// OpenTimeout bounds Open beside its context, and each answer that a command needs
	// before it begins; 0 means 30 s.
	OpenTimeout time.Duration
}

// A Session is a shell that outlives its commands. Methods may be called
// concurrently; one command runs at a time.
type Session struct {
	transport transport.Transport
	config    Config
	terminal  transport.Terminal
	display   display
	ended     chan struct{} // closed when the terminal has ended
	pumps     sync.WaitGroup
	closing   atomic.Bool
	closeOnce sync.Once
	heard     atomic.Int64 // reads of the terminal that brought something
	entry     Entry
	looked    chan struct{} // closed when what other sessions left was looked for; nil: it is not
	account   string        // empty: there is no ledger

	trip    time.Duration // a round trip and a little more: the answer to its start
	dialect dialect
	shell   string // its path
	pid     int
	sid     string // its session's number; empty: not known
	origin  string // where it started
	tty     string // its terminal; empty: the account got none

	turn    chan struct{} // holds one token while a command runs
	alarm   *alarm
	jobs    atomic.Bool // the shell has started some, or nobody knows
	holders *holders

	// Used by the holder of the turn only.
	cwd     string
	job     string        // $! at the last mark
	status  int           // $? there
	once    string        // goes into the frames to come, until one has told its end
	rotate  bool          // the next command needs a keeper of its own
	shared  bool          // so does one that is no part of the last one's script: somebody may hold the streams
	traced  bool          // the shell may show what it runs
	limited bool          // the shell may have few descriptors
	left    bool          // the last line was left before its end: what it did to the prompt stands
	typed   chan struct{} // closed when what is typed behind the last command is; nil: nothing is
	modes   bool          // the terminal has modes that are not the session's
	asked   string        // the unfinished line of the last command, if it is a part of a script
	lost    bool          // no further command is possible
	retired []*keeper

	mu      sync.Mutex
	keeper  *keeper          // where commands write; nil if the terminal carries everything
	merged  bool             // there is no keeper, and will be none any more
	parted  bool             // Close waits for the pumps
	run     *run             // the command in progress
	replies map[string]reply // by nonce: who waits for which marks
	late    bool             // bytes came while no command ran
	script  *Script          // of the last command
	between between          // what has come of that since
	past    []string         // nonces of the last commands, whose prompts may still come
	noisy   bool             // the shell has said something of its own on the terminal
	owed    string           // the nonce of the last command's prompt, if it is still to come
	until   time.Time        // and for how long it may
	ready   bool             // the first prompt has come
	draws   int              // for how many of the frames' lines the shell still switches attributes off
	noise   []byte           // the beginning of what the terminal said before it
	names   []string         // what the ledger knows
}

// ID returns the session's name.
func (s *Session) ID() string { return s.config.ID }

// Shell returns the path of the session's shell.
func (s *Session) Shell() string { return s.shell }

// Origin returns the directory that the session started in.
func (s *Session) Origin() string { return s.origin }

// Done is closed once the session's shell has ended, or the way to it, and the command
// that ran then.
func (s *Session) Done() <-chan struct{} { return s.ended }

// Exit returns how the shell ended. It blocks until Done. The error wraps
// [transport.ErrLost] where nobody knows, as behind a hang-up of this side's.
func (s *Session) Exit() (transport.Exit, error) {
	exit, err := s.terminal.Wait()
	if errors.Is(err, transport.ErrClosed) {
		err = errHungUp
	}
	return exit, err
}

var errHungUp = &transport.Error{Code: "link.lost", Message: "nothing answered, and it was hung up", Err: ErrLost}

// Terminal reports whether the account got a terminal.
func (s *Session) Terminal() bool { return s.tty != "" }

// Resize tells the terminal its new size.
func (s *Session) Resize(size transport.Size) error {
	s.mu.Lock()
	s.config.Size = size
	s.mu.Unlock()
	s.display.resize(size)
	return s.terminal.Resize(size)
}

// Write types b to the command that runs: one with TTY, or one that waits for
// input. Anything else would leave it to the shell, as its next command, and is
// refused. What a command with TTY leaves unread is thrown away, unless its line was
// left early, as by an interrupt; of any other the shell takes it.
func (s *Session) Write(b []byte) (int, error) { return s.write(b, false) }

// WriteSecret is Write for what nobody is to see: in what comes from the command
// from now on, on the terminal or elsewhere, stars stand in its place. A secret
// of less than four bytes is not looked for.
func (s *Session) WriteSecret(b []byte) (int, error) { return s.write(b, true) }

func (s *Session) write(b []byte, secret bool) (int, error) {
	r := s.reader()
	if r == nil {
		return 0, nobodyReads()
	}
	if secret {
		r.veil.hide(string(b))
	}
	if r.command.TTY && bytes.IndexByte(b, 3) >= 0 && r.isEarly(s) {
		r.pursue(typedLevel)
	}
	r.typing.Lock()
	defer r.typing.Unlock()
	seen := r.counts() // before the write: what comes next may be the next prompt
	defer func() {
		select {
		case r.typed <- seen:
		default: // there is news of it already
		}
	}()
	if !r.command.TTY && !s.stillReads(r, false) {
		return 0, nobodyReads()
	}
	r.keyed.Store(true)
	if s.reader() != r { // it has ended behind another writer
		return 0, nobodyReads()
	}
	return s.terminal.Write(b)
}

func nobodyReads() error {
	return &transport.Error{Code: "usage", Message: "session: no command reads what is typed", Hint: "type to a command with a terminal, or to one that waits for input"}
}

// reader returns the command that reads what is typed, if there is one.
func (s *Session) reader() *run {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.run; r != nil && (r.command.TTY || r.asking) && !r.progress.stdout && !r.progress.prompted {
		return r
	}
	return nil
}

// Close ends the session in order: the shell exits, background jobs go on as
// they do after a logout, and what is left of the session's own goes away on
// the machine by itself. A command that runs is hung up. Another call waits for the first.
func (s *Session) Close() error {
	s.closeOnce.Do(s.close)
	return nil
}

func (s *Session) close() {
	s.closing.Store(true)
	var told *dismissal
	select {
	case s.turn <- struct{}{}:
		if !s.lost {
			if s.typed != nil {
				within(time.Second, s.typed)
			}
			// The second one counts where jobs made the shell refuse the first.
			s.typeKeys("exit\nexit\n") // the hang-up that follows does it too
			if within(nearby, s.terminal.Done()); !closed(s.terminal.Done()) {
				told = s.tellOfExit()
				within(exitGrace, s.terminal.Done())
			}
		}
	default:
	}
	s.hangUp(told)
}

// nearby is how long the end of a shell takes most times, and its way here where that is
// short. A keeper that looks for it has to pause, and takes the processor that it needs.
const nearby = 2 * time.Millisecond

// exitGrace is how long a shell that was told to exit may take for it.
const exitGrace = time.Second

// tellOfExit tells the keepers to end once the shell has, where they can see that.
func (s *Session) tellOfExit() (told *dismissal) {
	if s.sid == "" || s.config.Sudo != nil { // another user's shell may be hidden
		return nil
	}
	return s.dismiss(behindShell(s.jobs.Load()))
}

// within waits for done, but not for longer than d.
func within(d time.Duration, done <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}

// allWithin waits for a group, but not for longer than d.
func allWithin(d time.Duration, group *sync.WaitGroup) {
	done := make(chan struct{})
	go func() { // ends with the group
		group.Wait()
		close(done)
	}()
	within(d, done)
}

// closed reports whether done is.
func closed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// hangUp gives everything back. The keepers are told to end, unless that was done.
func (s *Session) hangUp(told *dismissal) {
	s.holders.stop()
	orderly := s.endedInOrder()
	if told == nil {
		line := ""
		if orderly {
			line = leftJobs(s.jobs.Load())
		}
		told = s.dismiss(line)
	}
	allWithin(keeperGrace, &told.done) // one that takes nothing any more holds up who tells it
	if s.terminal != nil {
		s.terminal.Close()
	}
	for _, k := range told.keepers {
		k.close()
	}
	s.clearUp(told.keepers...)
	s.entry.Close(s.sawEnd(told.keepers))
	s.mu.Lock()
	s.parted = true
	s.mu.Unlock()
	allWithin(drainGrace, &s.pumps) // a caller's Output may never return
}

// A dismissal is the session's keepers, which are being told to end.
type dismissal struct {
	keepers []*keeper
	done    sync.WaitGroup
}

// dismiss tells each keeper its last line, if there is one, and that nobody listens any
// more. What one still has to say might not come then: it reads its streams itself.
func (s *Session) dismiss(line string) *dismissal {
	if s.looked != nil { // a short command is over before the machine's processes are looked at
		within(keeperGrace, s.looked)
	}
	s.mu.Lock()
	d := &dismissal{keepers: slices.Clone(s.retired)}
	if s.keeper != nil {
		d.keepers = append(d.keepers, s.keeper)
	}
	s.mu.Unlock()
	for _, k := range d.keepers {
		d.done.Go(func() { // ends with the keeper
			if line != "" {
				_ = k.control(line) // one that is gone does not hear it
			}
			k.release()
		})
	}
	return d
}

// enroll notes a goroutine that Close waits for, and returns what it calls at its
// end. One that comes too late for that is not waited for: what it reads is closed.
func (s *Session) enroll() (leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.parted {
		return func() {}
	}
	s.pumps.Add(1)
	return s.pumps.Done
}

// spawn runs f beside the session.
func (s *Session) spawn(f func()) {
	leave := s.enroll()
	go func() {
		defer leave()
		f()
	}()
}

// endedInOrder reports whether the shell has ended by itself.
func (s *Session) endedInOrder() bool {
	if s.terminal == nil || !closed(s.terminal.Done()) {
		return false
	}
	_, err := s.terminal.Wait()
	return err == nil
}
