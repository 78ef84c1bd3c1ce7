//go:build npm

package compare

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"gateway/internal/netsim"
	"gateway/internal/sshdtest"
)

// A story is something that an agent does, and what it must be able to rely on.
type story struct {
	name, wants string
	play        func(t *testing.T, p peer, m machine) cell
}

var stories = []story{
	{"state", "directory and exported variable are there for the next command", state},
	{"streams", "stdout and stderr come apart, in a session and without one", streams},
	{"exit code", "3, 0 and 137 (killed) come as they are, in a session and without one", exitCode},
	{"long command", "a command of 15 s is started in 5 s, shows what it has said so far, and tells its status at the end", long},
	{"hung program", "it is interrupted, it is gone, and the session has its directory and variables", hung},
	{"prompt", "a program asks on its terminal, and is answered", prompt},
	{"much output", "of 5 MB the answer has at most 64 KiB and says so, and a line of the middle can be had", much},
	{"odd bytes", "colours and bytes that are not UTF-8 come as readable text, and the next command is well", odd},
	{"host key", "a machine with another key than the known one is refused", hostKey},
	{"cut link", "a command whose link is cut may have run, and one that was never sent has not", cut},
	{"warm echo hi", "as little time as can be: the median of up to 30 calls on an open connection, as the client sees it. The machine was busy; trust the order, not the numbers", warm},
}

func state(t *testing.T, p peer, m machine) cell {
	s := newSeat(t, p, m)
	if _, err := s.run("cd /usr/share; export KEPT=still"); err != nil {
		return fails("%v", err)
	}
	r, err := s.run(`echo "$KEPT in $PWD"`)
	switch {
	case err != nil:
		return fails("%v", err)
	case strings.TrimSpace(r.stdout) == "still in /usr/share":
		return passes("both are there")
	case strings.Contains(r.stdout, "still in /usr/share"):
		return halves("both are there, in the midst of the shell's echo and prompt")
	}
	return fails("neither is there: %q", brief(r.stdout))
}

func streams(t *testing.T, p peer, m machine) cell {
	s := newSeat(t, p, m)
	apart := func(r reading, err error) bool {
		return err == nil && strings.TrimSpace(r.stdout) == "out" && strings.TrimSpace(r.stderr) == "err"
	}
	const command = "echo out; echo err >&2"
	once := apart(s.once(command))
	in := p.run != nil && apart(s.run(command))
	switch {
	case once && in:
		return passes("apart in both")
	case once:
		return halves("apart without a session; in a session both are one stream")
	}
	return fails("both are one stream")
}

func exitCode(t *testing.T, p peer, m machine) cell {
	s := newSeat(t, p, m)
	exact := func(call func(string) (reading, error)) (wrong string) {
		for _, want := range []int{3, 0, 137} {
			command := fmt.Sprintf("sh -c 'exit %d'", want)
			if want == 137 {
				command = "sh -c 'kill -9 $$'"
			}
			switch r, err := call(command); {
			case err != nil:
				return err.Error()
			case r.exit == nil:
				return fmt.Sprintf("%d is not told", want)
			case *r.exit != want:
				return fmt.Sprintf("%d is told as %d", want, *r.exit)
			}
		}
		return ""
	}
	once := exact(s.once)
	in := "there is no session"
	if p.run != nil {
		in = exact(s.run)
	}
	switch {
	case once == "" && in == "":
		return passes("all three, in both")
	case once == "" || in == "":
		return halves("without a session: %s; in a session: %s", orExact(once), orExact(in))
	}
	return fails("without a session: %s; in a session: %s", once, in)
}

func orExact(wrong string) string {
	if wrong == "" {
		return "exact"
	}
	return wrong
}

func long(t *testing.T, p peer, m machine) cell {
	s := newSeat(t, p, m)
	const command = "for i in 1 2 3 4 5; do echo step $i; sleep 3; done; exit 7"
	if p.begin == nil || p.poll == nil {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if _, err := s.doing(ctx, p.once(command)); err != nil {
			return fails("no such tool: the call says nothing for 5 s")
		}
		return fails("no such tool")
	}
	s.open()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	r, err := s.doing(ctx, p.begin(s.shell, "("+command+")"))
	if err != nil {
		return fails("the call says nothing for 5 s")
	}
	id, said, polls := r.id, r.stdout, 0
	for begun := time.Now(); !r.over && time.Since(begun) < 25*time.Second; polls++ {
		if r, err = s.do(p.poll(id)); err != nil {
			return fails("%v", err)
		}
		if r.running || r.over {
			said += r.stdout
			continue
		}
		// The whole each time, and no word on whether it runs.
		if !strings.Contains(r.stdout, "step") && strings.Contains(said, "step") {
			break
		}
		said = r.stdout
		time.Sleep(2 * time.Second)
	}
	switch all := strings.Count(said, "step ") == 5; {
	case all && r.over && r.exit != nil && *r.exit == 7:
		return passes("polled %d times, status 7 at the end", polls)
	case all:
		return halves("its output can be polled; when it has ended both are gone, and its status is never told")
	}
	return fails("polled %d times, and got %q", polls, brief(said))
}

