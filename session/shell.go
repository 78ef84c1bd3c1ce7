package session

import (
	"cmp"
	"path"
	"regexp"
	"strings"
)

// A dialect is how one family of shells is started and spoken to. Each row
// below was measured; see the tests.
type dialect struct {
	// options start the shell interactive, with line editing, history
	// expansion and rc files off.
	options string
	// environment is exported before the shell starts.
	environment string
	// eval and friends name the builtins in a way that neither an alias (the
	// backslash) nor a function (command, builtin) can take over.
	eval, dot, printf, cd string
	// print writes its one word as it is, where printf is no builtin.
	print string
	// unexport takes _gwn and _gw out of the environment, under allexport.
	unexport string
	// stored runs the keeper's frame file, whose path is the verb. It is empty
	// for ksh93, which mixes up the texts of nested evals. zsh does not source it:
	// there its messages would name the file, and a pipeline's subshell writes a
	// newline to stdout when it is interrupted.
	stored string
	// exports: an assignment in front of eval is not exported by itself.
	exports bool
	// sourced: the text is put into a variable, which a file evaluates. What is
	// read from a file, bash does not take for typed: it keeps its "exit", and
	// its "[1] 1234" for every background job, off stderr.
	sourced bool
	// returns: a return at top level ends the shell, but not in a file.
	returns bool
	// speaks: whenever it reads a line of a file, it says on stderr which jobs have
	// ended. The file must not have the text's stderr.
	speaks bool
	// setup runs before the first command.
	setup string
	// rouse is a signal that brings a shell back from anything. It ends one that
	// reads commands.
	rouse string
	// strayBody: a heredoc that ends with the text, without a newline behind <<E,
	// is whatever an earlier one has left. After a function without an end, which
	// the next function that is read makes up for, such a heredoc hangs.
	strayBody bool
	// debugs: a trap on DEBUG takes the status away before a group that has
	// redirections.
	debugs bool
	// oneLine: what is typed must be one line, else it is sourced.
	oneLine bool
	// masks: the status of a file has eight bits, so what a signal has ended had ended with
	// its number. The file itself keeps the text's.
	masks bool
	// evalWith and dotWith are eval and dot with assignments in front, which are for
	// them alone, where the other ones keep them.
	evalWith, dotWith string
	// leaves: a return at top level leaves the line, or ends the shell, but of a file
	// with the text itself it leaves only that.
	leaves bool
	// unmask takes away functions that would stand in for the words of a frame.
	unmask string
	// checked stands between a text, whose status is in _gws, and its marks.
	checked string
	// evalInFile is the eval of a file, if that is another one. An error leaves the
	// file: the frame file then runs again, for its marks.
	evalInFile string
	// settles is a line that takes upon itself what is left of an interrupt; the
	// empty one does in most.
	settles string
	// gives is typed at what may be the beginning of a line whose end a ^C has
	// thrown away: it makes a shell give that up which would read on.
	gives string
	// heedsLate: its read heeds an interrupt when it has its line, and the text is left
	// then, whatever it traps.
	heedsLate bool
	// noise matches what it says on the terminal when a job's end meets it waiting
	// for a line, which it takes for the end of its input. It leaves at the fiftieth
	// in a row.
	noise *regexp.Regexp
	// ended is the expansion that is a text's status; empty means $?.
	ended string
	// job is the expansion that is the last background job; empty means ${!-}.
	job string
	// marksSignals: the status of what a signal has ended is 256 and its number, which is
	// forgotten now and then where it was an interrupt.
	marksSignals bool
	// mend is what a shell needs after its line was left.
	mend string
	// retrap is what it needs after a text that may have changed its traps.
	retrap string
	// leads: an interrupt has to meet it before its programs, whose end by one
	// gives a subshell a status of 2, and a pipeline any. Where it meets the shell
	// in its handler of SIGCHLD, that one is left by a jump: the shell is deaf from
	// then on, or ends (one pipeline in eighty).
	leads bool
	// regain stands behind the marks of a text that may have run a program. Another
	// interactive shell makes its own group the terminal's foreground, and one that ends
	// in an exec, as that of bash -ic does, or is killed, leaves it so: a shell that does
	// not control jobs then reads EIO, and leaves.
	regain string
	// anew opens the terminal once more, behind the marks of a text that had it: the shell's own
	// input may be non-blocking, which busybox ash takes for its end, and dash speaks of.
	anew string
	// hush keeps what it says of marks that it can't write off the terminal, where it does
	// not do to close that, which costs next to nothing.
	hush string
	// recount stands in front of a text that may start a job, if it is not the first.
	recount string
	// byWay is the cd of a shell for which "cd -" is no variable: it is led there by the
	// way of where that went. The hooks of the user's know nothing of it.
	byWay string
	// frame is put into every frame, before the text and behind it; reads only behind it:
	// it has the shell read the next one.
	frame, reads string
	// forget takes out of the history the lines of a frame that do not begin with
	// a blank. mksh keeps one line, and this is it then.
	forget string
	// untrace stands in front of a text that may be traced, and retrace in the
	// text: what a command with redirections traces goes to the stderr around it.
	untrace, retrace string
	// traceStays: what it traces goes where stderr was when it began; see [frame.cut].
	traceStays bool
	// loses: what printf writes to the terminal in the moment when a job ends is
	// gone, and it says so: the write returns EINTR.
	loses bool
	// draws: having read a line, it switches the terminal's attributes off.
	draws bool
	// profile reads what a login shell of this family reads.
	profile string
	// unkept stands behind it: HISTFILE has these shells write down every line that they
	// read, with nonces and secrets, before they run it.
	unkept string
}

// status returns the expansion that is a text's status.
func (d dialect) status() string { return cmp.Or(d.ended, "$?") }

// lastJob returns the expansion that is the last background job.
func (d dialect) lastJob() string { return cmp.Or(d.job, "${!-}") }

// shellWords are the characters that a configured shell may have: it stands
// within single quotes in an exec request that any login shell may read.
var shellWords = regexp.MustCompile(`^[A-Za-z0-9/._+-]+( [A-Za-z0-9/._+-]+)*$`)

// checkShell reports whether the engine can drive the configured shell, which
// may have words of its own ("busybox ash").
func checkShell(shell string) error {
	if shell == "" {
		return nil
	}
	if !shellWords.MatchString(shell) {
		return failure(codeUnsupported, nil, "", "shell %q: only letters, digits, /._+- and blanks may stand in it", shell)
	}
	if _, ok := dialects[path.Base(shell[strings.LastIndexByte(shell, ' ')+1:])]; !ok {
		return failure(codeUnsupported, nil, "use bash, dash, zsh, ksh, mksh, yash, busybox ash or sh", "shell %q is not one that a session can drive", shell)
	}
	return nil
}
