package socket_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"gateway/internal/socket"
	"gateway/internal/sshdtest"
	"gateway/transport"
)

// The tests start themselves as another process, which does one of these.
var roles = map[string]func(path string) error{
	"listen": func(path string) error { // until it is killed
		l, err := socket.Listen(context.Background(), path, "")
		if err != nil {
			return err
		}
		fmt.Println("up")
		_, err = l.Accept()
		return err
	},
	"dial": func(path string) error {
		_, err := socket.Dial(context.Background(), path)
		return err
	},
	"connect": func(path string) error { // without looking, as a stranger would
		conn, err := net.Dial("unix", path)
		if err != nil {
			return err
		}
		_, err = io.WriteString(conn, "let me in")
		if err == nil {
			_, err = conn.Read(make([]byte, 1))
		}
		return err
	},
	"read": func(path string) error {
		_, err := os.ReadDir(filepath.Dir(path))
		return err
	},
	"lock": func(path string) error {
		_, err := os.Open(path + ".lock")
		return err
	},
}

func TestMain(m *testing.M) {
	if role := roles[os.Getenv("SOCKET_TEST_ROLE")]; role != nil {
		if err := role(os.Args[1]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// as returns a process with a role, of a user that is not us if uid is not 0.
func as(t *testing.T, uid int, role, path string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(program(t), path)
	if uid != 0 {
		if os.Geteuid() != 0 {
			sshdtest.Skip(t, "only root can be somebody else")
		}
		cmd.Path = forAll(t)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	}
	cmd.Env = []string{"SOCKET_TEST_ROLE=" + role, "GORACE=atexit_sleep_ms=0"}
	return cmd
}

// forAll returns a copy of the tests that another user can start.
func forAll(t *testing.T) string {
	t.Helper()
	theirs := filepath.Join(openDir(t), "tests")
	data, err := os.ReadFile(program(t))
	must(t, err)
	must(t, os.WriteFile(theirs, data, 0o755))
	return theirs
}

func program(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	must(t, err)
	return path
}

// openDir returns a directory that everybody can enter, and with a short path.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "gwsock")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func place(t *testing.T) string { return filepath.Join(openDir(t), "gateway", "gateway.sock") }

func listen(t *testing.T, path string) *socket.Listener {
	t.Helper()
	l, err := socket.Listen(t.Context(), path, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Release)
	return l
}

// dialled dials, and returns the error alone.
func dialled(path string) error {
	conn, err := socket.Dial(context.Background(), path)
	if err == nil {
		conn.Close()
	}
	return err
}

// wantFailure checks that an error is of the contract and says something.
func wantFailure(t *testing.T, err error, text string) {
	t.Helper()
	var e *transport.Error
	if !errors.As(err, &e) || e.Code != "daemon.unreachable" || e.Hint == "" || !strings.Contains(e.Message, text) {
		t.Errorf("got %v (%#v), want daemon.unreachable with a hint and %q", err, err, text)
	}
}

func TestPath(t *testing.T) {
	mine := openDir(t)
	tmp := fmt.Sprintf("/tmp/gateway-%d/gateway.sock", os.Geteuid())
	tests := []struct {
		name, named, runtime, tmp, want string
	}{
		{name: "runtime directory", runtime: mine, tmp: "/var/tmp", want: mine + "/gateway/gateway.sock"},
		{name: "temporary directory", tmp: "/var/tmp", want: strings.Replace(tmp, "/tmp", "/var/tmp", 1)},
		{name: "neither", want: tmp},
		{name: "relative", runtime: "run", tmp: "tmp", want: tmp},
		{name: "no such directory", runtime: mine + "/none", want: tmp},
		{name: "named", named: "/srv/x.sock", runtime: mine, want: "/srv/x.sock"},
	}
	if os.Geteuid() == 0 {
		theirs := t.TempDir()
		must(t, os.Chown(theirs, 65534, 65534))
		tests = append(tests, struct{ name, named, runtime, tmp, want string }{name: "somebody else's", runtime: theirs, want: tmp})
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			environ := map[string]string{"XDG_RUNTIME_DIR": test.runtime, "TMPDIR": test.tmp}
			got, err := socket.Path(test.named, func(name string) string { return environ[name] })
			if got != test.want || err != nil {
				t.Errorf("Path = %q, %v, want %q", got, err, test.want)
			}
		})
	}
}

func TestPathTooLong(t *testing.T) {
	long := "/tmp/" + strings.Repeat("x", 120) + "/gateway.sock"
	_, err := socket.Path(long, os.Getenv)
	wantFailure(t, err, "138 bytes")
	_, err = socket.Listen(t.Context(), long, "")
	wantFailure(t, err, "138 bytes")
	wantFailure(t, dialled(long), "138 bytes")

	// The longest one works.
	dir := openDir(t)
	path := dir + "/" + strings.Repeat("x", len(syscall.RawSockaddrUnix{}.Path)-1-len(dir)-len("//s")) + "/s"
	listen(t, path)
	if err := dialled(path); err != nil {
		t.Error(err)
	}
}

func TestOnlyOurs(t *testing.T) {
	path := place(t)
	listen(t, path)
	for file, want := range map[string]os.FileMode{
		filepath.Dir(path): os.ModeDir | 0o700, path: os.ModeSocket | 0o600, path + ".lock": 0o600,
	} {
		info, err := os.Lstat(file)
		if err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v, want %v", file, info.Mode(), err, want)
		}
	}
	for _, role := range []string{"connect", "read", "lock", "dial"} {
		out, err := as(t, 65534, role, path).CombinedOutput()
		if err == nil || !bytes.Contains(out, []byte("permission denied")) && !bytes.Contains(out, []byte("belongs to user")) {
			t.Errorf("%s as another user: %v, %s", role, err, out)
		}
	}
}

