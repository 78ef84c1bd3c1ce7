package session_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"gateway/internal/sshdtest"
	"gateway/session"
	"gateway/transport"
	"gateway/transport/local"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var shells = []string{"bash", "dash", "zsh", "ksh", "mksh", "yash", "busybox ash"}

// eachShell runs test in a session of each shell, some at once: mostly, they wait.
func eachShell(t *testing.T, test func(*testing.T, *session.Session)) {
	for _, shell := range shells {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			test(t, open(t, session.Config{Shell: shell}))
		})
	}
}

// endless is a loop that an interrupt ends. busybox ash with glibc leaves a
// builtin by longjmp(3), and now and then with the lock of stdout held, which its
// next clearerr(3) waits for: it is given programs to run.
func endless(shell string) string {
	if strings.HasPrefix(filepath.Base(shell), "busybox") {
		return "while /bin/sleep 0.01; do /bin/true; done"
	}
	return "while :; do :; done"
}

// open opens a session on this machine and checks, when the test is over, that
// it leaves nothing behind.
func open(t *testing.T, config session.Config) *session.Session {
	t.Helper()
	tr := local.New(local.Config{Env: []string{"HOME=" + t.TempDir()}})
	s, err := session.Open(t.Context(), tr, config)
	if err != nil {
		t.Fatalf("Open = %v", err)
	}
	t.Cleanup(func() {
		s.Close()
		tr.Close()
		var left []string
		eventually(t, "no process left", func() bool { left = processes(s.ID()); return len(left) == 0 })
		for _, pid := range left {
			status, _ := os.ReadFile("/proc/" + pid + "/status")
			line, _ := os.ReadFile("/proc/" + pid + "/cmdline")
			t.Errorf("left: %q\n%s", line, status)
		}
	})
	return s
}

