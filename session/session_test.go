package session_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"gateway/gateway"
	"gateway/internal/sshdtest"
	"gateway/session"
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

// openIn opens a session on this machine whose directory is in one of the test's. It may
// leave processes.
func openIn(t *testing.T, config session.Config) (s *session.Session, runtime string) {
	t.Helper()
	runtime = t.TempDir()
	tr := local.New(local.Config{Env: []string{"HOME=" + t.TempDir(), "XDG_RUNTIME_DIR=" + runtime}})
	t.Cleanup(func() { tr.Close() })
	s, err := session.Open(t.Context(), tr, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, runtime
}

// processes returns the pids of what carries the session's name.
func processes(id string) []string {
	files := sshdtest.ProcFiles("environ")
	var pids []string
	for _, file := range files {
		if b, err := os.ReadFile(file); err == nil && bytes.Contains(b, []byte("GATEWAY_SESSION="+id)) {
			pids = append(pids, filepath.Base(filepath.Dir(file)))
		}
	}
	return pids
}

func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !condition(); <-time.After(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Errorf("not within ten seconds: %s", what)
			return
		}
	}
}

// run runs a command that must end by itself.
func run(t *testing.T, s *session.Session, text string) session.Result {
	t.Helper()
	return runCommand(t, s, session.Command{Text: text})
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
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if r := run(t, s, "cd '"+strings.ReplaceAll(dir, "'", `'\''`)+"'"); r.Cwd != dir {
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

func TestLongTexts(t *testing.T) {
	t.Parallel()
	eachShell(t, func(t *testing.T, s *session.Session) {
		for _, size := range []int{500, 899, 900, 901, 3000, 4095, 4096, 20_000, 200_000, 1 << 20} {
			word := strings.Repeat("x", size)
			r := run(t, s, "v='"+word+"'; echo ${#v}; A=1; cd /tmp; # comment")
			want(t, r, 0, fmt.Sprintln(size), "")
		}
		want(t, run(t, s, "pwd; echo $A"), 0, "/tmp\n1\n", "")
		lines := strings.Repeat("n=$((n+1))\n", 5000)
		want(t, run(t, s, "n=0\n"+lines+"echo $n"), 0, "5000\n", "")
	})
}

// TestNoticesAreNoOutput ends a job, of which the shell then speaks when it
// pleases, but never on a later command's streams.
func TestNoticesAreNoOutput(t *testing.T) {
	t.Parallel()
	eachShell(t, func(t *testing.T, s *session.Session) {
		long := " # " + strings.Repeat("x", 20_000)
		for _, next := range []session.Command{
			{Text: "echo on"},
			{Text: "echo on" + long},
			{Text: "echo on" + long, Env: map[string]string{"A": "b"}},
			{Text: "echo on" + long, Stdin: strings.NewReader("")},
			{Text: "echo on; echo" + long + "\n", Merge: true},
			{Text: "echo on; return"},
			{Text: "echo on; return" + long},
		} {
			dir := t.TempDir()
			run(t, s, "{ : >"+dir+"/done; } >/dev/null 2>&1 &")
			eventually(t, "the job is over", func() bool { _, err := os.Stat(dir + "/done"); return err == nil })
			r := runCommand(t, s, next)
			if !strings.HasPrefix(string(r.Stdout), "on\n") || len(r.Stderr) > 0 {
				t.Errorf("%.20q: got %.200q %q", next.Text, r.Stdout, r.Stderr)
			}
		}
	})
}

func TestShellThatEndsGivesItsStatus(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text    string
		verdict session.Verdict
		code    int
		signal  string
	}{
		{"echo last; exit 3", session.Exited, 3, ""},
		{"echo last; exit 0", session.Exited, 0, ""},
		{"echo last; kill -9 $$", session.Signaled, 137, "KILL"},
		{"echo last; exec sh -c 'exit 4'", session.Exited, 4, ""},
		{"set -e; echo last; false", session.Exited, 1, ""},
		{"set -eu; f() { echo last; exit 9; }; f", session.Exited, 9, ""},
		{"trap 'echo last' EXIT; exit 5", session.Exited, 5, ""},
	} {
		t.Run(test.text, func(t *testing.T) {
			eachShell(t, func(t *testing.T, s *session.Session) {
				r := run(t, s, test.text)
				if len(r.Stderr) > 0 {
					t.Errorf("stderr = %q, want nothing", r.Stderr)
				}
				// dash and ash run the EXIT trap when they have their own streams back.
				r.Stdout = append(r.Stdout, r.Terminal...)
				if r.Verdict != test.verdict || r.ExitCode != test.code || r.Signal != test.signal || string(r.Stdout) != "last\n" || !r.Ended {
					t.Errorf("got %s %d %s %q ended=%v, want %s %d %s %q and the end", r.Verdict, r.ExitCode, r.Signal, r.Stdout, r.Ended, test.verdict, test.code, test.signal, "last\n")
				}
				r, err := s.Run(t.Context(), session.Command{Text: "echo again"})
				if !errors.Is(err, session.ErrClosed) || r.Verdict != session.NotStarted {
					t.Errorf("Run after the end = %s, %v, want not_started and %v", r.Verdict, err, session.ErrClosed)
				}
			})
		})
	}
}

// TestShellThatEndsBesideAJob: a subshell that runs on holds the terminal.
func TestShellThatEndsBesideAJob(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, says string
		plain      bool
		within     time.Duration
	}{
		{"silent", ":", false, 3 * time.Second},
		{"silent, no terminal", ":", true, 3 * time.Second},
		{"speaks", "echo tick", false, 3 * time.Second},
		{"speaks, no terminal", "echo tick", true, 3 * time.Second},
		{"speaks on the terminal", "echo tick >/dev/tty", false, 8 * time.Second},
	} {
		for _, shell := range shells {
			t.Run(shell+" "+test.name, func(t *testing.T) {
				t.Parallel()
				up := filepath.Join(t.TempDir(), "up")
				s := open(t, session.Config{Shell: shell, NoTerminal: test.plain})
				job := "(: >" + up + "; while [ -e " + up + " ]; do " + test.says + "; sleep 0.05; done) & while ! [ -e " + up + " ]; do sleep 0.01; done; "
				defer os.Remove(up)
				r, err := s.Run(t.Context(), session.Command{Text: job + "echo part; exit 3", Timeout: 20 * time.Second})
				said := strings.ReplaceAll(string(r.Stdout), "tick\n", "")
				said = strings.TrimSuffix(said, "tick") // it is ended when it likes
				if err != nil || r.Verdict != session.Exited || r.ExitCode != 3 || !r.Ended || said != "part\n" || r.Duration > test.within {
					t.Errorf("got %s %d %q after %v, ended %v, %v; want exited 3", r.Verdict, r.ExitCode, r.Stdout, r.Duration, r.Ended, err)
				}
			})
		}
	}
}

