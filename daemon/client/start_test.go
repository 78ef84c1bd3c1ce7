package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gateway/daemon"
	"gateway/daemon/api"
	"gateway/daemon/client"
	"gateway/gateway"
	"gateway/internal/socket"
	"gateway/internal/sshdtest"
)

// The tests start themselves as other processes, with a role and a directory.
var roles = map[string]func(dir string) error{
	"daemon": func(dir string) error { return serve(dir, 0) },
	"slow":   func(dir string) error { return serve(dir, 700*time.Millisecond) },
	"broken": func(string) error {
		for i := range 8 {
			fmt.Fprintln(os.Stderr, "line", i)
		}
		return errors.New("no good")
	},
	"hang": func(string) error { select {} },
	"starter": func(dir string) error {
		hello, err := client.Start(context.Background(), options(dir, "daemon"))
		fmt.Println(hello.PID)
		return err
	},
}

// serve is a daemon that takes a while to end, and has nothing to serve.
func serve(dir string, drain time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Second)
	defer cancel()
	l, err := socket.Listen(ctx, socketIn(dir), "")
	if err != nil {
		return err
	}
	defer l.Release()
	return daemon.Serve(context.Background(), l, http.NotFoundHandler(), daemon.Life{
		Version: "test", Idle: time.Minute, // should the tests be killed
		Sessions: func() int { return 0 }, Drain: func(context.Context) { <-time.After(drain) },
	})
}

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && roles[os.Args[1]] != nil {
		if err := roles[os.Args[1]](os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(3)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func socketIn(dir string) string { return filepath.Join(dir, "run", "gateway.sock") }

// mark is in the environment of all processes of a test.
const mark = "CLIENT_TEST_DIR"

func options(dir, role string) client.StartOptions {
	program, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return client.StartOptions{
		Path: socketIn(dir), Executable: program, Args: []string{role, dir},
		Env: []string{mark + "=" + dir, "GORACE=atexit_sleep_ms=0"}, Log: filepath.Join(dir, "state", "daemon.log"),
	}
}

// newDir returns a directory with a short path. Nothing that was started for
// it outlives the test.
func newDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "gwstart")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, pid := range marked(dir) {
			syscall.Kill(pid, syscall.SIGKILL)
		}
		until(t, "its processes are gone", func() bool { return len(marked(dir)) == 0 })
		os.RemoveAll(dir)
	})
	return dir
}

// marked lists the processes of a test.
func marked(dir string) (pids []int) {
	for _, proc := range sshdtest.WithEnv(mark + "=" + dir) {
		pid, _ := strconv.Atoi(filepath.Base(proc))
		pids = append(pids, pid)
	}
	return pids
}

func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	if !sshdtest.Eventually(t, 10*time.Second, what, holds) {
		t.FailNow()
	}
}

func start(t *testing.T, dir, role string) api.Hello {
	t.Helper()
	hello, err := client.Start(t.Context(), options(dir, role))
	if err != nil {
		t.Fatal(err)
	}
	return hello
}

// starter returns a process that starts a daemon.
func starter(dir string) *exec.Cmd {
	o := options(dir, "starter")
	cmd := exec.Command(o.Executable, o.Args...)
	cmd.Env = append(os.Environ(), o.Env...)
	return cmd
}

func TestManyStarters(t *testing.T) {
	dir := newDir(t)
	var all sync.WaitGroup
	answers := make([]string, 30)
	for i := range answers {
		all.Go(func() {
			out, err := starter(dir).CombinedOutput()
			if err != nil {
				t.Errorf("%v: %s", err, out)
			}
			answers[i] = string(out)
		})
	}
	all.Wait()
	pids := marked(dir)
	if len(pids) != 1 {
		t.Fatalf("processes %v, want one daemon", pids)
	}
	for _, answer := range answers {
		if want := fmt.Sprintln(pids[0]); answer != want {
			t.Errorf("a caller got %q, want %q", answer, want)
		}
	}
}

