package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"gateway/transport"
)

// A keeper is the session's side channel: a small sh on a [transport.Pipe]
// whose stdout and stderr are what the commands write to, apart and byte for
// byte, and that obeys control lines; see [keeperPrelude].
//
// The streams of one keeper are one generation. A background job may hold them
// for longer than its command lives; the session then turns to a new keeper,
// and what the old one still carries can't be taken for a later command's.
type keeper struct {
	pipe *transport.Pipe
	// stdout and stderr are the paths that frames write to, and dir that of a
	// private directory, or empty. They need no quotes.
	stdout, stderr, dir string
	server, mounts      string // see serverField and mountField
	// feed is the directory for stdin, where that is another: a feeder is the
	// account's own, also where the keeper is not.
	feed string
	// stored is closed once the frame files are there; see [Session.install].
	stored chan struct{}
	heard  atomic.Int64    // reads of either stream that brought something
	ended  chan struct{}   // closed when both streams are
	exited <-chan struct{} // closed when the keeper is gone
}

// openKeeper starts a keeper and waits for its report. It returns nil, and no
// error, on a machine where nothing can be written to by name.
func (s *Session) openKeeper(ctx context.Context) (*keeper, error) {
	nonce, marks := s.expect("K")
	defer s.forget(nonce)
	s.note(nonce)
	pipe, err := s.transport.Pipe(s.together(ctx), keeperPrelude(nonce))
	if err != nil {
		return nil, err
	}
	k := s.newKeeper(pipe)
	if err := s.awaitKeeper(ctx, k, marks); err != nil {
		return nil, err
	}
	if k.stdout != "" {
		return k, nil
	}
	pipe.Close()
	<-k.ended
	return nil, nil
}

// newKeeper reads what a keeper's pipe brings.
func (s *Session) newKeeper(pipe *transport.Pipe) *keeper {
	k := &keeper{pipe: pipe, stored: make(chan struct{}), ended: make(chan struct{}), exited: pipe.Done()}
	var open atomic.Int32
	open.Store(2)
	done := func() {
		if open.Add(-1) == 0 {
			close(k.ended)
			s.dropLate(k)
		}
	}
	s.pump(pipe.Stdout, k, Stdout, done)
	s.pump(pipe.Stderr, k, Stderr, done)
	return k
}

// awaitKeeper waits for a keeper's report. A keeper without paths found nothing
// that can be written to by name.
func (s *Session) awaitKeeper(ctx context.Context, k *keeper, marks <-chan mark) (err error) {
	select {
	case m := <-marks:
		k.reported(m)
		return nil
	case <-k.ended:
		if len(marks) > 0 { // it has found nothing, and left
			k.reported(<-marks)
			return nil
		}
		err = failure(codeNoSync, nil, "a forced command, an account that may not run sh, or a password that has expired does this", "the side channel ended at once")
		go k.release() // ends with the pipe; one that lives on without its streams ends, too
		if within(keeperGrace, k.exited); closed(k.exited) {
			if _, lost := k.pipe.Wait(); lost != nil {
				err = fmt.Errorf("session: open the side channel: %w", lost)
			}
		}
	case <-ctx.Done():
		err = unanswered(ctx, "no answer on the side channel", "")
	}
	k.pipe.Close()
	<-k.ended
	return err
}

func (k *keeper) reported(m mark) {
	if told := strings.SplitN(m.payload, ":", 5); len(told) == 5 && told[2] != "" {
		k.server, k.mounts, k.stdout, k.stderr, k.dir = told[0], told[1], told[2], told[3], told[4]
	}
}

// noKeeper is why there is no side channel, with what the machine has said beside it.
func (s *Session) noKeeper(err error) error {
	e, ok := errors.AsType[*transport.Error](err)
	if !ok || e.Code != codeNoSync {
		return err
	}
	e = new(*e)
	e.Message += s.said()
	return e
}

// Files in the keeper's directory.
func (k *keeper) text() string    { return k.dir + "/t" }
func (k *keeper) exports() string { return k.dir + "/x" }

// frames is the file with the frame of a plain command, loud or not; see
// [frameFile].
func (k *keeper) frames(loud bool) string {
	if loud {
		return k.held("/fd/9", "/l")
	}
	return k.held("/fd/7", "/f")
}

// runner is the file that evaluates $_gw.
func (k *keeper) runner() string { return k.held("/fd/8", "/r") }

// stdin returns the FIFO of one feeder: an earlier one may still be about to
// remove its own.
func (k *keeper) stdin(nonce string) string { return cmp.Or(k.feed, k.dir) + "/i" + nonce }

// held returns the name of a file that the keeper holds open, by descriptor
// where that is possible: whoever empties /tmp does not end the session.
func (k *keeper) held(descriptor, name string) string {
	if proc, named := strings.CutSuffix(k.stdout, "/fd/3"); named {
		return proc + descriptor
	}
	return k.dir + name
}

// isGone reports whether there was a keeper, and is no more. A job may hold the
// streams of one that was killed.
func (k *keeper) isGone() bool { return k != nil && (closed(k.ended) || closed(k.exited)) }

