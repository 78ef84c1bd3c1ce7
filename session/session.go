// Package session is the engine: a shell on a terminal that outlives its
// commands, and one result for each of them that is never wrong about what
// happened.
//
// The terminal is for control and pipes are for data. The shell sits on a
// terminal without echo; its commands write to two pipes of a keeper, which
// come home apart and byte for byte. Two sentinels end a command: a mark
// with its status behind each stream, and the shell's next prompt on the
// terminal.
package session

import (
	"errors"
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
	// Shell is the program that reads the commands, a name or a path, also with a word
	// in front ("busybox ash"): bash, dash, zsh, ksh, mksh, yash, ash or sh.
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
	// before it begins; 0 means [OpenTimeout].
	OpenTimeout time.Duration
}

// OpenTimeout is what [Config.OpenTimeout] is if it is left out.
const OpenTimeout = 30 * time.Second

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
	cut       atomic.Bool // the shell was there when it was hung up under a command
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
	mounts  string // see mountField
	origin  string // where it started
	tty     string // its terminal; empty: the account got none

	behindSudo <-chan mark // a flush of both streams when sudo has ended; nil: there is none

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

	// mu guards what follows, and config.Size. The holder of the turn alone changes keeper,
	// merged and script, and reads them without it.
	mu      sync.Mutex
	keeper  *keeper          // where commands write; nil if the terminal carries everything
	retired []*keeper        // earlier ones, which still carry background output
	merged  bool             // there is no keeper, and will be none any more
	parted  bool             // Close waits for the pumps
	run     *run             // the command in progress
	replies map[string]reply // by nonce: who waits for which marks
	late    bool             // bytes came while no command ran
	script  *Script          // of the last command
	between between          // what has come of that since
	past    []string         // nonces of the last commands, whose prompts may still come
	noisy   bool             // the shell has said something of its own on the terminal
	idled   bool             // it has said, since the last command, that it waited for too long
	owed    string           // the nonce of the last command's prompt, if it is still to come
	until   time.Time        // and for how long it may
	ready   bool             // the first prompt has come
	draws   int              // for how many of the frames' lines the shell still switches attributes off
	echo    echo             // the end of the last frame's, if the terminal is yet to bring it
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

// LoggedOut reports whether the shell has said that it waited too long for a command, as
// TMOUT of bash(1) has it. It is known with Done.
func (s *Session) LoggedOut() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.idled
}

var errHungUp = &transport.Error{Code: codeLost, Message: "nothing answered, and it was hung up", Err: ErrLost}

// Terminal reports whether the account got a terminal.
func (s *Session) Terminal() bool { return s.tty != "" }

// Split reports whether stdout and stderr of what is run next come apart: on a machine that has
// no other way, the terminal carries them.
func (s *Session) Split() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.merged
}

// Resize tells the terminal its new size.
func (s *Session) Resize(size transport.Size) error {
	s.mu.Lock()
	s.config.Size = size
	s.mu.Unlock()
	s.display.resize(size)
	return s.terminal.Resize(size)
}