// TestCloseLeavesSubshells: what holds the terminal goes on, as after a logout of
// these shells. bash and ksh93 control no jobs, which are hung up with them.
func TestCloseLeavesSubshells(t *testing.T) {
	for _, shell := range []string{"dash", "zsh", "mksh", "yash", "busybox ash"} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := open(t, session.Config{Shell: shell})
			run(t, s, "cd "+dir+"; { : >up; while [ -e up ]; do sleep 0.05; done; : >done; } & while ! [ -e up ]; do sleep 0.01; done")
			s.Close()
			os.Remove(filepath.Join(dir, "up"))
			eventually(t, "the job has ended by itself", func() bool { _, err := os.Stat(filepath.Join(dir, "done")); return err == nil })
		})
	}
}

// TestShellThatEndedBefore: the shell is killed before it has read the command.
func TestShellThatEndedBefore(t *testing.T) {
	for _, onTerminal := range []bool{false, true} {
		for _, shell := range shells {
			t.Run(shell+map[bool]string{true: " on the terminal"}[onTerminal], func(t *testing.T) {
				t.Parallel()
				file := filepath.Join(t.TempDir(), "ran")
				s := open(t, session.Config{Shell: shell})
				pid, err := strconv.Atoi(strings.TrimSpace(string(run(t, s, "echo $$").Stdout)))
				if err != nil {
					t.Fatal(err)
				}
				syscall.Kill(pid, syscall.SIGSTOP)
				command := session.Command{Text: "touch " + file, TTY: onTerminal, Started: func() { syscall.Kill(pid, syscall.SIGKILL) }}
				r, err := s.Run(t.Context(), command)
				if r.Verdict != session.Unknown || !errors.Is(err, session.ErrLost) || !r.Ended || r.ExitCode != -1 {
					t.Errorf("got %s %d, ended %v, %v; want unknown", r.Verdict, r.ExitCode, r.Ended, err)
				}
				if _, err := os.Stat(file); err == nil {
					t.Error("it ran")
				}
			})
		}
	}
}