// failed reports whether it could not clear up behind itself: it was killed, or there was
// no process to be had for it.
func (k *keeper) failed() bool {
	if !closed(k.exited) {
		return false
	}
	exit, err := k.pipe.Wait()
	return err == nil && (exit.Signal != "" || exit.Code > 1)
}

// release tells the keeper that nobody listens any more.
func (k *keeper) release() { k.pipe.Stdin.Close() }

// close hangs up on a keeper that was released.
func (k *keeper) close() {
	within(keeperGrace, k.exited)
	k.pipe.Close()
}

// keeperGrace is how long a keeper may take to hand its streams over to the
// process that drains them, and what is in those of one that is gone to come.
const keeperGrace = time.Second

// control sends one control line, whose stdout and stderr go nowhere. The keeper reads it
// with a shell's read, which is exact on a pipe: bytes that follow the line are left alone.
func (k *keeper) control(line string) error {
	_, err := io.WriteString(k.pipe.Stdin, line+"\n")
	return err
}

// tell is control for who must not wait: a dead link takes nothing any more. The
// keeper's end is noticed elsewhere.
func (k *keeper) tell(line string) {
	go func() { _ = k.control(line) }() // ends with the pipe
}

// flush asks a keeper for mark F in both streams, behind everything that was written
// to them before. It is a background job: where nobody reads, it has to wait for room,
// and the keeper must not.
func (s *Session) flush(k *keeper) (<-chan mark, error) {
	nonce, marks := s.expectLate(k, "F", 2)
	return marks, k.control(`( printf ` + controlMark('F', nonce, "") + ` >&3; printf ` + controlMark('F', nonce, "") + ` >&4 ) &`)
}

// install gives a new keeper what the shell's coming has made known: whom to
// hang up, and the frames of its dialect. Nobody waits for it; until the files
// are there, frames are typed.
func (s *Session) install(k *keeper) {
	if s.hold(k) != nil || k.arm(s.pid, s.sid) != nil || k.dir == "" || s.dialect.stored == "" {
		return // a keeper that is gone is noticed elsewhere
	}
	nonce, stored := s.expectLate(k, "A", 1)
	parts := strings.SplitN(frameFile(s.dialect, k, "\x00", "\x00", s.config.Reopen), "\x00", 3)
	frames := `frame() { printf "` + octal(parts[0]) + `%s` + octal(parts[1]) + `%s` + octal(parts[2]) + `" "$1" "$2"; }; ` +
		`frame "&&unset _gwn" "" >` + k.dir + `/f && command exec 7<` + k.dir + `/f && ` +
		`frame "" ` + Quote(s.dialect.regain) + ` >` + k.dir + `/l && command exec 9<` + k.dir + `/l`
	// Without command, an exec whose file is gone ends most shells (POSIX XCU 2.8.1). A
	// command may have filled the stream by then: the keeper must not wait for room.
	if k.control(frames+` && { printf `+controlMark('A', nonce, "")+` >&3 & }`) != nil {
		return
	}
	s.spawn(func() {
		select {
		case <-stored:
			close(k.stored)
		case <-k.ended:
		}
	})
}

// retire lets go of the streams: they end with their last writer. Hanging up is
// the next keeper's task.
func (k *keeper) retire() error { return k.control(nobody + "; exec 3>&- 4>&-") }

// answerLine returns the control line of a look that answers a mark with what it has found,
// $a. It is a background job: the answer may have to wait for room in the stream, and the
// keeper must not.
func answerLine(kind byte, nonce, look string) string {
	return `( ` + look + `; printf ` + controlMark(kind, nonce, "%s") + ` "$a" >&3 ) &`
}

func controlMark(kind byte, nonce, payload string) string {
	return `"\036` + string(kind) + nonce + `:` + payload + `\036` + nonce + `;"`
}

