package integration

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gateway/gateway"
	"gateway/internal/netsim"
	"gateway/internal/sshdtest"
	"gateway/session"
	"gateway/transport"
	"gateway/transport/local"
)

const (
	sudoPassword = "c0rrect horse'\"$"
	sudoUID      = 61234
)

// account is this machine as an account of the test's own sees it, with the
// sudoers of the test.
type account struct {
	transport.Transport
	t     *testing.T
	dir   string
	alone bool // it sees nobody else's processes
}

// newAccount makes the account. It lives in a mount namespace of each program
// that is started as it.
func newAccount(t *testing.T, sudoers string) *account {
	t.Helper()
	if os.Getuid() != 0 {
		sshdtest.Skip(t, "an account for sudo needs root")
	}
	for _, program := range []string{"sudo", "setpriv", "unshare", "openssl"} {
		if _, err := exec.LookPath(program); err != nil {
			sshdtest.Skip(t, "%v", err)
		}
	}
	dir := sshdtest.SharedDir(t)
	hash := exec.Command("openssl", "passwd", "-6", "-stdin")
	hash.Stdin = strings.NewReader(sudoPassword + "\n")
	hashed, err := hash.Output()
	if err != nil {
		t.Fatal(err)
	}
	file := func(name, text string, mode os.FileMode) { write(t, filepath.Join(dir, name), text, mode) }
	system := func(name string) string { return string(mustRead(t, "/etc/"+name)) }
	home := filepath.Join(dir, "home")
	must(t, errors.Join(os.Mkdir(home, 0o700), os.Chown(home, sudoUID, sudoUID)))
	file("passwd", system("passwd")+fmt.Sprintf("gwtest:x:%d:%d::%s:/bin/sh\n", sudoUID, sudoUID, home), 0o644)
	file("shadow", system("shadow")+fmt.Sprintf("gwtest:%s:19000:0:99999:7:::\n", strings.TrimSpace(string(hashed))), 0o600)
	file("sudoers", "Defaults env_reset, timestamp_timeout=0, secure_path=\"/usr/sbin:/usr/bin:/sbin:/bin\"\n"+sudoers+"\n", 0o440)
	tr := local.New(local.Config{})
	t.Cleanup(func() { tr.Close() })
	return &account{Transport: tr, t: t, dir: dir}
}

// as returns the command, run as the account.
func (a *account) as(command string) string {
	if strings.Contains(command, sudoPassword) {
		a.t.Errorf("the password is in a command: %q", command)
	}
	script := ""
	for _, name := range []string{"passwd", "shadow", "sudoers"} {
		script += fmt.Sprintf("mount --bind %s/%s /etc/%s && ", a.dir, name, name)
	}
	if a.alone {
		script += "mount -t proc -o hidepid=2 proc /proc && "
	}
	// As sshd gives the terminal to the account.
	script += fmt.Sprintf("{ [ ! -t 0 ] || chown %d /proc/self/fd/0; } && ", sudoUID)
	script += fmt.Sprintf("cd %s/home && exec setpriv --reuid %d --regid %d --clear-groups env -i HOME=%[1]s/home USER=gwtest LOGNAME=gwtest TERM=dumb PATH=/usr/bin:/bin /bin/sh -c %[4]s",
		a.dir, sudoUID, sudoUID, session.Quote(command))
	return "exec unshare -m --propagation private sh -c " + session.Quote(script)
}

func (a *account) Terminal(ctx context.Context, command string, options transport.TerminalOptions) (transport.Terminal, error) {
	return a.Transport.Terminal(ctx, a.as(command), options)
}

func (a *account) Pipe(ctx context.Context, command string) (*transport.Pipe, error) {
	return a.Transport.Pipe(ctx, a.as(command))
}