func TestStdinIsExactAndEnds(t *testing.T) {
	eachShell(t, func(t *testing.T, s *session.Session) {
		all := make([]byte, 300_000)
		for i := range all {
			all[i] = byte(i * 7)
		}
		r := runCommand(t, s, session.Command{Text: "cat", Stdin: bytes.NewReader(all)})
		want(t, r, 0, string(all), "")
		want(t, runCommand(t, s, session.Command{Text: "head -c 3", Stdin: bytes.NewReader(all)}), 0, string(all[:3]), "")
		want(t, runCommand(t, s, session.Command{Text: "read a; read b; echo $b$a; cd /tmp", Stdin: strings.NewReader("1\n2\n")}), 0, "21\n", "")
		want(t, runCommand(t, s, session.Command{Text: "echo unread", Stdin: bytes.NewReader(all)}), 0, "unread\n", "")
		want(t, runCommand(t, s, session.Command{Text: "cat", Stdin: strings.NewReader("")}), 0, "", "")
		want(t, run(t, s, "pwd"), 0, "/tmp\n", "")
	})
}

// TestStdinAfterStdin: what fed one command is not yet gone when the next one's
// is fed.
func TestStdinAfterStdin(t *testing.T) {
	t.Parallel()
	eachShell(t, func(t *testing.T, s *session.Session) {
		for range 20 {
			want(t, runCommand(t, s, session.Command{Text: "echo unread", Stdin: strings.NewReader("x")}), 0, "unread\n", "")
			want(t, runCommand(t, s, session.Command{Text: "cat", Stdin: strings.NewReader("read\n")}), 0, "read\n", "")
		}
	})
}

func TestMergedStreamsKeepTheirOrder(t *testing.T) {
	eachShell(t, func(t *testing.T, s *session.Session) {
		r := runCommand(t, s, session.Command{Text: "for i in 1 2 3; do echo o$i; echo e$i >&2; done", Merge: true})
		want(t, r, 0, "o1\ne1\no2\ne2\no3\ne3\n", "")
		if r.Streams != session.Merged {
			t.Errorf("streams = %s, want %s", r.Streams, session.Merged)
		}
	})
}

func TestOutputIsBoundedAndCounted(t *testing.T) {
	t.Parallel()
	eachShell(t, func(t *testing.T, s *session.Session) {
		spools := map[session.Stream]*memorySpool{}
		var streamed int64
		var mu sync.Mutex
		r := runCommand(t, s, session.Command{
			Text:  "seq 1 200000; seq 1 10 >&2",
			Limit: 1000,
			Spool: func(from session.Stream) session.Spool {
				spools[from] = &memorySpool{name: from.String()}
				return spools[from]
			},
			Output: func(_ session.Stream, b []byte) { mu.Lock(); streamed += int64(len(b)); mu.Unlock() },
		})
		var all bytes.Buffer
		for i := 1; i <= 200000; i++ {
			fmt.Fprintln(&all, i)
		}
		whole := all.String()
		if got, want := string(r.Stdout), whole[:500]+whole[len(whole)-500:]; got != want {
			t.Errorf("kept %q, want %q", got, want)
		}
		if r.StdoutBytes != int64(len(whole)) || !r.Truncated || r.Spool != "stdout" || r.StderrBytes != 21 || streamed != r.StdoutBytes+21 {
			t.Errorf("got %d and %d bytes, truncated %v, spool %q, %d streamed", r.StdoutBytes, r.StderrBytes, r.Truncated, r.Spool, streamed)
		}
		if len(spools) != 1 || spools[session.Stdout].String() != whole || !spools[session.Stdout].closed {
			t.Errorf("the spool does not hold the whole of stdout, alone and closed")
		}
	})
}