// openOn opens a session on a machine of its own. Both end with the test.
func openOn(t *testing.T, machine transport.Transport, config session.Config) *session.Session {
	t.Helper()
	t.Cleanup(func() { machine.Close() })
	s, err := session.Open(t.Context(), machine, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// openIn opens a session on this machine whose directory is in one of the test's. It may
// leave processes.
func openIn(t *testing.T, config session.Config) (s *session.Session, runtime string) {
	t.Helper()
	runtime = t.TempDir()
	return openOn(t, local.New(local.Config{Env: []string{"HOME=" + t.TempDir(), "XDG_RUNTIME_DIR=" + runtime}}), config), runtime
}

// processes returns the pids of what carries the session's name.
func processes(id string) []string {
	pids := sshdtest.WithEnv("GATEWAY_SESSION=" + id)
	for i, dir := range pids {
		pids[i] = filepath.Base(dir)
	}
	return pids
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	sshdtest.Eventually(t, 10*time.Second, what, condition)
}

// run runs a command that must end by itself.
func run(t *testing.T, s *session.Session, text string) session.Result {
	t.Helper()
	return runCommand(t, s, session.Command{Text: text})
}

// pidOf returns the number of a session's shell.
func pidOf(t *testing.T, s *session.Session) int {
	t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(string(run(t, s, "echo $$").Stdout)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func runCommand(t *testing.T, s *session.Session, command session.Command) session.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	r, err := s.Run(ctx, command)
	if err != nil {
		t.Fatalf("Run(%.80q) = %+v, %v", command.Text, r, err)
	}
	return r
}

// want checks what a command left on its streams, and its status.
func want(t *testing.T, r session.Result, code int, stdout, stderr string) {
	t.Helper()
	if r.ExitCode != code || string(r.Stdout) != stdout || string(r.Stderr) != stderr || len(r.Terminal) > 0 {
		t.Errorf("got %s %d, stdout %.200q, stderr %.200q, terminal %.200q; want %d, %.200q, %.200q and nothing",
			r.Verdict, r.ExitCode, r.Stdout, r.Stderr, r.Terminal, code, stdout, stderr)
	}
}

func TestStreamsStatusAndDirectory(t *testing.T) {
	eachShell(t, func(t *testing.T, s *session.Session) {
		dir := t.TempDir()
		for _, test := range []struct {
			name, text, stdout, stderr string
			code                       int
		}{
			{"both streams", "echo out; echo err >&2; (exit 3)", "out\n", "err\n", 3},
			{"nothing", "", "", "", 0},
			{"a comment", "# only a comment", "", "", 0},
			{"a trailing comment", "echo hi # note", "hi\n", "", 0},
			{"no newline at the end", "printf abc", "abc", "", 0},
			{"newlines around", `printf '\n\nx\n\n\n'`, "\n\nx\n\n\n", "", 0},
			{"every byte", `printf '\000\001\036\377\r\n\033[0m'`, "\x00\x01\x1e\xff\r\n\x1b[0m", "", 0},
			{"a false status", "false", "", "", 1},
			{"not found", "sh -c 'exit 127'", "", "", 127},
			{"a signal to a child", `sh -c 'sh -c "kill -9 \$\$"; exit $?' 2>/dev/null`, "", "", 137},
			{"a heredoc", "cat <<E\nfoo\n\tbar\nE", "foo\n\tbar\n", "", 0},
			{"a heredoc and more", "cat <<'E'\n$foo\nE\necho z", "$foo\nz\n", "", 0},
			{"two lines", "false\necho $?", "1\n", "", 0},
			{"a continuation", "echo a\\\n b", "a b\n", "", 0},
			{"a prompt that is printed is none", `echo "$PS1" | wc -l; set | grep -c ^_gwn=`, "1\n1\n", "", 0},
			{"a TAB and quotes", "echo 'a\tb' \"it's\"", "a\tb it's\n", "", 0},
			{"exclamation marks", `echo "wow!!" '!x'`, "wow!! !x\n", "", 0},
			{"control bytes in the text", "printf %s 'a\x01\x03\x04\x15\x1a\x1b\x1c\x7fb\r' | od -An -tx1", " 61 01 03 04 15 1a 1b 1c 7f 62 0d\n", "", 0},
			{"standard input is at its end", "cat; read x || echo end", "end\n", "", 0},
			{"standard output is no terminal", "test -t 0 || test -t 1 || test -t 2 || echo none", "none\n", "", 0},
			{"there is a terminal", "test -c /dev/tty && : </dev/tty && echo yes", "yes\n", "", 0},
			{"a descriptor of the user's", "exec 9>" + dir + "/lock; echo held >&9; cat " + dir + "/lock", "held\n", "", 0},
			{"that persists", "echo more >&9; exec 9>&-; cat " + dir + "/lock", "held\nmore\n", "", 0},
			{"a redirected shell", "exec >" + dir + "/gone 2>&1; echo lost", "", "", 0},
			{"after which all is well", "echo here; echo there >&2", "here\n", "there\n", 0},
			{"spaces at the end of a line", "printf 'a  \\n'", "a  \n", "", 0},
			{"errors are no end", "ls /nonexistent-dir 2>/dev/null; echo $?", "2\n", "", 0},
		} {
			t.Run(test.name, func(t *testing.T) {
				want(t, run(t, s, test.text), test.code, test.stdout, test.stderr)
			})
		}
	})
}

// TestDirectoryBeyondPathMax: some shells go on where a path is too long for any system
// call. The others stay where they are.
func TestDirectoryBeyondPathMax(t *testing.T) {
	t.Parallel()
	eachShell(t, func(t *testing.T, s *session.Session) {
		for _, steps := range []string{"25", "80"} {
			text := `cd '` + t.TempDir() + `'; d=$(printf %0250d 0); d=$d/$d/$d/$d/$d/$d/$d; i=0; while [ $i -lt ` + steps + ` ]; do mkdir -p $d && cd $d || break; i=$((i+1)); done; printf %s "$PWD"`
			for range 2 {
				r, err := s.Run(t.Context(), session.Command{Text: text, Timeout: 20 * time.Second})
				if wanted := string(r.Stdout); err != nil || len(wanted) < 1700 || r.Cwd != wanted && (r.Cwd != "" || len(wanted) < 50_000) {
					t.Fatalf("got %s %d, %d bytes of stdout, a directory of %d, %v; want one name, or none for a very long one", r.Verdict, r.ExitCode, len(wanted), len(r.Cwd), err)
				}
				text = `printf %s "$PWD"; (exit 0)`
			}
			want(t, run(t, s, "cd /usr; pwd"), 0, "/usr\n", "")
		}
	})
}

func TestSyntaxErrorsLeaveTheSessionAlone(t *testing.T) {
	eachShell(t, func(t *testing.T, s *session.Session) {
		for _, text := range []string{"echo $(abc", "cat <(abc", "echo $(abc", "echo $(abc", "echo $(abc", "echo 'abc", `echo "abc`, "(a", `echo a\`, "if then", "for", "a='", "echo `", "cat <<'E", "}", ")", ";;", "&& true"} {
			r, err := s.Run(t.Context(), session.Command{Text: text})
			if err != nil || r.Verdict != session.Exited || len(r.Stderr) == 0 && r.ExitCode != 0 {
				t.Errorf("Run(%q) = %s %d, stderr %q, %v, want an exit with a message", text, r.Verdict, r.ExitCode, r.Stderr, err)
			}
			want(t, run(t, s, "echo alive"), 0, "alive\n", "")
		}
	})
}

func TestStatePersists(t *testing.T) {
	eachShell(t, func(t *testing.T, s *session.Session) {
		if r := run(t, s, "cd /usr/bin; A=1; export B='two words'; f() { echo f:$1; }; umask 027; set -- x y"); r.Cwd != "/usr/bin" {
			t.Errorf("cwd = %q, want /usr/bin", r.Cwd)
		}
		want(t, run(t, s, `pwd; echo $A; sh -c 'echo $B'; f z; umask; echo $2`), 0, "/usr/bin\n1\ntwo words\nf:z\n"+umaskOf(s)+"\ny\n", "")
	})
}

func umaskOf(s *session.Session) string {
	if strings.Contains(s.Shell(), "zsh") || strings.Contains(s.Shell(), "mksh") {
		return "027"
	}
	return "0027"
}

func TestDirectoryNamesAreExact(t *testing.T) {
	eachShell(t, func(t *testing.T, s *session.Session) {
		for _, name := range []string{"a b", "it's", "new\nline", "\x1fsep:0::", "ümläut", "-dash", "\x1eE"} {
			dir := filepath.Join(t.TempDir(), name)
			must(t, os.Mkdir(dir, 0o700))
			if r := run(t, s, "cd "+session.Quote(dir)); r.Cwd != dir {
				t.Errorf("cwd = %q, want %q", r.Cwd, dir)
			}
		}
	})
}

func TestPerCommandDirectoryAndEnvironment(t *testing.T) {
	eachShell(t, func(t *testing.T, s *session.Session) {
		run(t, s, "cd /usr; K=old; export K")
		r := runCommand(t, s, session.Command{
			Text: "pwd; echo \"$K\"; sh -c 'echo \"$K\"; echo \"$L\"'",
			Cwd:  "/tmp", Env: map[string]string{"K": "it's $new\n\"", "L": "l"},
		})
		want(t, r, 0, "/tmp\nit's $new\n\"\nit's $new\n\"\nl\n", "")
		want(t, run(t, s, `pwd; echo $K; sh -c 'echo $K'; echo ${L-unset}`), 0, "/usr\nold\nold\nunset\n", "")

		big := strings.Repeat("x\x1b\x03\n'", 5000)
		r = runCommand(t, s, session.Command{Text: `sh -c 'printf %s "$B" | wc -c | tr -d " "'`, Env: map[string]string{"B": big}, Cwd: "/tmp"})
		want(t, r, 0, fmt.Sprintln(len(big)), "")
		want(t, run(t, s, `echo ${B-unset}; pwd`), 0, "unset\n/usr\n", "")

		r, err := s.Run(t.Context(), session.Command{Text: "echo ran", Cwd: "/nonexistent"})
		var coded interface{ ErrorCode() string }
		if r.Verdict != session.NotStarted || !errors.As(err, &coded) || coded.ErrorCode() != "cmd.cwd" || len(r.Stdout) > 0 {
			t.Errorf("Run in a missing directory = %s %q, %v, want not_started and cmd.cwd", r.Verdict, r.Stdout, err)
		}
		want(t, run(t, s, "pwd"), 0, "/usr\n", "")
	})
}

// What has run is never told as not started, whoever answers to the words of a frame.
func TestUnsetIsTakenOver(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"alias unset='echo alias'", "function unset { echo function; }", "enable -n unset"} {
		eachShell(t, func(t *testing.T, s *session.Session) {
			if _, err := s.Run(t.Context(), session.Command{Text: text}); err != nil {
				t.Fatal(err)
			}
			for _, command := range []session.Command{{Text: "echo ran", Cwd: "/tmp"}, {Text: "echo ran", Env: map[string]string{"A": "b"}}} {
				r, err := s.Run(t.Context(), command)
				if r.Verdict != session.Exited || r.ExitCode != 0 || string(r.Stdout) != "ran\n" || err != nil {
					t.Errorf("%s, in %q with %v: got %s %d %q, %v, want that it ran", text, command.Cwd, command.Env, r.Verdict, r.ExitCode, r.Stdout, err)
				}
			}
		})
	}
}

func TestLongTexts(t *testing.T) {
	t.Parallel()
	eachShell(t, func(t *testing.T, s *session.Session) {
		sizes := []int{500, 899, 900, 901, 3000, 4095, 4096, 20_000, 200_000}
		if filepath.Base(s.Shell()) == "bash" { // as much to the engine in any shell
			sizes = append(sizes, 1<<20)
		}
		for _, size := range sizes {
			word := strings.Repeat("x", size)
			r := run(t, s, "v='"+word+"'; echo ${#v}; A=1; cd /tmp; # comment")
			want(t, r, 0, fmt.Sprintln(size), "")
		}
		want(t, run(t, s, "pwd; echo $A"), 0, "/tmp\n1\n", "")
		lines := strings.Repeat("n=$((n+1))\n", 5000)
		want(t, run(t, s, "n=0\n"+lines+"echo $n"), 0, "5000\n", "")
	})
}

func TestTerminalCommand(t *testing.T) {
	eachShell(t, func(t *testing.T, s *session.Session) {
		r := runCommand(t, s, session.Command{Text: "test -t 0 && test -t 1 && test -t 2 && echo on; cd /tmp", TTY: true})
		if string(r.Stdout) != "on\n" || r.Streams != session.OnTerminal || r.Cwd != "/tmp" {
			t.Errorf("got %q, %s, cwd %s", r.Stdout, r.Streams, r.Cwd)
		}
		r = runCommand(t, s, session.Command{
			Text: `printf 'name? '; read a; echo "hello $a"`, TTY: true,
			Answer: func(context.Context, session.Prompt) (string, error) { return "world", nil },
		})
		if string(r.Stdout) != "name? hello world\n" {
			t.Errorf("got %q", r.Stdout)
		}
		// What it says may be what a line of its text is.
		r = runCommand(t, s, session.Command{Text: "for i in 1 2\ndo\necho done $i\ndone\n\necho; cat <<'E'\nhello\nstarted up\nE\nprintf started; sleep 0.1; echo", TTY: true})
		if string(r.Stdout) != "done 1\ndone 2\n\nhello\nstarted up\nstarted\n" {
			t.Errorf("got %q, want all of it", r.Stdout)
		}
		r = runCommand(t, s, session.Command{Text: "echo person; stty raw; (exit 5)", TTY: true, Echo: true})
		if string(r.Stdout) != "person\r\n" || r.ExitCode != 5 {
			t.Errorf("got %q %d, want what a person sees", r.Stdout, r.ExitCode)
		}
		want(t, run(t, s, "echo quiet; pwd"), 0, "quiet\n/tmp\n", "")
	})
}

func TestOneCommandAtATime(t *testing.T) {
	s := open(t, session.Config{})
	started, finish := make(chan struct{}), make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		var once sync.Once
		s.Run(t.Context(), session.Command{
			Text: "echo one; read x </dev/tty", Output: func(session.Stream, []byte) { once.Do(func() { close(started) }) },
			Answer: func(context.Context, session.Prompt) (string, error) { <-finish; return "", nil },
		})
	})
	<-started
	r, err := s.Run(t.Context(), session.Command{Text: "echo two"})
	if !errors.Is(err, session.ErrBusy) || r.Verdict != session.NotStarted {
		t.Errorf("second Run = %s, %v, want not_started and %v", r.Verdict, err, session.ErrBusy)
	}
	close(finish)
	group.Wait()
}