func TestSudo(t *testing.T) {
	t.Parallel()
	right := func(_ context.Context, attempt int) (string, error) {
		if attempt > 1 {
			return "", errors.New("asked again")
		}
		return sudoPassword, nil
	}
	for _, test := range []struct{ name, sudoers, user string }{
		{"password", "gwtest ALL=(ALL) ALL", ""},
		{"own terminal", "Defaults use_pty\ngwtest ALL=(ALL) ALL", ""},
		{"no own terminal", "Defaults !use_pty\ngwtest ALL=(ALL) ALL", "root"},
		{"wants a terminal", "Defaults requiretty\ngwtest ALL=(ALL) ALL", ""},
		{"no password", "gwtest ALL=(ALL) NOPASSWD: ALL", ""},
		{"another default", "Defaults runas_default=nobody\ngwtest ALL=(ALL) NOPASSWD: ALL", ""},
		{"another user", "Defaults use_pty\ngwtest ALL=(ALL) ALL", "nobody"},
		{"another user, no own terminal", "Defaults !use_pty\ngwtest ALL=(ALL) ALL", "nobody"},
	} {
		t.Run(test.name, func(t *testing.T) {
			tr := newAccount(t, test.sudoers)
			s, err := session.Open(t.Context(), tr, session.Config{Shell: "bash", Sudo: &session.Sudo{User: test.user, Password: right}})
			if err != nil {
				t.Fatalf("Open = %v", err)
			}
			defer s.Close()
			who := test.user
			if who == "" {
				who = "root"
			}
			for range 2 {
				r, err := s.Run(t.Context(), session.Command{Text: "id -un; echo err >&2; V=kept; (exit 3)"})
				if err != nil || string(r.Stdout) != who+"\n" || string(r.Stderr) != "err\n" || r.ExitCode != 3 || len(r.Terminal) > 0 {
					t.Errorf("got %q, %q, %d, terminal %q, %v, want %s, err, 3", r.Stdout, r.Stderr, r.ExitCode, r.Terminal, err, who)
				}
			}
			if r, err := s.Run(t.Context(), session.Command{Text: "sleep 1000 & J=$!"}); err != nil {
				t.Errorf("got %q, %v", r.Stderr, err)
			}
			r, err := s.Run(t.Context(), session.Command{Text: "sleep 1000 & echo $!; sleep 1000 | cat", Timeout: 300 * time.Millisecond})
			if r.Verdict != session.TimedOut || r.Ended {
				t.Errorf("got %s, %q, %v, want timed_out", r.Verdict, r.Stdout, err)
			}
			job := strings.TrimSpace(string(r.Stdout))
			if line, err := os.ReadFile("/proc/" + job + "/cmdline"); err == nil && len(line) > 0 {
				t.Errorf("process %q outlives its command: %q", job, line)
			}
			if r, err := s.Run(t.Context(), session.Command{Text: "kill $J"}); err != nil || r.ExitCode != 0 {
				t.Errorf("the job of the command before: %d %q, %v", r.ExitCode, r.Stderr, err)
			}
			r, err = s.Run(t.Context(), session.Command{Text: "echo $V; seq 1 20000 | tail -n 1; tr '\\0' '\\n' </proc/*/cmdline 2>/dev/null | grep -c 'c0rrec[t]'; cat /proc/*/environ 2>/dev/null | grep -c 'c0rrec[t]'"})
			if err != nil || string(r.Stdout) != "kept\n20000\n0\n0\n" {
				t.Errorf("got %q %q, %v, want what was kept, all lines and no password", r.Stdout, r.Stderr, err)
			}
			if who != "root" {
				return
			}
			r, err = s.Run(t.Context(), session.Command{Text: "wc -c", Stdin: strings.NewReader(strings.Repeat("x", 100_000))})
			if err != nil || string(r.Stdout) != "100000\n" {
				t.Errorf("got %q %q, %v, want 100000", r.Stdout, r.Stderr, err)
			}
		})
	}
}

// TestSudoWait: a shell's wait is for its own jobs, and not for what keeps the session.
func TestSudoWait(t *testing.T) {
	t.Parallel()
	for _, shell := range allShells {
		t.Run(shell, func(t *testing.T) {
			s := open(t, newAccount(t, "gwtest ALL=(ALL) NOPASSWD: ALL"), session.Config{Shell: shell, Sudo: &session.Sudo{}})
			replies(t, s, "sleep 0.1 & wait >/dev/null; echo on", "on\n")
		})
	}
}

// TestSudoThatRecords: the keeper is cut off with sudo's end, behind which the command's end
// and all of its output are known nevertheless, and no answer of the keeper's is waited for.
func TestSudoThatRecords(t *testing.T) {
	t.Parallel()
	tr := newAccount(t, "Defaults log_output, log_input, iolog_dir="+t.TempDir()+"\ngwtest ALL=(ALL) NOPASSWD: ALL")
	s := open(t, tr, session.Config{Shell: "bash", Sudo: &session.Sudo{}})
	r, err := s.Run(t.Context(), session.Command{Text: "seq 100000; echo err >&2; exit 3"})
	if err != nil || r.ExitCode != 3 || r.StdoutBytes != 588_895 || string(r.Stderr) != "err\n" || r.Duration >= 5*time.Second {
		t.Errorf("got %s %d, %d bytes of stdout, stderr %q, %v, in %v", r.Verdict, r.ExitCode, r.StdoutBytes, r.Stderr, err, r.Duration)
	}
}

