package conformance

import (
	"fmt"
	"strings"

	"gateway/session"
)

// input is group F. Without a terminal of its own a command's standard input is
// at its end; what asks all the same, asks on the terminal.
var input = []Case{
	{ID: "F1", Name: "a question, and its answer", Needs: Terminal, Steps: []Step{
		{
			Text: `printf 'Name? '; read n; echo "Hello $n"`, With: session.Command{TTY: true},
			Answers: []string{"John"}, Asked: "Name? ", Stdout: "Name? Hello John\n",
		},
		{
			Text:    `printf 'Name? ' >/dev/tty; read n </dev/tty; printf 'Town? ' >/dev/tty; read t </dev/tty; echo "$n, $t"`,
			Answers: []string{"John", "Ulm"}, Stdout: "John, Ulm\n", Terminal: "Name? Town? ",
		},
	}},
	{ID: "F2", Name: "a question that nobody answers", Needs: Terminal, Steps: []Step{
		{
			Text: `printf 'Name? ' >/dev/tty; read n </dev/tty; echo "Hello $n"`, Verdict: session.Interrupted, Codes: endings,
			Error: "cmd.needs_input", Prompt: "Name? ", TerminalLike: Like(`\AName\? `), StderrLike: Like(""), Most: ms(9000),
		},
		{Text: "echo on", Stdout: "on\n"},
	}},
	{ID: "F3", Name: "lines typed one by one", Needs: Terminal, Steps: []Step{
		{
			Text: "while read l; do echo \"got $l\"; done", With: session.Command{TTY: true},
			React: []Reaction{{Type: "one\n"}, {After: "got one", Type: "two\n"}, {After: "got two", Type: "\x04"}}, Stdout: "got one\ngot two\n",
		},
	}},
	{ID: "F6", Name: "a program with a prompt of its own", Needs: Terminal, Steps: []Step{
		{
			Text: "PS1='>>> ' ENV= dash -i", With: session.Command{TTY: true},
			React:      []Reaction{{After: ">>> ", Type: "echo $((40+2))\n"}, {After: "42", Type: "exit 5\n"}},
			StdoutLike: Like(`>>> .*42`), Code: 5,
		},
		{Text: "echo on", Stdout: "on\n"},
	}},
	{ID: "F7", Name: "keys, and the screen", Needs: Terminal, Config: &session.Config{Term: "xterm"}, Steps: []Step{
		{
			// An arrow key has another form in the mode that ESC [?1h sets.
			Text: `stty -icanon min 1; printf '\033[?1049h\033[?1h\033[2;3Hmenu'; k=$(dd bs=1 count=3 2>/dev/null); printf '\033[4;1H%s.' "${k#?}"; ` +
				`dd bs=1 count=1 2>/dev/null >/dev/null; printf '\033[?1049lback'; (exit 6)`,
			With: session.Command{TTY: true}, Code: 6, StdoutLike: Like(`menu.*OA\..*back\z`),
			React: []Reaction{
				{After: "menu", Shows: Like(`\A\n  menu\n*\z`), Press: "up"},
				{After: "OA.", Shows: Like(`\A\n  menu\n\nOA\.\n*\z`), Press: "q"},
				{After: "back", Shows: Like(`\Aback\n*\z`)},
			},
		},
		{Text: "echo on", Stdout: "on\n"},
	}},
	{ID: "F8", Name: "standard input that is at its end", Steps: []Step{
		{Text: "cat; read x || echo end", Stdout: "end\n", Most: ms(5000)},
		{Text: "wc -c | tr -d ' '", Stdout: "0\n"},
	}},
	{ID: "F9", Name: "a password", Needs: Terminal, Steps: []Step{
		{
			Text:    `stty -echo </dev/tty; printf 'Password: ' >/dev/tty; read p </dev/tty; [ "$p" = hunter2 ] && echo right`,
			Answers: []string{"hunter2"}, Asked: "Password: ", Secret: true, Stdout: "right\n", Terminal: "Password: ", Most: ms(9000),
		},
		{
			Text: "openssl passwd -1 -salt xx", Answers: []string{"hunter2", "hunter2"}, Secret: true,
			StdoutLike: Like(`\A\$1\$xx\$`), StderrLike: Without("hunter2"), TerminalLike: Without("hunter2"), Most: ms(15000),
		},
		{
			Text: `rm -f "$T/key"; ssh-keygen -q -t ed25519 -f "$T/key"`, Answers: []string{"hunter2", "hunter2"}, Secret: true,
			StdoutLike: Without("hunter2"), StderrLike: Without("hunter2"), TerminalLike: Without("hunter2"), Most: ms(15000),
		},
		{
			Text: `ssh-keygen -y -f "$T/key"; rm "$T/key"`, Answers: []string{"hunter2"}, Secret: true,
			StdoutLike: Like(`\Assh-ed25519 `), StderrLike: Without("hunter2"), TerminalLike: Without("hunter2"), Most: ms(15000),
		},
	}},
	{ID: "F10", Name: "silence is no question", Steps: []Step{
		{Text: "sleep 0.6", Unasked: true},
		{Text: "printf 'working... '; sleep 0.3; echo done", Unasked: true, Stdout: "working... done\n"},
		{Text: "printf 'Password: ' >&2; sleep 0.3 | cat; (exit 3)", Unasked: true, Stderr: "Password: ", Code: 3},
		{Text: "printf '? '; i=0; while [ $i -lt 10000 ]; do i=$((i+1)); done", Unasked: true, Stdout: "? "},
	}},
	{ID: "F61", Name: "what others say on the terminal is no question", Needs: Terminal, Steps: []Step{
		{Text: `(setsid sh -c 'sleep 0.2; printf "Broadcast message: down for maintenance? " >"$0"' "/dev/$(ps -o tty= -p $$ | tr -d ' ')" &); sleep 0.8`, Unasked: true, TerminalLike: Like("maintenance")},
		{Text: "sleep 0.1 & sleep 0.6", Job: true, Unasked: true, TerminalLike: Like("")},
	}},
	{ID: "F62", Name: "a trace is no question", Config: &session.Config{}, Steps: []Step{
		{Text: "set -x", StderrLike: Like("")},
		{Text: "sleep 0.6", Unasked: true, StderrLike: Like("sleep")},
		{Text: "set +x", StderrLike: Like("")},
	}},
	{ID: "F63", Name: "a trap that speaks is no question", Config: &session.Config{}, Except: on("dash, mksh, yash, busybox ash", "the shell has no such trap"), Steps: []Step{
		{Text: "trap 'printf \"trap? \" >&2' DEBUG", StderrLike: Like("")},
		{Text: "sleep 0.6", Unasked: true, StderrLike: Like("trap\\? "), TerminalLike: Like("")},
		{Text: "trap - DEBUG", StderrLike: Like(""), TerminalLike: Like("")},
	}},
	{ID: "F12", Name: "a pipeline whose head reads the terminal", Needs: Terminal, Steps: []Step{
		{
			Text: "cat </dev/tty | sleep 20", Verdict: session.Interrupted, Codes: endings, Error: "cmd.needs_input",
			StderrLike: Like(""), TerminalLike: Without("_gw"), Most: ms(15000),
		},
		{Text: "echo on", Stdout: "on\n"},
	}},
	{ID: "F15", Name: "standard input of every byte", Steps: []Step{
		{Text: "cat", Stdin: new(strings.Repeat(span(0, 255), 400)), Stdout: strings.Repeat(span(0, 255), 400)},
		{Text: "head -c 3", Stdin: new(strings.Repeat("x", 300_000)), Stdout: "xxx"},
		{Text: "echo unread", Stdin: new(strings.Repeat("x", 300_000)), Stdout: "unread\n"},
		{Text: "cat", Stdin: new("")},
		{Text: "read a; read b; echo $b$a; cat >&2; (exit 4)", Stdin: new("1\n2\nrest"), Stdout: "21\n", Stderr: "rest", Code: 4},
		{Text: "sh", Stdin: new("echo in; exit 6"), Stdout: "in\n", Code: 6},
	}},
	{ID: "F18", Name: "what is typed to a command that reads no terminal", Needs: Terminal, Steps: []Step{
		{Text: "echo up; sleep 0.3", React: []Reaction{{After: "up", Type: "echo typed; kept=typed\n"}}, Stdout: "up\n"},
	}},
	{ID: "F19", Name: "a terminal, or none", Needs: Terminal, Steps: []Step{
		{Text: "test -t 0 || test -t 1 || test -t 2 || echo none", Stdout: "none\n"},
		{Text: "test -t 0 && test -t 1 && test -t 2 && echo all", With: session.Command{TTY: true}, Stdout: "all\n"},
		{Text: "test -t 0 || test -t 1 || test -t 2 || echo none", Stdout: "none\n"},
	}},
	{ID: "F20", Name: "no terminal on the streams", Steps: []Step{
		{Text: "test -t 0 || test -t 1 || test -t 2 || echo none; sh -c 'test -t 0 || test -t 1 || test -t 2 || echo none'", Stdout: "none\nnone\n"},
	}},
	{ID: "F21", Name: "much is typed while the program sleeps", Needs: Terminal, Steps: []Step{
		{
			Text: `echo up; sleep 0.3; cat >"$T/typed"; cksum <"$T/typed"; wc -l <"$T/typed" | tr -d ' '`, With: session.Command{TTY: true},
			React: []Reaction{{After: "up", Type: typedLines() + "\x04"}}, StdoutLike: Like(`\Aup\n\d+ 200000\n2000\n\z`),
		},
		{Text: `cat "$T/typed"`, Stdout: typedLines()},
	}},
	{ID: "F60", Name: "a person's terminal", Needs: Terminal, Steps: []Step{
		{Text: "echo person; echo too >&2; (exit 5)", With: session.Command{TTY: true, Echo: true}, Stdout: "person\r\ntoo\r\n", Code: 5},
		{Text: "read a; echo got $a", With: session.Command{TTY: true, Echo: true}, React: []Reaction{{Type: "typed\n"}}, StdoutLike: Like(`\A(typed\r\n)*got typed\r\n\z`)},
		{Text: "stty raw; echo raw", With: session.Command{TTY: true}, StdoutLike: Like(`\Araw\n`)},
		{Text: "echo quiet", Stdout: "quiet\n"},
	}},
}

// typedLines is 200,000 bytes of short lines.
func typedLines() string {
	var b strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&b, "%04d%s\n", i, strings.Repeat("x", 95))
	}
	return b.String()
}