// Where the directory no longer keeps another user out, the uid does.
func TestPeerOfAnotherUser(t *testing.T) {
	path := place(t)
	l := listen(t, path)
	for file, mode := range map[string]os.FileMode{filepath.Dir(path): 0o755, path: 0o666} {
		must(t, os.Chmod(file, mode))
	}
	accepted := make(chan net.Conn, 1)
	go func() { // ends with the first connection of ours
		if conn, err := l.Accept(); err == nil {
			accepted <- conn
		}
	}()
	out, err := as(t, 65534, "connect", path).CombinedOutput()
	if err == nil || !bytes.Contains(out, []byte("EOF")) && !bytes.Contains(out, []byte("reset")) && !bytes.Contains(out, []byte("broken pipe")) {
		t.Errorf("another user connects: %v, %s", err, out)
	}
	select {
	case <-accepted:
		t.Error("a connection of another user was accepted")
	default:
	}
	ours, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	ours.Close()
	(<-accepted).Close()
}

// Root does not talk to a daemon of somebody else, and the other way round.
func TestDialAnotherUsersDaemon(t *testing.T) {
	if os.Geteuid() != 0 {
		sshdtest.Skip(t, "only root can be somebody else")
	}
	path := place(t)
	l := listen(t, path)
	must(t, os.Chown(filepath.Dir(path), 65534, 65534))
	wantFailure(t, dialled(path), "belongs to user 65534")
	must(t, os.Chown(filepath.Dir(path), 0, 0))
	must(t, os.Chown(path, 65534, 65534))
	wantFailure(t, dialled(path), "belongs to user 65534")
	l.Release()

	// A listener of another user behind a socket that was made ours.
	must(t, os.Chown(filepath.Dir(path), 65534, 65534))
	os.Remove(path + ".lock")
	cmd := as(t, 65534, "listen", path)
	up, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	must(t, cmd.Start())
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	if _, err := io.ReadFull(up, make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{filepath.Dir(path), path} {
		must(t, os.Chown(file, 0, 0))
	}
	wantFailure(t, dialled(path), "who listens is user 65534")
}

func TestUnsafePlaces(t *testing.T) {
	tests := []struct {
		name    string
		prepare func(t *testing.T, dir string) // dir is where the socket's directory is to be
		want    string
	}{
		{"a symbolic link", func(t *testing.T, dir string) {
			must(t, os.Mkdir(dir+"-real", 0o700))
			must(t, os.Symlink(dir+"-real", dir))
		}, "is a symbolic link"},
		{"open to the group", func(t *testing.T, dir string) {
			must(t, os.Mkdir(dir, 0o700))
			must(t, os.Chmod(dir, 0o710))
		}, "open to others (mode 0710)"},
		{"somebody else's", func(t *testing.T, dir string) {
			must(t, os.Mkdir(dir, 0o700))
			chown(t, dir)
		}, "belongs to user 65534"},
		{"a file", func(t *testing.T, dir string) { must(t, os.WriteFile(dir, nil, 0o600)) }, "not a directory"},
		{"below what all can write to", func(t *testing.T, dir string) {
			must(t, os.Chmod(filepath.Dir(dir), 0o777))
		}, "can be written to by others (mode 0777)"},
		{"below somebody else's", func(t *testing.T, dir string) { chown(t, filepath.Dir(dir)) }, "above the socket, belongs to user 65534"},
		{"below somebody else's link", func(t *testing.T, dir string) {
			above := filepath.Dir(dir)
			must(t, os.Rename(above, above+"-real"))
			t.Cleanup(func() { os.RemoveAll(above + "-real") })
			must(t, os.Symlink(above+"-real", above))
			if os.Geteuid() != 0 {
				sshdtest.Skip(t, "only root can give a link away")
			}
			must(t, os.Lchown(above, 65534, 65534))
		}, "is a symbolic link of user 65534"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path := place(t)
			test.prepare(t, filepath.Dir(path))
			_, err := socket.Listen(t.Context(), path, "")
			wantFailure(t, err, test.want)
			if err := dialled(path); err == nil || socket.Absent(err) {
				t.Errorf("Dial = %v, which invites to start a daemon", err)
			}
		})
	}
}

