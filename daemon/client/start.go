package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"gateway/daemon/api"
	"gateway/gateway"
	"gateway/internal/socket"
	"gateway/transport"
)

const (
	// startTime is how long a daemon may take to answer.
	startTime = 5 * time.Second
	// startPoll is how often it is asked meanwhile.
	startPoll = 5 * time.Millisecond
)

// StartOptions say how a daemon is started. All fields but Env are needed.
type StartOptions struct {
	// Path is the socket on which it is to listen.
	Path string
	// Executable and Args are what is started.
	Executable string
	Args       []string
	// Env is added to the few variables that it gets of the caller's.
	Env []string
	// Log is the file that gets its stderr. Its directory is made.
	Log string
}

// At returns a client of the daemon behind a socket. For the scope see [New].
func At(path, scope string) *Client {
	c := New(func(ctx context.Context) (net.Conn, error) { return socket.Dial(ctx, path) }, scope)
	c.where = path
	return c
}

// Starting is [At] with a daemon that is started where there is none.
func Starting(o StartOptions, scope string) *Client {
	c := New(func(ctx context.Context) (net.Conn, error) {
		conn, err := socket.Dial(ctx, o.Path)
		if !socket.Absent(err) {
			return conn, err
		}
		if _, err := Start(ctx, o); err != nil {
			return nil, err
		}
		return socket.Dial(ctx, o.Path)
	}, scope)
	c.where = o.Path
	return c
}

// Start greets the daemon, and starts one if there is none. Of many callers at
// once one starts it, and all of them get it. The daemon holds nothing of the
// caller: no descriptor, no terminal, no directory. An error of a daemon that
// ended at once has the last lines of its log.
//
// Start marks every descriptor of this process above 2 as close-on-exec.
func Start(ctx context.Context, o StartOptions) (api.Hello, error) {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	c := At(o.Path, "")
	defer c.Release()
	hello, err := c.Hello(ctx)
	if isAnswer(err) {
		return hello, err
	}
	if err := socket.MakeDir(o.Path); err != nil {
		return api.Hello{}, err
	}
	lock, err := socket.Take(ctx, o.Path+".start")
	switch {
	case err != nil && errors.Is(ctx.Err(), context.Canceled): // which says nothing about the lock
		return api.Hello{}, transport.Cause(ctx)
	case errors.Is(err, socket.ErrHeld) && listens(context.WithoutCancel(ctx), o.Path) == nil: // by another that waits for it
		return api.Hello{}, o.tooLate(ctx, nil)
	case err != nil:
		return api.Hello{}, err
	}
	defer lock.Release()
	return o.start(ctx, c)
}

// isAnswer reports whether what answered a greeting will not answer another way.
func isAnswer(err error) bool {
	return err == nil || gateway.Code(err) == "daemon.version" || errors.Is(err, errForeign)
}

// start starts a daemon where none listens, and none is still ending, and waits until one
// answers. It needs the lock.
func (o StartOptions) start(ctx context.Context, c *Client) (api.Hello, error) {
	var started *child
	var ended chan struct{} // of the child
	for {
		dead := closed(ended)
		hello, err := c.Hello(ctx)
		switch {
		case isAnswer(err):
			return hello, err
		case dead: // and nobody else has come to answer
			return api.Hello{}, started.failure("ended at once")
		}
		if started == nil {
			switch none := listens(ctx, o.Path); {
			case socket.Absent(none) && socket.Daemon(o.Path) != 0: // it would not get the place
			case socket.Absent(none):
				if started, none = o.spawn(); none != nil {
					return api.Hello{}, none
				}
				ended = started.ended
			case none != nil && ctx.Err() == nil:
				return api.Hello{}, none
			}
		}
		select {
		case <-ended:
		case <-time.After(startPoll):
		case <-ctx.Done():
			return api.Hello{}, o.tooLate(ctx, started)
		}
	}
}

// closed reports whether a channel is; nil is not.
func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// tooLate says why nothing has come of it until ctx ended.
func (o StartOptions) tooLate(ctx context.Context, started *child) error {
	switch {
	case !errors.Is(ctx.Err(), context.DeadlineExceeded):
		return transport.Cause(ctx)
	case started != nil:
		return started.failure("does not answer")
	}
	if pid := socket.Daemon(o.Path); pid != 0 && socket.Absent(listens(context.WithoutCancel(ctx), o.Path)) {
		return &transport.Error{
			Code: "daemon.unreachable", Err: ctx.Err(), Hint: "it may be ending: try again",
			Message: fmt.Sprintf("daemon: process %d holds the place of the daemon at %s, and does not listen", pid, o.Path),
		}
	}
	return &transport.Error{
		Code: "daemon.unreachable", Err: ctx.Err(), Hint: "it may be stopped or stuck: see its log, which may be " + o.Log + ", or kill it: gateway serve --stop --force",
		Message: fmt.Sprintf("daemon: the process that listens on %s does not answer", o.Path),
	}
}

// listens returns why nobody listens.
func listens(ctx context.Context, path string) error {
	conn, err := socket.Dial(ctx, path)
	if err == nil {
		conn.Close()
	}
	return err
}