// TestSudoThatRecordsWhatIsTakenLate: behind the command's end, sudo first writes what it has,
// and then waits for the end of streams that the keeper holds.
func TestSudoThatRecordsWhatIsTakenLate(t *testing.T) {
	t.Parallel()
	// More than there is room for on the way from sudo to here, and no more than up to sudo.
	for _, lines := range []int{38_000, 40_000, 42_000} {
		tr := newAccount(t, "Defaults log_output, iolog_dir="+t.TempDir()+"\ngwtest ALL=(ALL) NOPASSWD: ALL")
		s := open(t, tr, session.Config{Shell: "bash", Sudo: &session.Sudo{}})
		r, err := s.Run(t.Context(), session.Command{Text: "echo $$"})
		if err != nil {
			t.Fatal(err)
		}
		shell := "/proc/" + strings.TrimSpace(string(r.Stdout))
		r, err = s.Run(t.Context(), session.Command{Text: fmt.Sprintf("seq %d; exit 3", lines), Timeout: 20 * time.Second, Output: func(session.Stream, []byte) {
			eventually(t, "the shell's end", func() bool { _, err := os.Stat(shell); return err != nil })
		}})
		if want := int64(6*lines - 11_106); err != nil || r.ExitCode != 3 || r.StdoutBytes != want {
			t.Errorf("got %s %d, %d bytes of stdout, %v, in %v; want all %d", r.Verdict, r.ExitCode, r.StdoutBytes, err, r.Duration, want)
		}
	}
}

func TestSudoRefuses(t *testing.T) {
	t.Parallel()
	password := func(p string) func(context.Context, int) (string, error) {
		return func(_ context.Context, attempt int) (string, error) {
			if attempt > 1 {
				return "", errors.New("asked again")
			}
			return p, nil
		}
	}
	for _, test := range []struct {
		name, sudoers, code string
		sudo                session.Sudo
	}{
		{"a wrong password", "gwtest ALL=(ALL) ALL", "sudo.rejected", session.Sudo{Password: password("wrong")}},
		{"a wrong password shown as stars", "Defaults pwfeedback\ngwtest ALL=(ALL) ALL", "sudo.rejected", session.Sudo{Password: password("wrong")}},
		{"nobody to ask", "gwtest ALL=(ALL) ALL", "sudo.needs_password", session.Sudo{}},
		{"who may not", "root ALL=(ALL) ALL", "sudo.rejected", session.Sudo{Password: password(sudoPassword)}},
		{"another user than allowed", "gwtest ALL=(nobody) ALL", "sudo.rejected", session.Sudo{Password: password(sudoPassword)}},
		{"a user that is none", "gwtest ALL=(ALL) NOPASSWD: ALL", "sudo.rejected", session.Sudo{User: "nosuchuser"}},
		{"no programs", "Defaults noexec\ngwtest ALL=(ALL) NOPASSWD: ALL", "sudo.rejected", session.Sudo{}},
		{"asking nothing", "gwtest ALL=(ALL) ALL", "sudo.rejected", session.Sudo{Flags: []string{"-n"}}},
		{"a user that is a flag", "gwtest ALL=(ALL) ALL", "usage", session.Sudo{User: "-s"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			tr := newAccount(t, test.sudoers)
			begun := time.Now()
			s, err := session.Open(t.Context(), tr, session.Config{Sudo: &test.sudo})
			if err == nil {
				s.Close()
				t.Fatal("Open worked")
			}
			var e *transport.Error
			if !errors.As(err, &e) || e.Code != test.code {
				t.Errorf("Open = %v, want %s", err, test.code)
			}
			if strings.Contains(err.Error(), sudoPassword) {
				t.Errorf("the password stands in %q", err)
			}
			if strings.Contains(err.Error(), "exec 3<") {
				t.Errorf("what sudo was to run stands in %q", err)
			}
			if strings.Contains(err.Error(), "*") {
				t.Errorf("the stars of the password stand in %q", err)
			}
			if took := time.Since(begun); sshdtest.Over(t, took, 15*time.Second) {
				t.Errorf("took %v", took)
			}
			t.Log(err)
		})
	}
}