// The daemon has nothing of its caller: what a shell left open for the caller
// would never end for whoever reads it.
func TestNothingInherited(t *testing.T) {
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		sshdtest.Skip(t, "no /proc to look into")
	}
	dir := newDir(t)
	cmd := starter(dir)
	var theirs []string
	for i := range 7 { // 3 to 9; os/exec passes them without close-on-exec
		file, err := os.Create(filepath.Join(dir, "held"+strconv.Itoa(i)))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		cmd.ExtraFiles = append(cmd.ExtraFiles, file)
		theirs = append(theirs, file.Name())
	}
	cmd.Dir = dir
	cmd.Env = append(cmd.Env, "SECRET=1", "SSH_AUTH_SOCK=/nowhere", "LC_ALL=C.UTF-8", "XDG_DATA_HOME=/data", "TZ=UTC", "BASH_ENV=/x")
	out, err := cmd.Output() // returns when nobody holds the pipe
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatal(err)
	}
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	entries, err := os.ReadDir(filepath.Join(proc, "fd"))
	if err != nil {
		t.Fatal(err)
	}
	held := map[string]string{}
	for _, entry := range entries {
		held[entry.Name()], _ = os.Readlink(filepath.Join(proc, "fd", entry.Name()))
	}
	log := filepath.Join(dir, "state", "daemon.log")
	if held["0"] != os.DevNull || held["1"] != os.DevNull || held["2"] != log {
		t.Errorf("the daemon has the streams %q, %q and %q", held["0"], held["1"], held["2"])
	}
	for fd, target := range held {
		if slices.Contains(theirs, target) || strings.HasPrefix(target, "pipe:") || strings.HasSuffix(target, ".start") {
			t.Errorf("the daemon holds %s as %s", target, fd)
		}
	}
	if cwd, _ := os.Readlink(filepath.Join(proc, "cwd")); cwd != "/" {
		t.Errorf("the daemon is in %s", cwd)
	}
	if sid, err := syscall.Getpgid(pid); err != nil || sid != pid {
		t.Errorf("the daemon is in the process group %d, %v", sid, err)
	}
	environ, err := os.ReadFile(filepath.Join(proc, "environ"))
	if err != nil {
		t.Fatal(err)
	}
	for entry := range strings.SplitSeq(strings.Trim(string(environ), "\x00"), "\x00") {
		name, _, _ := strings.Cut(entry, "=")
		if !slices.Contains([]string{"HOME", "PATH", "USER", "LOGNAME", "LANG", "TMPDIR", "TZ", mark, "GORACE"}, name) &&
			!strings.HasPrefix(name, "XDG_") && !strings.HasPrefix(name, "LC_") {
			t.Errorf("the daemon has %s in its environment", entry)
		}
	}
	for _, want := range []string{"LC_ALL=C.UTF-8", "XDG_DATA_HOME=/data", "TZ=UTC"} {
		if !bytes.Contains(environ, []byte(want)) {
			t.Errorf("the daemon lacks %s", want)
		}
	}
	if info, err := os.Stat(log); err != nil || info.Mode() != 0o600 {
		t.Errorf("the log: %v, %v", info.Mode(), err)
	}
}

func TestStartAfterKill(t *testing.T) {
	dir := newDir(t)
	first := start(t, dir, "daemon")
	if second := start(t, dir, "daemon"); second.PID != first.PID {
		t.Errorf("a second daemon, %d beside %d", second.PID, first.PID)
	}
	for range 3 {
		if err := syscall.Kill(first.PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		// At once: the dead one may still hold what the next one needs.
		next := start(t, dir, "daemon")
		if next.PID == first.PID {
			t.Fatalf("the killed daemon %d answers", first.PID)
		}
		first = next
	}
	if hello, err := client.Stop(t.Context(), socketIn(dir), false); err != nil || hello.PID != first.PID {
		t.Errorf("Stop = %+v, %v", hello, err)
	}
	if _, err := os.Lstat(socketIn(dir)); !os.IsNotExist(err) {
		t.Errorf("the socket is still there: %v", err)
	}
	if _, err := client.Stop(t.Context(), socketIn(dir), false); !socket.Absent(err) {
		t.Errorf("Stop without a daemon = %v", err)
	}
}

// The next daemon waits for one that is ending. Stop does too, and neither waits for
// the next one nor harms it.
func TestStartWhileEnding(t *testing.T) {
	for name, force := range map[string]bool{"asked": false, "forced": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it waits
			dir := newDir(t)
			first := start(t, dir, "slow")
			ctx, cancel := context.WithTimeout(t.Context(), 14*time.Second)
			defer cancel()
			stopped := make(chan error, 1)
			go func() {
				hello, err := client.Stop(ctx, socketIn(dir), force)
				if err == nil && hello.PID != first.PID {
					err = fmt.Errorf("it has stopped %d", hello.PID)
				}
				stopped <- err
			}()
			until(t, "the socket is gone", func() bool { _, err := os.Lstat(socketIn(dir)); return err != nil })
			second := start(t, dir, "daemon")
			if second.PID == first.PID {
				t.Error("it was answered by the one that is ending")
			}
			if err := <-stopped; err != nil {
				t.Errorf("Stop = %v, want that %d has ended", err, first.PID)
			}
			if pids := marked(dir); !slices.Equal(pids, []int{second.PID}) {
				t.Errorf("processes %v, want %d", pids, second.PID)
			}
			if _, err := client.Stop(t.Context(), socketIn(dir), false); err != nil {
				t.Error(err)
			}
		})
	}
}