// arm makes the keeper do, once the client is gone, what the end of a terminal
// does in most shells: hang up every process of the shell's session. A shell
// without a terminal would never know, and bash spares the jobs of what it
// reads from a file. nohup and setsid do what they are for.
//
// Where the client is gone but its link is not, neither is the terminal: a
// shell that does not listen is killed then, see [endLine]. It is stopped first,
// so that it starts nothing between the look and its end.
//
// A hang-up is lost on a process that is about to become a program and has the
// shell's handlers yet, and misses one that is started meanwhile. So it is
// repeated for what would have ended of it, but for what a process has started
// that handles it or ignores it, or when the shell was gone. Before, it may have
// been the shell, which dies of the hang-up behind its last fork and is no parent
// any more.
//
// Two looks have to find nobody: one may have listed the processes before that
// fork, and have come to the shell after its end.
//
// The number of the shell's session is given: the shell may be gone when the
// keeper comes to this line. What is older than the shell is none of the session's:
// where a server gives a shell without a terminal no session of its own, it is the
// server. Once nothing is left of the session, the number may be another one's.
func (k *keeper) arm(pid int, sid string) error {
	return k.control(fmt.Sprintf(`h=%d; s=%s; read -r l </proc/$h/stat && set -- ${l##*\) } && j=${20}; `, pid, sid) +
		has("*[13579bdf]") +
		`missed() { q=$2; b=${20}; while [ $q -gt 1 ] && [ $q != $h ] && read -r l </proc/$q/stat && set -- ${l##*\) } && [ "$4" = "$s" ]; do ` +
		`has "[CI]" $q && return 1; q=$2; b=${20}; done; [ $q = $h ] || [ $b -le $t ]; }; ` +
		`shell() { x=$1; read -r l </proc/$h/stat && set -- ${l##*\) } && [ $1 != Z ] && [ "${20}" = "$j" ] && kill -$x $h; }; ` +
		`another() { [ "$s" = $h ] && read -r l </proc/$h/stat && set -- ${l##*\) } && [ "${20}" != "$j" ]; }; ` +
		`gone() { f=1; g=; for n in 0 0.1 0.2 0.4 0.8 1.6; do [ $n = 0 ] || sleep $n || sleep 1; ! another || break; k=; y=; [ $n$z != 0.81 ] || shell STOP; ` +
		`for i in ` + listed("[0-9]*/stat", ofSession("$s", ".")) + `; do i=${i%/*}; read -r l </proc/$i/stat || continue; set -- ${l##*\) }; ` +
		`[ "$4" = "$s" ] && [ ${20} -ge ${j:-0} ] || continue; { [ $1 = Z ] && [ ${18} -lt 2 ]; } || has I $i || y=1; [ $n = 0 ] || { ! has "[CI]" $i && missed "$@"; } || continue; k="$k $i"; done; ` +
		`[ $n$z != 0.81 ] || shell KILL; [ -z "$k" ] || { kill -HUP $k; kill -CONT $k; }; [ "$y$f" ] || break; f=$y; ` +
		`[ "$g" ] || { shell 0 || g=1; ` + now + `; t=$u; }; done; [ -z "$z" ] || shell KILL; }`)
}

// has defines a function that reports whether process $2 handles a signal (C),
// ignores it (I) or does either ("[CI]"). mask matches the signal's bit in
// proc_pid_status(5).
func has(mask string) string {
	return `has() { while read -r m v; do case $m$v in Sig$1*:` + mask + `) return 0;; esac; done </proc/$2/status; return 1; }; `
}

// interrupt is [has]'s mask for SIGINT.
const interrupt = "*[2367abef]"

// nobody is what gone does where nobody is to be hung up.
const nobody = "gone() { :; }"

// begunLine returns the control line that answers mark J once none of the session's
// processes has only just begun: is about to run, or to be read from the disk, and has had
// less than a tenth of a second of a processor. One that ignores a hang-up is ready for it.
func begunLine(nonce string) string {
	look := `for n in 0.01 0.02 0.04 0.08 0.1 0.1 0.1 0.1 0.1 0.1 0.1; do a=; ` +
		`for i in ` + listed("[0-9]*/stat", ofSession("$s", "[RD]")) + `; do i=${i%/*}; read -r l </proc/$i/stat || continue; set -- ${l##*\) }; ` +
		`[ "$4" = "$s" ] && [ $i != $h ] && [ $((${12} + ${13})) -lt 10 ] && ! has I $i && a=1; done; [ "$a" ] || break; sleep $n || break; done`
	return answerLine('J', nonce, look)
}

// behindShell returns the control line that waits for the shell, which has been told to
// exit, and then does as leftJobs says. So the client need not hear of the shell's end
// before it tells the keeper of its own, which spares a round trip. A shell that takes
// longer is hung up.
//
// The first looks are for a shell that is about to end, and start no program. There are
// more of them where sleep takes whole seconds only, as OpenWrt's does.
func behindShell(jobs bool) string {
	looks := func(times int) string {
		return fmt.Sprintf(`n=0; while [ -e /proc/$h ] && [ $n -lt %d ]; do n=$((n+1)); done; `, times)
	}
	return looks(500) +
		`for n in 0.01 0.02 0.04 0.08 0.1 0.1 0.1 0.1 0.1 0.1 0.1 0.1; do shell 0 || break; sleep $n || { ` + looks(5000) + `shell 0 && sleep 1; break; }; done; shell 0 || ` + leftJobs(jobs)
}

// leftJobs returns the control line that says that the shell has ended in order: its jobs,
// if it had any, may go on. A stopped one never would. To look for one takes a look at all
// processes of the machine.
func leftJobs(jobs bool) string {
	if !jobs {
		return nobody
	}
	return `gone() { k=; another || for i in ` + listed("[0-9]*/stat", ofSession("$s", "T")) + `; do i=${i%/*}; ` +
		`read -r l </proc/$i/stat || continue; set -- ${l##*\) }; ` +
		`[ "$4" = "$s" ] && [ $1 = T ] && [ ${20} -ge ${j:-0} ] && k="$k $i"; done; [ -z "$k" ] || { kill -HUP $k; kill -CONT $k; }; }`
}
