package session

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gateway/internal/sshdtest"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// hold starts a process, and waits until it is up. It leads a session, and holds
// a file as descriptor 8.
func hold(t *testing.T, file string, env ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sh", "-c", `exec 8<"$1"; echo up; read x`, "sh", file)
	cmd.Env = append(os.Environ(), env...)
	talk(t, cmd)
	return cmd
}

// ended reports by which signal a process has ended, or 0 if it lives.
func ended(t *testing.T, cmd *exec.Cmd) syscall.Signal {
	t.Helper()
	var status syscall.WaitStatus
	if pid, err := syscall.Wait4(cmd.Process.Pid, &status, syscall.WNOHANG, nil); err != nil {
		t.Fatal(err)
	} else if pid == 0 {
		return 0
	}
	return status.Signal()
}

// TestEndLine: the line ends what goes by its names, and is not led astray by
// what somebody else has put there.
func TestEndLine(t *testing.T) {
	const name, other = "0123456789abcdef", "fedcba9876543210"
	type made struct {
		dir     string
		pid     func(*exec.Cmd) int
		env     string
		want    syscall.Signal
		removed bool // the last of the lines found that nobody holds it
	}
	own := func(cmd *exec.Cmd) int { return cmd.Process.Pid }
	for what, m := range map[string]made{
		"a keeper":                       {dir: ".gw-" + name, pid: own, want: syscall.SIGUSR1, removed: true},
		"a keeper of another session":    {dir: ".gw-" + other, pid: own},
		"a shell":                        {env: "_gwn=" + name, want: syscall.SIGHUP},
		"a shell of another session":     {env: "_gwn=" + other},
		"another's pid":                  {dir: ".gw-" + name, pid: func(*exec.Cmd) int { return os.Getpid() }, removed: true},
		"a keeper that was killed":       {dir: ".gw-" + name, pid: func(*exec.Cmd) int { return -1 }, removed: true},
		"one that was killed at once":    {dir: ".gw-" + name, removed: true},
		"a link to a keeper's directory": {dir: "link", pid: own},
	} {
		t.Run(what, func(t *testing.T) {
			tmp := t.TempDir()
			file := "/dev/null"
			if m.dir != "" {
				dir := filepath.Join(tmp, m.dir)
				must(t, os.Mkdir(dir, 0o700))
				file = filepath.Join(dir, "r")
				must(t, os.WriteFile(file, nil, 0o600))
			}
			cmd := hold(t, file, m.env)
			if m.pid != nil {
				must(t, os.WriteFile(filepath.Join(filepath.Dir(file), "p"), fmt.Appendln(nil, m.pid(cmd)), 0o600))
			}
			if m.dir == "link" {
				must(t, os.Symlink(m.dir, filepath.Join(tmp, ".gw-"+name)))
			}
			runEndLine(t, tmp, name)
			if m.want != 0 {
				if err := cmd.Wait(); err == nil || cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != m.want {
					t.Errorf("it ended with %v, want %v", err, m.want)
				}
				runEndLine(t, tmp, name) // it may have taken its time to end
			} else if got := ended(t, cmd); got != 0 {
				t.Errorf("it was ended by %v", got)
			}
			if _, err := os.Stat(file); os.IsNotExist(err) != m.removed {
				t.Errorf("its file: %v, want it removed: %v", err, m.removed)
			}
		})
	}
}

// TestEndLineOwner: the directory of another account is not looked into.
func TestEndLineOwner(t *testing.T) {
	if os.Getuid() != 0 {
		sshdtest.Skip(t, "it takes root to make a directory of another account")
	}
	const name = "0123456789abcdef"
	tmp := t.TempDir()
	dir := filepath.Join(tmp, ".gw-"+name)
	must(t, os.Mkdir(dir, 0o777))
	file := filepath.Join(dir, "r")
	must(t, os.WriteFile(file, nil, 0o666))
	cmd := hold(t, file)
	must(t, os.WriteFile(filepath.Join(dir, "p"), fmt.Appendln(nil, cmd.Process.Pid), 0o666))
	must(t, os.Chown(dir, 65534, 65534))
	runEndLine(t, tmp, name)
	if got := ended(t, cmd); got != 0 {
		t.Errorf("it was ended by %v", got)
	}
}