func TestRefusedBeforeAnythingIsSent(t *testing.T) {
	s := open(t, session.Config{})
	for message, command := range map[string]session.Command{
		"NUL byte":                 {Text: "echo a\x00b"},
		"command of 5242880 bytes": {Text: strings.Repeat("x", 5<<20)},
		`environment name "_gw": what begins with`:  {Text: "exit 3", Env: map[string]string{"_gw": "true"}},
		`environment name "1A"`:                     {Text: "true", Env: map[string]string{"1A": "x"}},
		`environment name ""`:                       {Text: "true", Env: map[string]string{"": "x"}},
		"not a stdin of its own":                    {Text: "true", TTY: true, Stdin: strings.NewReader("")},
		"directory of 451 bytes: at most 450":       {Text: "true", Cwd: "/" + strings.Repeat("x", 450)},
		`directory "/\xff" has a control character`: {Text: "true", Cwd: "/\xff"},
		"timeout of -1s":                            {Text: "true", Timeout: -time.Second},
		"idle limit of -1s":                         {Text: "true", Idle: -time.Second},
	} {
		if r, err := s.Run(t.Context(), command); err == nil || !strings.Contains(err.Error(), message) || r.Verdict != session.NotStarted {
			t.Errorf("Run = %s, %v, want not_started and %s", r.Verdict, err, message)
		}
	}
	want(t, run(t, s, "echo alive"), 0, "alive\n", "")
}