func hung(t *testing.T, p peer, m machine) cell {
	s := newSeat(t, p, m)
	if _, err := s.run("cd /usr/share; export KEPT=still"); err != nil {
		return fails("%v", err)
	}
	// No other process has this argument.
	program := fmt.Sprintf("sleep 6%07d", os.Getpid()+time.Now().Nanosecond()%1e6)
	way := "interrupt"
	if p.interrupt != nil {
		r, err := s.do(p.begin(s.shell, program))
		if err == nil {
			_, err = s.do(p.interrupt(r.id))
		}
		if err != nil {
			return fails("%v", err)
		}
	} else {
		way = "cancelling the call"
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if _, err := s.doing(ctx, p.run(s.shell, program)); err == nil {
			way = "nothing: the call is answered as if it had ended, and"
		}
	}
	kept := func() (bool, string) {
		time.Sleep(time.Second) // a model takes longer to say what it wants next
		r, err := s.run(`echo "$KEPT in $PWD"`)
		if err != nil {
			return false, err.Error()
		}
		return strings.Contains(r.stdout, "still in /usr/share"), brief(r.text)
	}
	whole, says := kept()
	if whole && !alive(program) {
		return passes("%s ends it, and all is there", way)
	}
	if !alive(program) {
		return halves("%s ends it, but the session says %q", way, says)
	}
	// What is left is a kill from a shell beside it.
	if _, err := s.once("pkill -xf '" + program + "'"); err != nil || alive(program) {
		return fails("no such tool, and a kill from a shell beside it does not help")
	}
	if whole, says = kept(); whole {
		return halves("no such tool; a kill from a shell beside it ends it, and all is there")
	}
	return fails("no such tool; a kill from a shell beside it ends it, but the session says %q", says)
}

// alive reports whether a program runs on this machine, which is the server's.
func alive(program string) bool {
	want := strings.ReplaceAll(program, " ", "\x00") + "\x00"
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	return slices.ContainsFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		return err == nil && string(text) == want
	})
}

func prompt(t *testing.T, p peer, m machine) cell {
	s := newSeat(t, p, m)
	const command = `read -p 'go on? ' x; echo "got <$x>"`
	if p.answer == nil {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		in := p.once
		if p.run != nil {
			s.open()
			in = func(command string) ask { return p.run(s.shell, command) }
		}
		switch r, err := s.doing(ctx, in(command)); {
		case errors.Is(err, errSilent):
			return fails("no such tool: the call says nothing for 5 s")
		case err != nil:
			return fails("no such tool: %v", err)
		default:
			return fails("no such tool: %s", odds(r))
		}
	}
	s.open()
	asks, err := s.do(p.prompt(s.shell, command))
	if err != nil {
		return fails("%v", err)
	}
	r, err := s.do(p.answer(s.shell, "yes"))
	switch got := strings.Contains(r.stdout, "got <yes>"); {
	case err != nil:
		return fails("%v", err)
	case got && asks.running && r.over:
		return passes("it says that it waits and what for, and then what came of it")
	case got:
		return halves("it can be answered, but nothing tells that it waits")
	}
	return fails("got %q", brief(r.stdout))
}

// odds says what a program got that nobody had answered.
func odds(r reading) string {
	if match := regexp.MustCompile(`got <.*>`).FindString(r.stdout); match != "" {
		return fmt.Sprintf("the program %s", match)
	}
	return fmt.Sprintf("%q", brief(r.stdout))
}

func much(t *testing.T, p peer, m machine) cell {
	s := newSeat(t, p, m)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := s.doing(ctx, p.once("seq 1 740000"))
	size := len(r.text)
	says := strings.Contains(r.text, "trunc") || strings.Contains(r.text, "left out") || strings.Contains(r.text, "omitted")
	switch {
	case errors.Is(err, errSilent):
		return fails("no answer in a minute")
	case err != nil:
		return fails("%v", err)
	case !strings.Contains(r.stdout, "740000") && !strings.Contains(r.stdout, "100"):
		return fails("no output: %q", brief(r.text))
	case size > 64<<10 && !says && !strings.Contains(r.text, "740000"):
		return fails("the answer has %d KiB, and does not say that the rest is missing", size>>10)
	case size > 64<<10:
		return fails("the answer has %d KiB", size>>10)
	case p.middle == nil:
		return halves("the answer has %d KiB%s, and the rest is gone", size>>10, map[bool]string{true: " and says so"}[says])
	}
	found, err := s.do(p.middle(r.id, "370000"))
	if err != nil || !strings.Contains(found.stdout, "370000") {
		return fails("the line is not found: %v %q", err, brief(found.text))
	}
	return passes("%d KiB, and the line is found", size>>10)
}

