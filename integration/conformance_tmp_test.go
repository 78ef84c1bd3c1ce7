package integration

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"gateway/internal/sshdtest"
	"gateway/session"
	"gateway/transport"
	"gateway/transport/local"
)

// inside is this machine as a mount namespace of its own sees it.
type inside struct {
	*local.Transport
	pid int // of a process in it
}

func (m inside) enter(command string) string {
	return fmt.Sprintf("exec nsenter -t %d -m sh -c %s", m.pid, session.Quote(command))
}

func (m inside) Terminal(ctx context.Context, command string, options transport.TerminalOptions) (transport.Terminal, error) {
	return m.Transport.Terminal(ctx, m.enter(command), options)
}

func (m inside) Pipe(ctx context.Context, command string) (*transport.Pipe, error) {
	return m.Transport.Pipe(ctx, m.enter(command))
}

// count returns how many processes are in the namespace.
func (m inside) count() (n int) {
	ours, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", m.pid))
	if err != nil {
		return -1
	}
	for _, link := range sshdtest.ProcFiles("ns/mnt") {
		if theirs, err := os.Readlink(link); err == nil && theirs == ours {
			n++
		}
	}
	return n
}

// mounted returns a machine on which the mounts have been made. The rest is for
// their script: $0 and on.
func mounted(t *testing.T, mounts string, rest ...string) transport.Transport {
	t.Helper()
	cmd := exec.Command("unshare", append([]string{"-m", "--propagation", "private", "sh", "-c", mounts + " && echo up && exec cat"}, rest...)...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		sshdtest.Skip(t, "no mounts here: %v", err)
	}
	t.Cleanup(func() {
		stdin.Close()
		cmd.Wait()
	})
	if line, _ := bufio.NewReader(stdout).ReadString('\n'); line != "up\n" {
		sshdtest.Skip(t, "no mounts here: it takes root, and unshare")
	}
	tr := inside{local.New(local.Config{Env: []string{"HOME=/nonexistent", "XDG_RUNTIME_DIR=/nonexistent"}}), cmd.Process.Pid}
	t.Cleanup(func() { tr.Close() })
	return tr
}

const big = 20_000

// bigText is a command that needs a file.
var bigText = "v='" + strings.Repeat("x", big) + "'; echo ${#v}"

func repliesBig(t *testing.T, s *session.Session) {
	t.Helper()
	replies(t, s, bigText, fmt.Sprintln(big))
}

// repliesToStdin feeds a command, which then goes on with another text.
func repliesToStdin(t *testing.T, s *session.Session, text, stdout, stderr string) {
	t.Helper()
	r, err := s.Run(t.Context(), session.Command{Text: "cat; " + text + "; (exit 3)", Stdin: strings.NewReader("in\n")})
	if err != nil || r.ExitCode != 3 || string(r.Stdout) != "in\n"+stdout || string(r.Stderr) != stderr {
		t.Errorf("a stdin: got %d %q %q, %v", r.ExitCode, r.Stdout, r.Stderr, err)
	}
}

// C70: the session finds another place where one is full, read-only or not there
// for it.
func TestC70NoRoom(t *testing.T) {
	t.Parallel()
	for name, mounts := range map[string]string{
		"full":      "mount -t tmpfs -o size=16k none $0 && ! dd if=/dev/zero of=$0/x bs=4k 2>/dev/null",
		"read-only": "mount -t tmpfs -o ro none $0",
		"noexec":    "mount -t tmpfs -o noexec,nodev,nosuid none $0",
	} {
		for _, place := range []string{"/dev/shm", "/tmp"} {
			t.Run(name+" "+place, func(t *testing.T) {
				tr := mounted(t, mounts, place)
				eachConformantOn(t, func(*testing.T) transport.Transport { return tr }, func(t *testing.T, s *session.Session) {
					replies(t, s, "echo on", "on\n")
					repliesBig(t, s)
					repliesToStdin(t, s, "echo err >&2", "", "err\n")
				})
			})
		}
	}
}

