package session

import "time"

// Verdict is what is known about a command's outcome. It never guesses.
type Verdict string

// The verdicts of the contract.
const (
	// Exited: the command ended, and its exit status is known.
	Exited Verdict = "exited"
	// Signaled: the session's shell died of a signal while the command ran.
	Signaled Verdict = "signaled"
	// TimedOut: the deadline passed and the command was ended.
	TimedOut Verdict = "timed_out"
	// Interrupted: the caller, or an unanswered prompt, ended it.
	Interrupted Verdict = "interrupted"
	// NotStarted: it certainly did not run.
	NotStarted Verdict = "not_started"
	// Unknown: it may have run, and nobody knows how it ended.
	Unknown Verdict = "unknown"
)

// Streams says where a command's output went.
type Streams string

const (
	// Split: stdout and stderr apart, byte for byte.
	Split Streams = "split"
	// Merged: both in Stdout, in their true order.
	Merged Streams = "merged"
	// OnTerminal: both in Stdout as the terminal showed them.
	OnTerminal Streams = "terminal"
	// Lost: the command took the streams away; what came before is there.
	Lost Streams = "lost"
)

// Result is what a command left. Its slices belong to the caller.
type Result struct {
	Verdict Verdict
	// ExitCode is the exit status, or -1 where there is none to know.
	ExitCode int
	// Signal names, without SIG, what the session's shell died of. With Signaled it is
	// empty, and ExitCode -1, where the machine does not say which signal it was.
	Signal string

	Stdout, Stderr []byte
	// Terminal is what was written to the terminal itself: prompts, traces. Over
	// SSH, what a program writes there as its last act may be missing, if the text
	// does not mention the terminal and none of the session wrote there before.
	// It never comes with a later command's.
	Terminal []byte
	Streams  Streams
	// StdoutBytes and StderrBytes count all bytes, kept or not.
	StdoutBytes, StderrBytes int64
	// Truncated: of Stdout or Stderr only the head and the tail were kept.
	Truncated bool
	// Cut: some output was dropped, because nobody took it in time, or may have been,
	// because the session was closed meanwhile. It implies Truncated, also where what
	// had come is all there.
	Cut bool
	// Spool is the file that holds the whole of the first stream that was
	// truncated, or empty. SpoolStderr is that of stderr, if it was truncated:
	// Spool itself, where stdout was not.
	Spool, SpoolStderr string
	// Background: bytes of an earlier command's background job may be among
	// these.
	Background bool

	// Cwd is the working directory at the command's end; empty if unknown.
	Cwd string
	// Started is when the command was handed to the shell; zero if it was not.
	Started  time.Time
	Duration time.Duration
	// Prompt is what the command was last seen waiting for.
	Prompt string
	// Ended: the session's shell is gone since the command was given, and the session
	// with it. A command that is refused because it had ended before has [ErrClosed] alone.
	Ended bool
	// EndedBehind: Ended, but not by this command, which was over before.
	EndedBehind bool
}