// A link of our own, or of root (/tmp on macOS), and a sticky directory are fine.
func TestSafePlaces(t *testing.T) {
	above := openDir(t)
	must(t, os.Mkdir(above+"/real", 0o755))
	must(t, os.Symlink("../"+filepath.Base(above)+"/real", above+"/link"))
	must(t, os.Mkdir(above+"/sticky", 0o777))
	must(t, os.Chmod(above+"/sticky", 0o777|os.ModeSticky))
	for _, dir := range []string{"link/gateway", "sticky/gateway", "real/one/two/three"} {
		path := filepath.Join(above, dir, "s")
		listen(t, path)
		if err := dialled(path); err != nil {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

func TestOneDaemon(t *testing.T) {
	path := place(t)
	l := listen(t, path)
	_, err := socket.Listen(t.Context(), path, "")
	wantFailure(t, err, fmt.Sprintf("process %d is the daemon", os.Getpid()))
	if !errors.Is(err, socket.ErrRunning) {
		t.Errorf("%v is not ErrRunning", err)
	}

	// One that is ending has no socket, and the next one waits for it.
	l.Close()
	if err := dialled(path); !socket.Absent(err) {
		t.Errorf("Dial = %v, want an error that says that no daemon is there", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = socket.Listen(ctx, path, "")
	wantFailure(t, err, "and does not listen")
	if err := socket.Gone(ctx, path, os.Getpid()); !errors.Is(err, socket.ErrHeld) {
		t.Errorf("Gone while the daemon is ending: %v", err)
	}
	if err := socket.Gone(ctx, path, os.Getppid()); err != nil {
		t.Errorf("Gone, where another process is the daemon: %v", err)
	}
	time.AfterFunc(20*time.Millisecond, l.Release)
	listen(t, path)
	if err := dialled(path); err != nil {
		t.Error(err)
	}
}

// A logout removes the directory of the socket, and a tidy neighbour the socket: the
// daemon listens again once there is a place for it, and keeps others out as before.
func TestSocketIsMadeAgain(t *testing.T) {
	path := place(t)
	dir := filepath.Dir(path)
	l := listen(t, path)
	served := make(chan error, 1)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				served <- err
				return
			}
			conn.Close()
		}
	}()
	for _, remove := range []func() error{
		func() error { return os.Remove(path) },
		func() error { return os.RemoveAll(dir) },
	} {
		must(t, remove())
		waitFor(t, "nobody listens again", func() bool { return dialled(path) == nil })
		_, err := socket.Listen(t.Context(), path, "")
		wantFailure(t, err, fmt.Sprintf("process %d is the daemon", os.Getpid()))
	}

	l.Release()
	if err := <-served; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept behind Release: %v", err)
	}
}

// A daemon that has lost its place has the records of sessions still. Who wants to be
// the next one leaves it the time to come back.
func TestRecordsOfTheDaemonBefore(t *testing.T) {
	path := place(t)
	records := filepath.Join(openDir(t), "records")
	first, err := socket.Listen(t.Context(), path, records)
	must(t, err)
	defer first.Release()
	for _, name := range []string{path + ".lock", filepath.Dir(path)} {
		must(t, os.RemoveAll(name))
		_, err = socket.Listen(t.Context(), path, records)
		wantFailure(t, err, fmt.Sprintf("process %d is the daemon", os.Getpid()))
		must(t, dialled(path))
	}

	// But not for ever: it may listen elsewhere.
	if _, err = socket.Listen(t.Context(), place(t), records); !errors.Is(err, socket.ErrHeld) {
		t.Errorf("%v is not ErrHeld", err)
	}
}

func waitFor(t *testing.T, otherwise string, ready func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !ready(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(otherwise)
		}
	}
}