// TestSudoWithoutATerminal: the shell would sit at the terminal.
// TestLinkIsCutBeforeSudoAnswers: that is the link's, and not sudo's.
func TestLinkIsCutBeforeSudoAnswers(t *testing.T) {
	t.Parallel()
	begun := filepath.Join(t.TempDir(), "begun")
	server := sshdtest.Start(t, sshdtest.Options{Config: []string{
		`ForceCommand if [ -t 0 ]; then echo >` + begun + `; read x; else exec /bin/sh -c "$SSH_ORIGINAL_COMMAND"; fi`,
	}})
	link := netsim.Start(t, server.Addr, 0)
	tr := dial(t, server, link.Port())
	go func() { // ends with what it waits for
		eventually(t, "the terminal's program has begun", func() bool { _, err := os.Stat(begun); return err == nil })
		link.Cut(netsim.FIN)
	}()
	s, err := session.Open(t.Context(), tr, session.Config{Sudo: &session.Sudo{}})
	if err == nil {
		s.Close()
	}
	if code := gateway.Code(err); code != "link.lost" {
		t.Errorf("Open = %v (%s), want link.lost", err, code)
	}
}

func TestSudoWithoutATerminal(t *testing.T) {
	server := sshdtest.Start(t, sshdtest.Options{AuthorizedOptions: "restrict"})
	s, err := session.Open(t.Context(), dial(t, server, server.Port), session.Config{Sudo: &session.Sudo{}})
	if err == nil {
		s.Close()
		t.Fatal("Open worked")
	}
	if code := gateway.Code(err); code != "session.pty_refused" {
		t.Errorf("Open = %v (%s), want session.pty_refused", err, code)
	}
}

// findKeeper sets $k to the keeper of its session, $d to a file in its directory, and $r to the relay.
const findKeeper = `e=$(readlink /proc/self/fd/2); for p in $(ls -l /proc/[0-9]*/fd/4 2>/dev/null | grep -F -e "-> $e" | grep -o '/proc/[0-9]*'); do
	case $(readlink $p/fd/9) in */c) r=${p#/proc/};; *) [ "$(readlink $p/fd/6 2>&1)" = "$e" ] && d=$(readlink $p/fd/8) && read k <"${d%/r}/p";; esac
done; `

// TestSudoKeeperIsKilled: a session of another user can have no other keeper, so
// it ends, and says so.
func TestSudoKeeperIsKilled(t *testing.T) {
	t.Parallel()
	for name, kill := range map[string]string{"the relay": "kill -9 $r", "the keeper": "kill -9 $k"} {
		t.Run(name, func(t *testing.T) {
			tr := newAccount(t, "gwtest ALL=(ALL) NOPASSWD: ALL")
			s, err := session.Open(t.Context(), tr, session.Config{Shell: "bash", Sudo: &session.Sudo{}})
			if err != nil {
				t.Fatalf("Open = %v", err)
			}
			defer s.Close()
			seen := filepath.Join(t.TempDir(), "seen") // what it has said by then would be lost with the relay
			r, err := s.Run(t.Context(), session.Command{
				Text:   findKeeper + `[ "$r" ] && [ "$k" ] && echo "${d%/r}" && until [ -e ` + seen + ` ]; do sleep 0.05; done && ` + kill + `; while kill -0 ${r:-0} && kill -0 $k; do :; done 2>/dev/null`,
				Output: func(session.Stream, []byte) { _ = os.WriteFile(seen, nil, 0o600) },
			})
			dir, found := strings.CutSuffix(string(r.Stdout), "\n")
			if !found || !strings.Contains(dir, "/.gw-") {
				t.Errorf("got %s %q %q, %v", r.Verdict, r.Stdout, r.Stderr, err)
			}
			select {
			case <-s.Done():
			case <-time.After(15 * time.Second):
				t.Error("the session does not say that it has ended")
			}
			if r, err := s.Run(t.Context(), session.Command{Text: "true"}); r.Verdict != session.NotStarted || !errors.Is(err, session.ErrClosed) {
				t.Errorf("afterwards Run = %s, %v, want not_started and ErrClosed", r.Verdict, err)
			}
			eventually(t, "the keeper's directory is gone", func() bool { _, err := os.Lstat(dir); return errors.Is(err, fs.ErrNotExist) })
		})
	}
}