// A child is a daemon that this process has started.
type child struct {
	pid   int
	ended chan struct{} // closed when it is gone
	state string        // how it ended; for who has seen that
	log   string
	from  int64 // where its lines begin in the log
}

func (o StartOptions) spawn() (*child, error) {
	log, from, err := openLog(o.Log)
	if err != nil {
		return nil, o.cannot(err, "its log is to be "+o.Log+": set XDG_STATE_HOME to a directory that you can write to")
	}
	defer log.Close()
	// What the caller has inherited itself may be without the mark, and a pipe
	// that the daemon holds would never end for whoever reads it.
	if err := closeOnExec(); err != nil {
		return nil, o.cannot(err, "")
	}
	cmd := &exec.Cmd{
		Path: o.Executable, Args: append([]string{o.Executable}, o.Args...),
		Env: append(environment(os.Environ()), o.Env...), Dir: "/",
		Stderr: log, SysProcAttr: &syscall.SysProcAttr{Setsid: true}, // stdin and stdout are /dev/null
	}
	if err := cmd.Start(); err != nil {
		return nil, o.cannot(err, "")
	}
	c := &child{pid: cmd.Process.Pid, ended: make(chan struct{}), log: o.Log, from: from}
	go func() { // ends with the daemon; without it a caller that stays would keep a zombie
		_ = cmd.Wait() // the state says it
		c.state = cmd.ProcessState.String()
		close(c.ended)
	}()
	return c, nil
}

func (o StartOptions) cannot(err error, hint string) error {
	return &transport.Error{Code: "daemon.unreachable", Message: fmt.Sprintf("daemon: start %s: %v", o.Executable, err), Err: err, Hint: hint}
}

// failure says what became of the child, in its own words if it has some.
func (c *child) failure(what string) error {
	if closed(c.ended) {
		what += " (" + c.state + ")"
	}
	message := fmt.Sprintf("daemon: process %d was started and %s", c.pid, what)
	if lines := c.lastWords(); lines != "" {
		message += ":\n" + lines
	}
	return &transport.Error{Code: "daemon.unreachable", Message: message, Hint: "its log is " + c.log}
}

// lastWords returns the end of what the child has logged.
func (c *child) lastWords() string {
	const most, lines = 4 << 10, 5
	f, err := os.Open(c.log)
	if err != nil {
		return ""
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	from := c.from
	if from > info.Size() { // it was cut
		from = 0
	}
	from = max(from, info.Size()-most)
	text := make([]byte, info.Size()-from)
	n, _ := f.ReadAt(text, from) // what can be read counts
	all := strings.Split(strings.TrimSpace(string(text[:n])), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// openLog opens the log and returns its length.
func openLog(path string) (*os.File, int64, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, 0, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil {
		err = f.Chmod(0o600) // it may have been there
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// kept are the variables of the caller that a daemon gets. It serves later
// callers too, which have others.
var kept = []string{"HOME", "PATH", "USER", "LOGNAME", "LANG", "TMPDIR", "TZ"}

func environment(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return !slices.Contains(kept, name) && !strings.HasPrefix(name, "LC_") && !strings.HasPrefix(name, "XDG_")
	})
}

// Stop asks the daemon to end, and waits until it has. A daemon with sessions
// or requests refuses unless force is set. One that does not answer is an error;
// with force it is killed, and so is one that does not end, and hello has its PID
// alone. Where there is none the error wraps [fs.ErrNotExist] or
// [syscall.ECONNREFUSED]. A daemon that has taken its place is left alone.
func Stop(ctx context.Context, path string, force bool) (hello api.Hello, err error) {
	c := At(path, "")
	defer c.Release()
	pid := socket.Daemon(path)
	err = c.askWithin(ctx, answerTime, http.MethodPost, api.RouteStop, api.Stop{Force: force}, &hello)
	if err == nil {
		pid = hello.PID
	}
	switch {
	case errors.Is(err, ErrLost) && !errors.Is(err, errForeign):
		hello, err = stuck(path, pid, force, err)
	case force && (err == nil || socket.Absent(err)): // what it waits for is shorter
		bound, cancel := context.WithTimeout(ctx, answerTime)
		defer cancel()
		if held := socket.Gone(bound, path, pid); errors.Is(held, socket.ErrHeld) && ctx.Err() == nil {
			hello, err = stuck(path, pid, force, held)
		}
	}
	if err != nil && !socket.Absent(err) {
		return hello, err
	}
	if gone := socket.Gone(ctx, path, pid); gone != nil { // one that has no socket may be ending
		return hello, gone
	}
	return hello, err
}

// stuck kills a daemon that does not answer, or says how to.
func stuck(path string, pid int, force bool, cause error) (hello api.Hello, err error) {
	switch {
	case pid == 0 || socket.Daemon(path) != pid: // nobody knows which, or it is gone
		return hello, cause
	case !force:
		return hello, &transport.Error{
			Code: "daemon.unreachable", Message: fmt.Sprintf("daemon: process %d, the daemon at %s, does not answer", pid, path), Err: cause,
			Hint: "it may be stopped or stuck: see its log, or kill it: gateway serve --stop --force",
		}
	}
	hello.PID = pid
	if err = syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return hello, fmt.Errorf("daemon: kill process %d: %w", pid, err)
	}
	return hello, nil
}