// What a killed daemon leaves is no daemon, and is in nobody's way.
func TestStaleSocket(t *testing.T) {
	path := place(t)
	cmd := as(t, 0, "listen", path)
	up, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	if _, err := io.ReadFull(up, make([]byte, 3)); err != nil {
		t.Error(err)
	}
	_, err = socket.Listen(t.Context(), path, "")
	wantFailure(t, err, fmt.Sprintf("process %d is the daemon", cmd.Process.Pid))
	cmd.Process.Kill()
	cmd.Wait()

	if info, err := os.Lstat(path); err != nil || info.Mode().Type() != os.ModeSocket {
		t.Fatalf("no stale socket: %v", err)
	}
	err = dialled(path)
	wantFailure(t, err, "no daemon listens")
	if !socket.Absent(err) {
		t.Error("a stale socket is not taken for no daemon")
	}
	l := listen(t, path)
	must(t, dialled(path))
	l.Release()
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("the socket is still there after the end: %v", err)
	}
	must(t, socket.Gone(t.Context(), path, cmd.Process.Pid))
}

func TestNotASocket(t *testing.T) {
	path := place(t)
	must(t, os.Mkdir(filepath.Dir(path), 0o700))
	must(t, os.WriteFile(path, []byte("mine"), 0o600))
	_, err := socket.Listen(t.Context(), path, "")
	wantFailure(t, err, "no socket")
	err = dialled(path)
	wantFailure(t, err, "no socket")
	if text, err := os.ReadFile(path); string(text) != "mine" {
		t.Errorf("the file was touched: %q, %v", text, err)
	}
}

// Somebody who cleans up removes the lock file: the next one to lock must not
// hold a file that has no name any more.
func TestLockFileRemoved(t *testing.T) {
	dir := openDir(t)
	path := filepath.Join(dir, "lock")
	first, err := socket.Take(t.Context(), path)
	must(t, err)
	must(t, os.Remove(path))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	second, err := socket.Take(ctx, path)
	must(t, err)
	first.Release()
	if third, err := socket.Take(ctx, path); err == nil {
		third.Release()
		t.Error("two hold the lock")
	}
	second.Release()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// chown gives a file to another user.
func chown(t *testing.T, file string) {
	t.Helper()
	if os.Geteuid() != 0 {
		sshdtest.Skip(t, "only root can give a file away")
	}
	must(t, os.Chown(file, 65534, 65534))
}