// A daemon that hangs is named in time, and ended by force, also where it hangs at
// its end.
func TestStopOneThatHangs(t *testing.T) {
	for _, test := range []struct {
		name          string
		ending, force bool
	}{{"asked", false, false}, {"forced", false, true}, {"forced at its end", true, true}} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel() // it waits
			dir := newDir(t)
			pid := start(t, dir, "slow").PID
			if test.ending {
				asked, cancel := context.WithCancel(t.Context())
				defer cancel()
				go client.Stop(asked, socketIn(dir), false) // ends with asked
				until(t, "the socket is gone", func() bool { _, err := os.Lstat(socketIn(dir)); return err != nil })
			}
			freeze(t, pid)
			ctx, cancel := context.WithTimeout(t.Context(), 14*time.Second)
			defer cancel()
			hello, err := client.Stop(ctx, socketIn(dir), test.force)
			switch {
			case ctx.Err() != nil:
				t.Errorf("it took longer than anybody waits: %v", err)
			case test.force && (err != nil || hello.PID != pid || len(marked(dir)) > 0):
				t.Errorf("Stop = %+v, %v, and %v are left, want %d ended", hello, err, marked(dir), pid)
			case !test.force && (gateway.Code(err) != "daemon.unreachable" || !strings.Contains(err.Error(), fmt.Sprintf("process %d", pid)) || !strings.Contains(gateway.Hint(err), "--force")):
				t.Errorf("Stop = %v, %q, want that %d does not answer", err, gateway.Hint(err), pid)
			}
		})
	}
}

// Of a daemon that is stopped everybody is told the same, however many ask.
func TestStartAtStoppedDaemon(t *testing.T) {
	dir := newDir(t)
	pid := start(t, dir, "daemon").PID
	freeze(t, pid)
	defer syscall.Kill(pid, syscall.SIGKILL)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	var starts sync.WaitGroup
	for range 3 {
		starts.Go(func() {
			_, err := client.Start(ctx, options(dir, "daemon"))
			if gateway.Code(err) != "daemon.unreachable" || !strings.Contains(err.Error(), "does not answer") || !strings.Contains(gateway.Hint(err), "--force") {
				t.Errorf("Start = %v, %q, want that it does not answer", err, gateway.Hint(err))
			}
		})
	}
	starts.Wait()
}

// freeze stops a process, all of it.
func freeze(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	until(t, "it is stopped", func() bool {
		files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		return !slices.ContainsFunc(files, func(file string) bool {
			text, _ := os.ReadFile(file)
			_, state, _ := strings.Cut(string(text), ") ")
			return !strings.HasPrefix(state, "T")
		})
	})
}