func odd(t *testing.T, p peer, m machine) cell {
	s := newSeat(t, p, m)
	r, err := s.run(`printf '\033[31mred\033[0m caf\303\251 \377\376\n10%%\r99%%\rend!\n'`)
	if err != nil {
		return fails("%v", err)
	}
	next, err := s.run("echo well")
	switch escape := strings.ContainsAny(r.stdout, "\x1b"); {
	case err != nil || !strings.Contains(next.stdout, "well"):
		return fails("the next command is not well")
	case !strings.Contains(r.stdout, "red") || !strings.Contains(r.stdout, "café") || !strings.Contains(r.stdout, "end") || !utf8.ValidString(r.stdout):
		return fails("the text is lost: %q", brief(r.stdout))
	case escape:
		return halves("escape sequences go to the model")
	case strings.Contains(r.stdout, "99%"):
		return halves("no escape sequences, but every state of a progress bar")
	}
	return passes("no escape sequences, the last state of a progress bar, broken bytes as �")
}

func hostKey(t *testing.T, p peer, m machine) cell {
	other := sshdtest.Start(t, sshdtest.Options{})
	m.key = other.HostKey // not the one that the machine shows
	mark := filepath.Join(t.TempDir(), "ran")
	s := newSeat(t, p, m)
	r, err := s.once("touch " + mark)
	_, ran := os.Stat(mark)
	switch says := regexp.MustCompile(`(?i)host.?key|known_hosts|fingerprint`).MatchString(r.text); {
	case ran == nil:
		return fails("the command runs, whatever known_hosts says%s", p.keys)
	case says:
		return passes("refused, and it says why%s", p.keys)
	}
	return halves("refused, without a reason: %v %q", err, brief(r.text))
}

func cut(t *testing.T, p peer, m machine) cell {
	proxy := netsim.Start(t, m.server.Addr, 0)
	m.port = proxy.Port()
	s := newSeat(t, p, m)
	if _, err := s.once("true"); err != nil {
		return fails("%v", err)
	}
	// The command tells when it runs: nothing else says that it was sent.
	mark := filepath.Join(t.TempDir(), "ran")
	go func() {
		for t.Context().Err() == nil {
			if _, err := os.Stat(mark); err == nil {
				time.Sleep(200 * time.Millisecond) // until the client has heard that it runs
				proxy.Cut(netsim.RST)
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	command := "touch " + mark + "; sleep 5"
	lost, err := s.once(command)
	silent := errors.Is(err, errSilent)
	proxy.Close()
	unsent, _ := s.once("true")
	unknown := regexp.MustCompile(`(?i)may have run|unknown|nobody knows`)
	told := brief(strings.ReplaceAll(lost.text, command, "…"))
	switch {
	case silent:
		return fails("no answer in %v", patience)
	case lost.exit != nil:
		return fails("the cut command is told as ended with status %d", *lost.exit)
	case unknown.MatchString(lost.text) && !unknown.MatchString(unsent.text):
		return passes("“unknown”, and an error that says why it was not sent")
	}
	return halves("the cut one is told as %q, with no word on whether it ran; the other as %q", told, brief(unsent.text))
}

// warm measures what a command costs that does next to nothing.
func warm(t *testing.T, p peer, m machine) cell {
	s := newSeat(t, p, m)
	median := func(call func(string) (reading, error)) string {
		var took []time.Duration
		for begun := time.Now(); len(took) < 30 && time.Since(begun) < 6*time.Second; {
			at := time.Now()
			if r, err := call("echo hi"); err != nil || !strings.Contains(r.stdout, "hi") {
				return "fails"
			}
			took = append(took, time.Since(at))
		}
		slices.Sort(took)
		return fmt.Sprintf("%.1f ms", float64(took[len(took)/2].Microseconds())/1000)
	}
	if _, err := s.once("true"); err != nil {
		return fails("%v", err)
	}
	once := median(s.once)
	if _, err := s.run("true"); err != nil {
		return fails("%v", err)
	}
	return cell{figure, median(s.run) + " in a session, " + once + " without"}
}

// brief is the beginning of a text, on one line.
func brief(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > 110 {
		return string(runes[:110]) + "…"
	}
	return text
}