// TestEndLineEndsKeepers: a keeper, with pipes or with FIFOs, one that waits for
// the rest of a text, and sudo's relay end as if their client had gone, and
// leave nothing.
func TestEndLineEndsKeepers(t *testing.T) {
	const name = "0123456789abcdef"
	for what, script := range map[string]string{
		"keeper": keeperPrelude(name), "relay": relayPrelude(name),
	} {
		for _, fifos := range []bool{false, true} {
			for _, said := range []string{"", "head -c 1000 | cat\n"} {
				t.Run(fmt.Sprintf("%s/%v/%q", what, fifos, said), func(t *testing.T) {
					tmp := t.TempDir()
					cmd := exec.Command("sh", "-c", script)
					cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "XDG_RUNTIME_DIR=" + tmp}
					cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
					stdin, err := cmd.StdinPipe()
					if err != nil {
						t.Fatal(err)
					}
					out, end := streams(t, fifos)
					_, errs := streams(t, fifos)
					cmd.Stdout, cmd.Stderr = end, errs
					must(t, cmd.Start())
					end.Close() // the last writer's end is awaited
					errs.Close()
					defer func() {
						syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
						cmd.Wait()
					}()
					if line, err := bufio.NewReader(out).ReadString(';'); err != nil || !strings.Contains(line, tmp) {
						t.Fatalf("it said %q, %v", line, err)
					}
					if _, err := stdin.Write([]byte(said)); err != nil {
						t.Fatal(err)
					}
					programs := 0
					if fifos {
						programs += 2
					}
					if what == "relay" {
						programs++
					} else if said != "" {
						programs += 2
					}
					// A signal that meets a process on its way to a program is lost.
					for deadline := time.Now().Add(40 * time.Second); programsOf(cmd.Process.Pid) < programs; <-time.After(time.Millisecond) {
						if time.Now().After(deadline) {
							t.Fatalf("%d programs, want %d", programsOf(cmd.Process.Pid), programs)
						}
					}
					runEndLine(t, tmp, name)
					if err := cmd.Wait(); err != nil && cmd.ProcessState.ExitCode() < 0 {
						t.Errorf("it ended with %v", err)
					}
					for deadline := time.Now().Add(40 * time.Second); ; <-time.After(5 * time.Millisecond) {
						left, err := os.ReadDir(tmp)
						if err == nil && len(left) == 0 {
							break
						}
						if time.Now().After(deadline) {
							t.Fatalf("left: %v, %v", left, err)
						}
					}
				})
			}
		}
	}
}

// programsOf returns how many of a process group are another program than sh.
func programsOf(group int) (n int) {
	for _, file := range sshdtest.ProcFiles("stat") {
		text, _ := os.ReadFile(file)
		_, rest, _ := strings.Cut(string(text), "(")
		name, rest, _ := strings.Cut(rest, ") ")
		if f := strings.Fields(rest); len(f) > 2 && f[2] == fmt.Sprint(group) && name != "sh" {
			n++
		}
	}
	return n
}

// streams returns both ends of a pipe, or of a socket, which cannot be opened by
// name.
func streams(t *testing.T, sockets bool) (near, far *os.File) {
	t.Helper()
	var err error
	if sockets {
		var pair [2]int
		pair, err = syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
		near, far = os.NewFile(uintptr(pair[0]), "near"), os.NewFile(uintptr(pair[1]), "far")
	} else {
		near, far, err = os.Pipe()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		near.Close()
		far.Close()
	})
	return near, far
}

// runEndLine gives the line to a shell as a keeper gets it, and waits for the
// answer.
func runEndLine(t *testing.T, tmp, name string) {
	t.Helper()
	for _, sh := range []string{"dash", "bash", "busybox sh"} {
		nonce := newNonce()
		cmd := exec.Command("sh", "-c", "exec "+sh+` -c 'exec 3>&1 4>&1 >/dev/null 2>&1; read -r x; eval "$x"; wait'`)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "XDG_RUNTIME_DIR=" + tmp}
		cmd.Stdin = strings.NewReader(endLine(nonce, []string{name}) + "\n")
		out, err := cmd.Output()
		if want := "\x1eL" + nonce + ":\x1e" + nonce + ";"; err != nil || string(out) != want {
			t.Errorf("%s: got %q, %v, want %q", sh, out, err, want)
		}
	}
}