// TestSudoKeeperIsNotStopped: what stops the shell's process group, where it comes to the terminal
// from the background, leaves the keeper as it is.
func TestSudoKeeperIsNotStopped(t *testing.T) {
	t.Parallel()
	tr := newAccount(t, "Defaults use_pty\ngwtest ALL=(ALL) NOPASSWD: ALL")
	s, err := session.Open(t.Context(), tr, session.Config{Shell: "bash", Sudo: &session.Sudo{}, OpenTimeout: 10 * time.Second})
	if err != nil {
		t.Fatalf("Open = %v", err)
	}
	defer s.Close()
	r, err := s.Run(t.Context(), session.Command{Text: findKeeper + "kill -TTIN $k && kill -TTOU $k && kill -TSTP $k"})
	if r.Verdict != session.Exited || r.ExitCode != 0 {
		t.Fatalf("got %s %d %q, %v", r.Verdict, r.ExitCode, r.Stderr, err)
	}
	// It takes the texts that are too long to be typed.
	if r, err := s.Run(t.Context(), session.Command{Text: ": " + strings.Repeat("x", 5000) + "; echo out"}); string(r.Stdout) != "out\n" {
		t.Errorf("got %s %q, ended=%v, %v", r.Verdict, r.Stdout, r.Ended, err)
	}
}

// TestAnothersShellIsLeft: a shell that belongs to root, which an interrupt does
// not end and nobody may signal, is not taken for the session's own.
func TestAnothersShellIsLeft(t *testing.T) {
	t.Parallel()
	for inner, outer := range map[string]string{"dash": "dash", "busybox ash": "dash", "bash --norc": "bash", "sh": "busybox ash"} {
		t.Run(inner+" in "+outer, func(t *testing.T) {
			tr := newAccount(t, "gwtest ALL=(ALL) NOPASSWD: ALL")
			s, err := session.Open(t.Context(), tr, session.Config{Shell: outer})
			if err != nil {
				t.Fatalf("Open = %v", err)
			}
			defer s.Close()
			r, err := s.Run(t.Context(), session.Command{Text: "sudo " + inner, TTY: true, Timeout: time.Second})
			if r.Verdict != session.TimedOut {
				t.Errorf("got %s %q, %v, want timed_out", r.Verdict, r.Stdout, err)
			}
			if r, err := s.Run(t.Context(), session.Command{Text: "id -un"}); string(r.Stdout) != "gwtest\n" && r.Verdict != session.NotStarted {
				t.Errorf("afterwards %s %q %q, %v, want gwtest, or a session that has ended", r.Verdict, r.Stdout, r.Terminal, err)
			}
		})
	}
}

// aloneOrNot runs a test twice: the second time, /proc shows only the account's own.
func aloneOrNot(t *testing.T, a *account, name string, test func(*testing.T)) {
	t.Run(name, test)
	a.alone = true
	t.Run(name+", alone", test)
	a.alone = false
}

// TestPromptsOfSetuidPrograms: they can't be looked into.
func TestPromptsOfSetuidPrograms(t *testing.T) {
	t.Parallel()
	tr := newAccount(t, "Defaults lecture=always\ngwtest ALL=(ALL) ALL")
	for _, test := range []struct {
		name, text, prompt string
		tty, root          bool
	}{
		{"sudo", "sudo true", "[sudo] password for gwtest: ", false, true},
		{"sudo on the terminal", "sudo true", "[sudo] password for gwtest: ", true, true},
		{"su", "su", "Password: ", true, true},
		{"passwd", "passwd", "Current password: ", true, true},
		{"what asks like sudo", `printf '[sudo] password for gwtest: ' >/dev/tty; read -rs x </dev/tty`, "[sudo] password for gwtest: ", false, false},
	} {
		aloneOrNot(t, tr, test.name, func(t *testing.T) {
			s, err := session.Open(t.Context(), tr, session.Config{Shell: "bash"})
			if err != nil {
				t.Fatalf("Open = %v", err)
			}
			defer s.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			asked := make(chan session.Prompt, 8)
			r, err := s.Run(ctx, session.Command{Text: test.text, TTY: test.tty, Waiting: func(p *session.Prompt) {
				if p != nil {
					asked <- *p
					cancel()
				}
			}})
			if r.Verdict != session.Interrupted || len(asked) == 0 {
				t.Fatalf("got %s %q %q, %v", r.Verdict, r.Stdout, r.Terminal, err)
			}
			if got := <-asked; got != (session.Prompt{Text: test.prompt, Kind: session.PasswordPrompt, Root: test.root && !tr.alone}) {
				t.Errorf("asked %+v, want %q, root %v", got, test.prompt, test.root)
			}
		})
	}
}