func TestStartFails(t *testing.T) {
	t.Run("ends at once", func(t *testing.T) {
		dir := newDir(t)
		_, err := client.Start(t.Context(), options(dir, "broken"))
		want := "ended at once (exit status 3):\nline 4\nline 5\nline 6\nline 7\nno good"
		if gateway.Code(err) != "daemon.unreachable" || !strings.HasSuffix(err.Error(), want) || !strings.Contains(gateway.Hint(err), "daemon.log") {
			t.Errorf("Start = %v, want %q", err, want)
		}
	})
	t.Run("never listens", func(t *testing.T) {
		dir := newDir(t)
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		_, err := client.Start(ctx, options(dir, "hang"))
		if gateway.Code(err) != "daemon.unreachable" || !strings.Contains(err.Error(), "was started and does not answer") {
			t.Errorf("Start = %v", err)
		}
	})
	t.Run("no program", func(t *testing.T) {
		o := options(newDir(t), "")
		o.Executable = "/nowhere/gateway"
		_, err := client.Start(t.Context(), o)
		if gateway.Code(err) != "daemon.unreachable" || !errors.Is(err, os.ErrNotExist) {
			t.Errorf("Start = %v", err)
		}
	})
	t.Run("log is a link", func(t *testing.T) {
		dir := newDir(t)
		o := options(dir, "daemon")
		o.Log = filepath.Join(dir, "log")
		if err := os.Symlink(filepath.Join(dir, "elsewhere"), o.Log); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Start(t.Context(), o); gateway.Code(err) != "daemon.unreachable" || len(marked(dir)) > 0 {
			t.Errorf("Start = %v, processes %v", err, marked(dir))
		}
	})
	t.Run("unsafe directory", func(t *testing.T) {
		dir := newDir(t)
		if err := os.Mkdir(filepath.Join(dir, "run"), 0o755); err != nil {
			t.Fatal(err)
		}
		_, err := client.Start(t.Context(), options(dir, "daemon"))
		if gateway.Code(err) != "daemon.unreachable" || !strings.Contains(err.Error(), "open to others") || len(marked(dir)) > 0 {
			t.Errorf("Start = %v, processes %v", err, marked(dir))
		}
	})
	t.Run("caller goes", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		if _, err := client.Start(ctx, options(newDir(t), "hang")); !errors.Is(err, context.Canceled) {
			t.Errorf("Start = %v", err)
		}
	})
}

// Where something listens, nothing is started beside it.
func TestStartBesideAnother(t *testing.T) {
	listen := func(t *testing.T) (string, net.Listener) {
		dir := newDir(t)
		l, err := socket.Listen(t.Context(), socketIn(dir), "")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(l.Release)
		return dir, l
	}
	t.Run("silent", func(t *testing.T) {
		dir, _ := listen(t)
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		_, err := client.Start(ctx, options(dir, "daemon"))
		if gateway.Code(err) != "daemon.unreachable" || !strings.Contains(err.Error(), "does not answer") || !strings.Contains(gateway.Hint(err), "--stop --force") || len(marked(dir)) > 0 {
			t.Errorf("Start = %v, %q, processes %v", err, gateway.Hint(err), marked(dir))
		}
	})
	t.Run("ending", func(t *testing.T) {
		dir, l := listen(t)
		l.Close() // its place it keeps
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		_, err := client.Start(ctx, options(dir, "daemon"))
		want := fmt.Sprintf("daemon: process %d holds the place of the daemon at %s, and does not listen", os.Getpid(), socketIn(dir))
		if gateway.Code(err) != "daemon.unreachable" || err.Error() != want || !strings.Contains(gateway.Hint(err), "try again") || len(marked(dir)) > 0 {
			t.Errorf("Start = %v, %q, processes %v, want %s", err, gateway.Hint(err), marked(dir), want)
		}
	})
	for name, answer := range map[string]http.HandlerFunc{
		"another program":  func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") },
		"one that refuses": http.NotFound,
	} {
		t.Run(name, func(t *testing.T) {
			dir, l := listen(t)
			server := &http.Server{Handler: answer}
			go server.Serve(l)
			defer server.Close()
			c := client.At(socketIn(dir), "")
			defer c.Release()
			_, started := client.Start(t.Context(), options(dir, "daemon"))
			_, asked := c.Sessions(t.Context(), false)
			for _, err := range []error{started, asked} {
				want := socketIn(dir) + " is no gateway daemon"
				if gateway.Code(err) != "daemon.unreachable" || !strings.Contains(err.Error(), want) || !strings.Contains(gateway.Hint(err), "GATEWAY_SOCKET") {
					t.Errorf("%v, want ... %s", err, want)
				}
			}
			if len(marked(dir)) > 0 {
				t.Errorf("processes %v", marked(dir))
			}
		})
	}
	t.Run("of another version", func(t *testing.T) {
		dir, l := listen(t)
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusUpgradeRequired)
			fmt.Fprint(w, `{"error":{"code":"daemon.version","message":"daemon: it speaks protocol 999","hint":"gateway serve --stop"}}`)
		})}
		go server.Serve(l)
		defer server.Close()
		_, err := client.Start(t.Context(), options(dir, "daemon"))
		if gateway.Code(err) != "daemon.version" || gateway.Hint(err) == "" || len(marked(dir)) > 0 {
			t.Errorf("Start = %v, processes %v", err, marked(dir))
		}
	})
}