// What is dropped goes from character to character, of what is UTF-8.
func TestOutputIsCutBetweenCharacters(t *testing.T) {
	eachShell(t, func(t *testing.T, s *session.Session) {
		kept := func(text string, limit int, want string) {
			t.Helper()
			r := runCommand(t, s, session.Command{Text: "cat", Stdin: strings.NewReader(text), Limit: limit})
			if string(r.Stdout) != want || r.StdoutBytes != int64(len(text)) || r.Truncated != (len(text) > limit) {
				t.Errorf("%q, limit %d: kept %q of %d bytes, truncated %v, want %q", text, limit, r.Stdout, r.StdoutBytes, r.Truncated, want)
			}
		}
		kept("aöüb", 6, "aöüb")
		kept("aöüb", 5, "aöb")
		kept("aöüb", 4, "ab")
		kept("a😀b", 5, "ab")
		kept("a"+strings.Repeat("ö", 10)+"b", 8, "aööb")
		kept("a"+strings.Repeat("ö", 1000)+"b", 1000, "a"+strings.Repeat("ö", 498)+"b")
		kept(strings.Repeat("\xa9", 2000), 1000, strings.Repeat("\xa9", 1000))
		kept("abc\xe2\x82d\x82\xacefg", 8, "abc\xe2\xacefg")
	})
}

type memorySpool struct {
	bytes.Buffer
	name   string
	closed bool
}

func (m *memorySpool) Close() error { m.closed = true; return nil }
func (m *memorySpool) Name() string { return m.name }