// TestNoProc: without /proc, as in many a chroot, the streams are FIFOs and stay apart. The
// mkfifo of GNU can't give one a mode there.
func TestNoProc(t *testing.T) {
	tr := mounted(t, "mount -t tmpfs none /proc")
	eachConformantOn(t, func(*testing.T) transport.Transport { return tr }, func(t *testing.T, s *session.Session) {
		r, err := s.Run(t.Context(), session.Command{Text: "echo out; echo err >&2; (exit 3)"})
		if err != nil || r.ExitCode != 3 || string(r.Stdout) != "out\n" || string(r.Stderr) != "err\n" || r.Streams != session.Split {
			t.Errorf("got %d %q %q on %s, %v", r.ExitCode, r.Stdout, r.Stderr, r.Streams, err)
		}
		repliesBig(t, s)
		repliesToStdin(t, s, "echo err >&2", "", "err\n")
	})
}

// Nor does gateway need it where it runs itself: a daemon is started by the name of the call.
func TestNoProcHere(t *testing.T) {
	machine := mounted(t, "mount -t tmpfs none /proc").(inside)
	u := newUser(t, "hosts: {}")
	u.env = append(u.env, "GATEWAY_SOCKET="+filepath.Join(sshdtest.ShortDir(t), "d", "s"))
	cmd := u.command(t, "serve")
	cmd.Args = append([]string{"nsenter", "-t", strconv.Itoa(machine.pid), "-m", cmd.Path}, cmd.Args[1:]...)
	path, err := exec.LookPath("nsenter")
	must(t, err)
	cmd.Path = path
	t.Cleanup(func() { u.gateway(t, "serve", "--stop") })
	if o := outcomeOf(t, cmd); o.status != 0 || !strings.Contains(o.stdout, " listens on ") {
		t.Errorf("serve: %+v", o)
	}
}

// C70: nor is it where another account could put one of its own in the place of the
// session's directory.
func TestC70NoStickyBit(t *testing.T) {
	tr := mounted(t, "for d in /dev/shm /tmp; do mount -t tmpfs -o mode=0777 none $d || exit; done")
	s := open(t, tr, session.Config{})
	replies(t, s, "find /dev/shm /tmp -name '.gw-*'; echo none", "none\n")
}

// C70: the place becomes full under a session that lives there. What needs room does
// not start and says so; all else goes on.
func TestC70PlaceFills(t *testing.T) {
	tr := mounted(t, "mount -t tmpfs -o size=64k none /dev/shm")
	eachConformantOn(t, func(*testing.T) transport.Transport { return tr }, func(t *testing.T, s *session.Session) {
		eventually(t, "only this session is in /dev/shm", func() bool {
			r, _ := s.Run(t.Context(), session.Command{Text: "ls -d /dev/shm/.gw-* | wc -l"})
			return strings.TrimSpace(string(r.Stdout)) == "1"
		})
		replies(t, s, "dd if=/dev/zero of=/dev/shm/x bs=4k 2>/dev/null; echo full", "full\n")
		replies(t, s, "echo on; cd /usr; pwd", "on\n/usr\n")
		r, err := s.Run(t.Context(), session.Command{Text: bigText})
		if r.Verdict != session.NotStarted || err == nil {
			t.Errorf("a long text: %s %d %q, %v, want not_started", r.Verdict, r.ExitCode, r.Stdout, err)
		}
		repliesToStdin(t, s, "pwd", "/usr\n", "")
		replies(t, s, "rm /dev/shm/x; pwd", "/usr\n")
		repliesBig(t, s)
	})
}

// TestNoTTYInDev: a /dev that somebody has made has none, and must not get a file of
// this name. What a command writes to the terminal is its output all the same.
func TestNoTTYInDev(t *testing.T) {
	tr := mounted(t, "mount -t tmpfs none $0 && mknod -m 666 $0/null c 1 3 && mkdir $0/pts $0/shm && mount --rbind /dev/pts $0/pts && mount --rbind /dev/shm $0/shm && mount --rbind $0 /dev", t.TempDir())
	eachConformantOn(t, func(*testing.T) transport.Transport { return tr }, func(t *testing.T, s *session.Session) {
		for range 2 {
			r, err := s.Run(t.Context(), session.Command{Text: "echo yes; (exit 9)", TTY: true})
			out := string(r.Stdout)
			if filepath.Base(s.Shell()) == "mksh" { // it stops what sets the terminal's modes, and says so
				out, _, _ = strings.Cut(out, "[")
			}
			if err != nil || r.ExitCode != 9 || out != "yes\n" || r.Duration > time.Second {
				t.Errorf("got %d %q after %v, %v", r.ExitCode, r.Stdout, r.Duration, err)
			}
		}
		replies(t, s, "[ -e /dev/tty ] || echo on", "on\n")
	})
}