// TestSudoThatWorksIsNoPrompt: what stands at the end of its output looks like a question, and
// nobody can see that it isn't one.
func TestSudoThatWorksIsNoPrompt(t *testing.T) {
	t.Parallel()
	tr := newAccount(t, "gwtest ALL=(ALL) ALL")
	nobody := func(context.Context, session.Prompt) (string, error) { return "", errors.New("nobody to ask") } // what it does on a terminal is looked at
	password := "printf '%s\\n' " + session.Quote(sudoPassword) + " | "
	for _, test := range []struct {
		name, text, stdout, stderr string
		tty                        bool
	}{
		{"behind its own question", password + "sudo -S sleep 1; echo done", "done\n", "[sudo] password for gwtest: ", false},
		{"on a terminal that echoes", password + "sudo -S sleep 1; echo done", "[sudo] password for gwtest: done\r\n", "", true},
		{"behind that of su", password + "su gwtest -c 'sleep 1; echo done'", "done\n", "Password: ", false},
		{"busy", password + `sudo -S -p '' sh -c 'printf "Creating journal: "; timeout 1 sh -c "while :; do :; done"; echo done'`, "Creating journal: done\n", "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, err := session.Open(t.Context(), tr, session.Config{Shell: "bash"})
			if err != nil {
				t.Fatalf("Open = %v", err)
			}
			defer s.Close()
			r, err := s.Run(t.Context(), session.Command{Text: test.text, TTY: test.tty, Echo: test.tty, Answer: nobody, Timeout: 30 * time.Second})
			if err != nil || string(r.Stdout) != test.stdout || string(r.Stderr) != test.stderr {
				t.Errorf("got %s %q %q, %v", r.Verdict, r.Stdout, r.Stderr, err)
			}
		})
	}
}

// TestSetuidProgramsAreAnswered: each of their prompts comes once, and what is typed is
// nowhere in the result.
func TestSetuidProgramsAreAnswered(t *testing.T) {
	t.Parallel()
	const next = "Zx8-more-of-it"
	tr := newAccount(t, "Defaults lecture=always\ngwtest ALL=(ALL) ALL")
	for _, test := range []struct {
		name, text string
		tty        bool
		prompts    []string
		answers    []string
		last       string // line of stdout
		code       int
	}{
		{"sudo", "sudo id -un", false, []string{"[sudo] password for gwtest: "}, []string{sudoPassword}, "root\n", 0},
		{"sudo on the terminal", "sudo id -un", true, []string{"[sudo] password for gwtest: "}, []string{sudoPassword}, "root\n", 0},
		{"su", "su gwtest -c 'id -un; exit 3'", true, []string{"Password: "}, []string{sudoPassword}, "gwtest\n", 3},
		// It renames its new file over one that is mounted here, and can't (rename(2), EBUSY).
		{"passwd", "passwd", true, []string{"Current password: ", "New password: ", "Retype new password: "}, []string{sudoPassword, next, next}, "passwd: password unchanged\n", 10},
	} {
		aloneOrNot(t, tr, test.name, func(t *testing.T) {
			s, err := session.Open(t.Context(), tr, session.Config{Shell: "bash"})
			if err != nil {
				t.Fatalf("Open = %v", err)
			}
			defer s.Close()
			var asked []string
			r, err := s.Run(t.Context(), session.Command{Text: test.text, TTY: test.tty, Timeout: 20 * time.Second, Waiting: func(p *session.Prompt) {
				if p == nil {
					return
				}
				if asked = append(asked, p.Text); p.Kind != session.PasswordPrompt || len(asked) > len(test.answers) {
					t.Errorf("asked %q (%s)", p.Text, p.Kind)
					return
				}
				if _, err := s.Write([]byte(test.answers[len(asked)-1] + "\n")); err != nil {
					t.Error(err)
				}
			}})
			if err != nil || r.ExitCode != test.code || !strings.HasSuffix(string(r.Stdout), test.last) || !slices.Equal(asked, test.prompts) {
				t.Errorf("got %s %d %q %q, %v, asked %q", r.Verdict, r.ExitCode, r.Stdout, r.Terminal, err, asked)
			}
			for _, answer := range test.answers {
				if all := string(r.Stdout) + string(r.Stderr) + string(r.Terminal); strings.Contains(all, answer) {
					t.Errorf("an answer stands in the result: %q", all)
				}
			}
			if r, err := s.Run(t.Context(), session.Command{Text: "echo on"}); err != nil || string(r.Stdout) != "on\n" {
				t.Errorf("afterwards %s %q, %v", r.Verdict, r.Stdout, err)
			}
		})
	}
}