func TestTimeoutKeepsTheSessionAndThePartialOutput(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"sleep":             "echo part; sleep 1000",
		"shell loop":        "echo part; LOOP",
		"another prompt":    "PS1='$ '; PS2='> '; echo part; sleep 1000",
		"pipeline":          "echo part; sleep 1000 | (sleep 1000; cat)",
		"reader":            "echo part; read x </dev/tty",
		"ignores interrupt": `echo part; sh -c 'trap "" INT; while :; do sleep 0.1; done'`,
		"ignores all":       `echo part; sh -c 'trap "" INT QUIT TERM HUP; while :; do sleep 0.1; done'`,
		"forks away":        `echo part; (setsid sleep 1000 &) ; sh -c 'sleep 1000 & sleep 1000'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachShell(t, func(t *testing.T, s *session.Session) {
				run(t, s, "cd /usr; V=kept; f() { echo $V; }")
				begun := time.Now()
				nobody := func(*session.Prompt) {} // leaves the reader waiting
				r, err := s.Run(t.Context(), session.Command{Text: strings.Replace(text, "LOOP", endless(s.Shell()), 1), Timeout: 300 * time.Millisecond, Waiting: nobody})
				if r.Verdict != session.TimedOut || !errors.Is(err, context.DeadlineExceeded) || string(r.Stdout) != "part\n" {
					t.Errorf("got %s %q %q, %v, want timed_out with the partial output", r.Verdict, r.Stdout, r.Stderr, err)
				}
				if r.Cwd != "/usr" || r.Ended {
					t.Errorf("cwd = %q, ended = %v, want /usr and a living session", r.Cwd, r.Ended)
				}
				want(t, run(t, s, "pwd; f"), 0, "/usr\nkept\n", "")
				// Two seconds on an idle machine; this one runs everything at once.
				if took := time.Since(begun); took > 8*time.Second {
					t.Errorf("the next result came %v after the start", took)
				}
				eventually(t, "nothing left but the shell", func() bool { return len(processes(s.ID())) == 1 })
			})
		})
	}
}

func TestProgramInPlaceOfTheShellTimesOut(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"echo part; exec sleep 1000", `echo part; exec sh -c 'trap "" INT QUIT TERM; while :; do sleep 0.1; done'`} {
		eachShell(t, func(t *testing.T, s *session.Session) {
			begun := time.Now()
			r, err := s.Run(t.Context(), session.Command{Text: text, Timeout: 200 * time.Millisecond})
			if r.Verdict != session.TimedOut || !errors.Is(err, context.DeadlineExceeded) || string(r.Stdout) != "part\n" || !r.Ended {
				t.Errorf("got %s %q ended=%v, %v, want timed_out and the session's end", r.Verdict, r.Stdout, r.Ended, err)
			}
			if took := time.Since(begun); took > 10*time.Second {
				t.Errorf("took %v", took)
			}
			eventually(t, "nothing left", func() bool { return len(processes(s.ID())) == 0 })
		})
	}
}

func TestStartedComesBeforeOutput(t *testing.T) {
	eachShell(t, func(t *testing.T, s *session.Session) {
		var order []string
		var mu sync.Mutex
		note := func(what string) { mu.Lock(); order = append(order, what); mu.Unlock() }
		r := runCommand(t, s, session.Command{
			Text: "read a; echo got $a", TTY: true, Echo: true,
			Started: func() { note("started"); s.Write([]byte("early\n")) },
			Output:  func(session.Stream, []byte) { note("output") },
		})
		if !strings.HasSuffix(string(r.Stdout), "got early\r\n") || order[0] != "started" {
			t.Errorf("got %q, order %q", r.Stdout, order)
		}
	})
}

func TestFloodTimesOut(t *testing.T) {
	eachShell(t, func(t *testing.T, s *session.Session) {
		r, err := s.Run(t.Context(), session.Command{Text: "yes & yes >&2", Timeout: 300 * time.Millisecond, Limit: 1000})
		if r.Verdict != session.TimedOut || err == nil || r.StdoutBytes == 0 || r.StderrBytes == 0 {
			t.Errorf("got %s, %d and %d bytes, %v", r.Verdict, r.StdoutBytes, r.StderrBytes, err)
		}
		// The shell's notice about its job may come on the terminal.
		if r := run(t, s, "echo clean"); string(r.Stdout) != "clean\n" || len(r.Stderr) > 0 {
			t.Errorf("got %.100q %.100q, want a clean stream", r.Stdout, r.Stderr)
		}
	})
}

func TestCancelInterrupts(t *testing.T) {
	eachShell(t, func(t *testing.T, s *session.Session) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r, err := s.Run(ctx, session.Command{
			Text:   `sh -c 'trap "echo bye; exit 42" INT; echo up; while :; do sleep 0.02; done'`,
			Output: func(session.Stream, []byte) { cancel() },
		})
		if r.Verdict != session.Interrupted || !errors.Is(err, context.Canceled) || string(r.Stdout) != "up\nbye\n" || r.ExitCode != 42 && r.ExitCode != 130 {
			t.Errorf("got %s %d %q %q, %v, want interrupted, its own status and last words", r.Verdict, r.ExitCode, r.Stdout, r.Stderr, err)
		}
		want(t, run(t, s, "echo alive"), 0, "alive\n", "")
		late, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer stop()
		if r, err := s.Run(late, session.Command{Text: "sleep 1000"}); r.Verdict != session.TimedOut || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Run with a deadline = %s, %v, want timed_out", r.Verdict, err)
		}
		r, err = s.Run(ctx, session.Command{Text: "echo never"})
		if r.Verdict != session.NotStarted || !errors.Is(err, context.Canceled) {
			t.Errorf("Run with an ended context = %s, %v, want not_started", r.Verdict, err)
		}
	})
}

func TestBackgroundJobsKeepTheirBytes(t *testing.T) {
	t.Parallel()
	eachShell(t, func(t *testing.T, s *session.Session) {
		r := run(t, s, "(sleep 1; echo LATE; sleep 0.3; echo LATER) & echo now")
		if string(r.Stdout) != "now\n" {
			t.Errorf("got %q, want %q at once", r.Stdout, "now\n")
		}
		for range 30 { // until both have been written
			r := run(t, s, "echo mine; sleep 0.05")
			if string(r.Stdout) != "mine\n" || r.Background {
				t.Fatalf("got %q background=%v, want only the command's own", r.Stdout, r.Background)
			}
		}
		// An older job survives the end of a later command.
		run(t, s, "sleep 1000 & J=$!")
		s.Run(t.Context(), session.Command{Text: "sleep 1000", Timeout: 100 * time.Millisecond})
		if r := run(t, s, "kill -0 $J && kill $J"); r.ExitCode != 0 {
			t.Errorf("the older job is gone: %q", r.Stderr)
		}
	})
}

// Each job keeps the streams of its command; the session turns to others, and
// the oldest channels go. Neither the shell nor a job may be hung up by that.
func TestManyBackgroundJobs(t *testing.T) {
	eachShell(t, func(t *testing.T, s *session.Session) {
		for i := range 6 {
			run(t, s, fmt.Sprintf("sleep 1000 & J%d=$!", i))
		}
		if r := run(t, s, "kill -0 $J0 $J1 $J2 $J3 $J4 $J5 && echo all"); string(r.Stdout) != "all\n" {
			t.Errorf("got %q %q, want all jobs alive", r.Stdout, r.Stderr)
		}
		// A child that has not begun its program yet ignores TERM, as an interactive
		// shell does.
		run(t, s, "kill -KILL $J0 $J1 $J2 $J3 $J4 $J5")
	})
}

// busybox ash takes the end of a job for the end of its input, and the fiftieth
// in a row for good.
func TestJobsThatEndBetweenCommands(t *testing.T) {
	t.Parallel()
	eachShell(t, func(t *testing.T, s *session.Session) {
		ended := filepath.Join(t.TempDir(), "ended")
		run(t, s, `for i in 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39; do `+
			`(sleep 0.$i; echo >>`+ended+`) & (sleep 0.${i}4; echo >>`+ended+`) & (sleep 0.${i}7; echo >>`+ended+`) & done 2>/dev/null`)
		eventually(t, "ninety jobs have ended", func() bool {
			lines, _ := os.ReadFile(ended)
			return len(lines) == 90
		})
		r := run(t, s, "echo alive >&2; (exit 3)")
		if r.ExitCode != 3 || string(r.Stderr) != "alive\n" || strings.Contains(string(r.Terminal), "exit") {
			t.Errorf("got %s %d, stderr %q, terminal %q", r.Verdict, r.ExitCode, r.Stderr, r.Terminal)
		}
	})
}

// It has other words for that where a job is stopped.
func TestJobsThatEndBesideAStoppedOne(t *testing.T) {
	s := open(t, session.Config{Shell: "busybox ash"})
	run(t, s, "sh -c 'kill -STOP $$'")
	for range 20 {
		run(t, s, "sleep 60 & J=$!")
		if r := run(t, s, "kill -KILL $J"); strings.Contains(string(r.Terminal), "stopped") {
			t.Fatalf("terminal %q, want nothing of the shell's", r.Terminal)
		}
	}
}

// TestCloseLeavesJobs: the end of a session in order leaves the jobs that run,
// and no job stopped, whether it is in the shell's process group or in its own.
func TestCloseLeavesJobs(t *testing.T) {
	t.Parallel()
	state := func(pid string) string {
		b, _ := os.ReadFile("/proc/" + pid + "/stat")
		_, rest, _ := strings.Cut(string(b), ") ")
		state, _, _ := strings.Cut(rest, " ")
		return state
	}
	t.Run("running", func(t *testing.T) { // others hang their jobs up, as at any logout
		s := open(t, session.Config{Shell: "dash"})
		job := strings.TrimSpace(string(run(t, s, "sleep 1000 >/dev/null 2>&1 & echo $!").Stdout))
		s.Close()
		eventually(t, "the shell has ended", func() bool { return len(processes(s.ID())) == 1 })
		if got := state(job); got != "S" && got != "R" {
			t.Errorf("the job that runs is %q", got)
		}
		exec.Command("kill", job).Run()
	})
	eachShell(t, func(t *testing.T, s *session.Session) {
		r := run(t, s, "for m in + -; do set ${m}m; sleep 1000 >/dev/null 2>&1 & kill -STOP $!; echo $!; done 2>/dev/null")
		jobs := strings.Fields(string(r.Stdout))
		for _, job := range jobs {
			eventually(t, "it is stopped", func() bool { return state(job) == "T" })
		}
		s.Close()
		for _, job := range jobs {
			eventually(t, "it is not stopped", func() bool { return state(job) != "T" })
		}
		exec.Command("kill", append([]string{"-9"}, jobs...)...).Run() // a shell may have let them go on
	})
}

func TestWaitingForInput(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"prompt on the terminal": `printf "name? " >/dev/tty; read a </dev/tty; echo "got $a"`,
		"prompt on stderr":       `printf "name? " >&2; read a </dev/tty; echo "got $a"`,
		"program":                `sh -c 'printf "name? " >/dev/tty; read a </dev/tty; echo "got $a"'`,
	} {
		t.Run(name, func(t *testing.T) {
			eachShell(t, func(t *testing.T, s *session.Session) {
				begun := time.Now()
				r, err := s.Run(t.Context(), session.Command{Text: text})
				if r.Verdict != session.Interrupted || !errors.Is(err, session.ErrNeedsInput) || r.Prompt != "name? " {
					t.Errorf("got %s, prompt %q, %v, want interrupted at the prompt", r.Verdict, r.Prompt, err)
				}
				if took := time.Since(begun); took > 8*time.Second { // a quarter of a second on an idle machine
					t.Errorf("took %v", took)
				}
				r, err = s.Run(t.Context(), session.Command{Text: text, Answer: func(_ context.Context, p session.Prompt) (string, error) {
					if p.Text != "name? " || p.Kind != session.LinePrompt {
						t.Errorf("asked %+v", p)
					}
					return "it is I", nil
				}})
				if err != nil || string(r.Stdout) != "got it is I\n" {
					t.Errorf("got %q, %v, want the answer", r.Stdout, err)
				}
			})
		})
	}
}

// TestPromptIsNoNotice ends a job while a prompt stands on the terminal, where
// zsh says so at once.
func TestPromptIsNoNotice(t *testing.T) {
	eachShell(t, func(t *testing.T, s *session.Session) {
		r, err := s.Run(t.Context(), session.Command{Text: `sleep 0.05 & printf "name? " >/dev/tty; read a </dev/tty`})
		if !errors.Is(err, session.ErrNeedsInput) || r.Prompt != "name? " {
			t.Errorf("got %s, prompt %q, %v", r.Verdict, r.Prompt, err)
		}
	})
}

func TestSilenceIsNoPrompt(t *testing.T) {
	t.Parallel()
	eachShell(t, func(t *testing.T, s *session.Session) {
		for _, text := range []string{
			"printf 'working... '; sleep 0.6; echo done",
			"printf 'working... ' >/dev/tty; sleep 0.6; echo done",
			"set -x; sleep 0.4; echo done; set +x",
			"sleep 1.5 | cat; echo done",
		} {
			r, err := s.Run(t.Context(), session.Command{Text: text, Answer: func(_ context.Context, p session.Prompt) (string, error) {
				t.Errorf("%s: asked %+v", text, p)
				return "", io.EOF
			}})
			if err != nil || !strings.HasSuffix(string(r.Stdout), "done\n") {
				t.Errorf("%s: got %q, %v", text, r.Stdout, err)
			}
		}
	})
}

func TestTracesStayTheCommands(t *testing.T) {
	eachShell(t, func(t *testing.T, s *session.Session) {
		for _, text := range []string{"set -x", "echo out", "set -v", "echo out", "trap 'echo D' DEBUG", "echo out"} {
			r, err := s.Run(t.Context(), session.Command{Text: text})
			if err != nil || r.ExitCode != 0 && !strings.HasPrefix(text, "trap") || strings.Contains(string(r.Stderr)+string(r.Stdout)+string(r.Terminal), "_gw") || strings.Contains(string(r.Stderr), "printf") {
				t.Errorf("%s: got %d %q %q %q, %v, want nothing of the frame", text, r.ExitCode, r.Stdout, r.Stderr, r.Terminal, err)
			}
		}
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
	for name, command := range map[string]session.Command{
		"a NUL byte":      {Text: "echo a\x00b"},
		"too long":        {Text: strings.Repeat("x", 5<<20)},
		"a bad name":      {Text: "true", Env: map[string]string{"1A": "x"}},
		"an empty name":   {Text: "true", Env: map[string]string{"": "x"}},
		"stdin and a tty": {Text: "true", TTY: true, Stdin: strings.NewReader("")},
	} {
		if r, err := s.Run(t.Context(), command); err == nil || r.Verdict != session.NotStarted {
			t.Errorf("%s: Run = %s, %v, want not_started", name, r.Verdict, err)
		}
	}
	want(t, run(t, s, "echo alive"), 0, "alive\n", "")
}

func TestOpenBringsTheSessionWhereItShouldBe(t *testing.T) {
	for _, shell := range shells {
		t.Run(shell, func(t *testing.T) {
			s := open(t, session.Config{Shell: shell, Cwd: "/usr", Env: map[string]string{"A": "it's\n"}, Login: true})
			want(t, run(t, s, `pwd; sh -c 'echo "$A"'; echo $TERM $PAGER; env | grep -c ^_gw`), 1, "/usr\nit's\n\ndumb cat\n0\n", "")
		})
	}
	for code, config := range map[string]session.Config{
		"cmd.cwd":           {Cwd: "/nonexistent"},
		"shell.unsupported": {Shell: "python3"},
	} {
		tr := local.New(local.Config{})
		defer tr.Close()
		_, err := session.Open(t.Context(), tr, config)
		var coded interface{ ErrorCode() string }
		if !errors.As(err, &coded) || coded.ErrorCode() != code {
			t.Errorf("Open(%+v) = %v, want %s", config, err, code)
		}
	}
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, ".bash_profile"), []byte("echo not today; exit 4\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	leaving := local.New(local.Config{Env: []string{"HOME=" + home}})
	defer leaving.Close()
	if _, err := session.Open(t.Context(), leaving, session.Config{Shell: "bash", Login: true}); err == nil || !strings.Contains(err.Error(), "login profile ends the shell, with status 4") || !strings.Contains(err.Error(), "not today") {
		t.Errorf("Open with a profile that exits = %v", err)
	}
	if err := os.WriteFile(filepath.Join(home, ".profile"), []byte("A=kept; . /nonexistent/env; exit 5\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := session.Open(t.Context(), leaving, session.Config{Shell: "dash", Login: true}); err != nil {
		t.Errorf("Open with a profile that dash gives up = %v", err)
	} else {
		if r := run(t, s, "echo $A"); string(r.Stdout) != "kept\n" {
			t.Errorf("it has %q", r.Stdout)
		}
		s.Close()
	}
	if err := os.WriteFile(filepath.Join(home, ".bash_profile"), []byte("readonly PS1='my prompt'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := session.Open(t.Context(), leaving, session.Config{Shell: "bash", Login: true, Env: map[string]string{"A": "x"}}); gateway.Code(err) != "shell.no_sync" || !strings.Contains(err.Error(), "makes PS1 or PS2 readonly") {
		t.Errorf("Open with a profile that keeps its prompt = %v", err)
	}
	tr := local.New(local.Config{})
	defer tr.Close()
	if _, err := session.Open(t.Context(), tr, session.Config{Shell: "/nonexistent/bash"}); err == nil {
		t.Error("Open with a missing shell = nil")
	}
}
