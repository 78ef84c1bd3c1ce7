package sshdtest

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// startLimit bounds the wait for a server's first words. It is generous: a
// loaded machine must not fail a test.
const startLimit = 30 * time.Second

// launch starts the command that argv builds for a free port, waits until it
// has logged ready, and has the test's end kill it. A port that someone else
// took between the choice and the start is replaced by another one.
func (s *Server) launch(t testing.TB, opts *Options, ready string, argv func(port int) []string) {
	t.Helper()
	wrap := slices.Clone(opts.Wrap)
	if opts.Account != nil {
		wrap = append(wrap, s.namespace(t, opts.Account)...)
	}
	for try := 0; ; try++ {
		port := freePort(t)
		args := append(append([]string(nil), wrap...), argv(port)...)
		s.log.reset(ready)
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Stderr = s.log
		cmd.Env = inherited()
		// A process that outlives the server may hold its stderr: don't wait for it for ever.
		cmd.WaitDelay = 5 * time.Second
		cmd.SysProcAttr = dieWithUs()
		started, exited := make(chan error, 1), make(chan struct{})
		go func() { // ends with the server, which the test's end kills
			defer close(exited)
			// The parent that PR_SET_PDEATHSIG means is a thread: keep it until the end.
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			err := cmd.Start()
			started <- err
			if err == nil {
				cmd.Wait()
			}
		}()
		if err := <-started; err != nil {
			t.Fatal(err)
		}
		select {
		case <-s.log.ready:
			s.Pid = cmd.Process.Pid
			s.setPort(t, port)
			t.Cleanup(func() {
				killTree(s.Pid, port)
				<-exited
				if t.Failed() {
					t.Logf("log of %s at %s:\n%s", args[len(wrap)], s.Addr, lastLines(s.Log(), 30))
				}
			})
			return
		case <-exited:
			if try < 10 && strings.Contains(s.Log(), "already in use") {
				continue
			}
		case <-time.After(startLimit):
			cmd.Process.Kill()
			<-exited
		}
		t.Fatalf("%s did not start:\n%s", args[len(wrap)], s.Log())
	}
}

// freePort returns a port that was free a moment ago.
func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// ProcFiles returns the path of a file in /proc of each process, where there is
// a /proc. The process may have ended, and the file not be there.
//
// To find a name behind a pattern, [filepath.Glob] reads the whole directory,
// which takes the kernel seven times as long.
func ProcFiles(name string) []string {
	files := procDirs()
	for i, dir := range files {
		files[i] = filepath.Join(dir, name)
	}
	return files
}

func procDirs() []string {
	dirs, _ := filepath.Glob("/proc/[0-9]*") // the pattern is well-formed
	return dirs
}

// WithEnv returns the directories in /proc of the processes that have an entry in their
// environment, where there is a /proc.
//
// Tests ask for it all the time, of some hundred processes each time: [os.ReadFile] would
// make this half of what they cost.
func WithEnv(entry string) (dirs []string) {
	first := []byte(entry + "\x00")
	later := append([]byte{0}, first...)
	for _, dir := range procDirs() {
		readProc(dir+"/environ", func(env []byte) {
			if bytes.HasPrefix(env, first) || bytes.Contains(env, later) {
				dirs = append(dirs, dir)
			}
		})
	}
	return dirs
}

// readProc gives what a file in /proc says to use, which may not keep it: nothing if the
// process has ended.
func readProc(file string, use func([]byte)) {
	procBuffer.Lock()
	defer procBuffer.Unlock()
	fd, err := syscall.Open(file, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer syscall.Close(fd)
	n := 0
	for n < len(procBuffer.bytes) {
		more, err := syscall.Read(fd, procBuffer.bytes[n:])
		if more <= 0 || err != nil {
			break
		}
		n += more
	}
	use(procBuffer.bytes[:n])
}

// procBuffer has room for an environment as large as Linux lets most be.
var procBuffer struct {
	sync.Mutex
	bytes [2 << 20]byte
}

// killTree kills the server with that pid and everything that it started:
// its descendants, and what has left them for init but was started by a
// session of this port. The server is stopped first, so that it starts nothing
// while the others are looked for; a child that forks meanwhile is found in
// the next round.
func killTree(pid, port int) {
	syscall.Kill(pid, syscall.SIGSTOP)
	// A process in the middle of an exec has no environment to be known by, so
	// one look that finds nothing is not enough.
	for range 20 {
		found := append(descendants(pid, port), settled(pid, port)...)
		for _, p := range found {
			syscall.Kill(p, syscall.SIGKILL)
		}
		if len(found) == 0 {
			break
		}
	}
	syscall.Kill(pid, syscall.SIGKILL)
}

// settled looks once more, after a moment.
func settled(pid, port int) []int {
	<-time.After(5 * time.Millisecond)
	return descendants(pid, port)
}

// below returns the pids below root in a table of pid to parent.
func below(root int, parent map[int]int) []int {
	var found []int
	for pid := range parent {
		// Bounded, as a table read in pieces may hold a circle.
		for up, depth := parent[pid], 0; up > 1 && depth < 100; up, depth = parent[up], depth+1 {
			if up == root {
				found = append(found, pid)
				break
			}
		}
	}
	return found
}

// maxLog bounds what is kept of a server's log: it is in the memory of the process
// whose growth some tests measure.
const maxLog = 1 << 19

// A logBuffer keeps the end of what a server logs, and tells when it says that it
// is ready.
type logBuffer struct {
	mu    sync.Mutex // guards buf and want
	buf   bytes.Buffer
	want  string
	ready chan struct{} // closed once want was logged; want is empty from then on
}

// reset forgets the log of an earlier start.
func (l *logBuffer) reset(want string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buf.Reset()
	l.want, l.ready = want, make(chan struct{})
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buf.Write(p)
	if l.want != "" && bytes.Contains(l.buf.Bytes(), []byte(l.want)) {
		l.want = ""
		close(l.ready)
	}
	if l.buf.Len() > 2*maxLog {
		l.buf.Next(l.buf.Len() - maxLog)
	}
	return len(p), nil
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// inherited is the environment without what would change a server's or a
// session's behaviour from one machine to the next.
func inherited() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}
}

// lastLines returns the end of a log, which is where a failure is.
func lastLines(log string, n int) string {
	lines := strings.Split(log, "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// ProcessorTime is what this process has had of the processors: what others on a busy
// machine have is no cost of what is measured.
func ProcessorTime(t testing.TB) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
