package conformance

import "gateway/session"

// wedges is group W: each of them has taken a session away from somebody, for
// good or with a wrong answer.
var wedges = []Case{
	{ID: "W1", Name: "a comment at the end", Steps: []Step{{Text: "echo a # end", Stdout: "a\n"}}},
	{ID: "W2", Name: "; or & at the end", Steps: []Step{{Text: "echo a;", Stdout: "a\n"}, {Text: "sleep 0.1 &", Job: true}, {Text: "wait >/dev/null 2>&1; (exit 3)", Code: 3}}},
	{ID: "W3", Name: "nothing", Steps: []Step{{Text: ""}, {Text: "\n\n"}, {Text: " \t "}}},
	{ID: "W4", Name: "a heredoc at the end", Steps: []Step{{Text: "cat <<EOF\nx\nEOF", Stdout: "x\n"}, {Text: "cat <<EOF\nx\nEOF\n", Stdout: "x\n"}}},
	{ID: "W5", Name: "any syntax error", Steps: []Step{mistake("if"), mistake("echo ${"), mistake("a=("), mistake("while do"), mistake("{ echo"), mistake("fi"), mistake("echo $((1+)"), mistake("cat <")}},
	{ID: "W6", Name: "cat, read", Steps: []Step{{Text: "cat", Most: ms(5000)}, {Text: "read x", Code: 1, Most: ms(5000)}}},
	{ID: "W7", Name: "a question on the terminal", Needs: Terminal, Steps: []Step{
		{Text: "read x </dev/tty", Verdict: session.Interrupted, Codes: endings, Error: "cmd.needs_input", StderrLike: Like(""), TerminalLike: Like(`\A\n?\z`), Most: ms(9000)},
	}},
	{ID: "W8", Name: "a pager", Needs: Terminal, Steps: []Step{
		{Text: `seq 1 500 >"$T/long"; ${PAGER:-more} "$T/long"`, With: session.Command{TTY: true}, Stdout: numbers(1, 500)},
	}},
	{ID: "W9", Name: "stty echo", Needs: Terminal, Steps: []Step{{Text: "stty echo </dev/tty"}, {Text: "echo a", Stdout: "a\n"}, {Text: "stty -echo </dev/tty"}}},
	{ID: "W10", Name: "exec sh", Steps: []Step{{Text: "exec sh", Ended: true, Most: ms(9000)}}},
	{ID: "W11", Name: "exec sh, on the terminal", Needs: Terminal, Steps: []Step{
		{Text: "PS1='>>> ' ENV= exec dash -i", With: session.Command{TTY: true}, React: []Reaction{{After: ">>> ", Type: "exit 3\n"}}, StdoutLike: Like(">>> "), Code: 3, Ended: true},
	}},
	{ID: "W12", Name: "exec 1>/dev/null", Steps: []Step{{Text: "exec 1>/dev/null"}, {Text: "echo a", Stdout: "a\n"}}},
	{ID: "W13", Name: "a child that SIGINT kills", Steps: []Step{{Text: "(sh -c 'kill -INT $$'); (exit 3)", Codes: []int{3, 130}, StderrLike: Like(""), TerminalLike: Like("")}}},
	{ID: "W14", Name: "over 100 KB on both streams", Steps: []Step{{Text: "seq 1 25000; seq 1 25000 >&2", Stdout: numbers(1, 25_000), Stderr: numbers(1, 25_000)}}},
	{ID: "W15", Name: "TAB", Steps: []Step{{Text: "echo\t'a\t\tb'", Stdout: "a\t\tb\n"}}},
	{ID: "W16", Name: `"wow!!"`, Steps: []Step{{Text: `echo "wow!!"`, Stdout: "wow!!\n"}}},
	{ID: "W17", Name: "history", Steps: []Step{{Text: "history", StdoutLike: Without("_gw"), StderrLike: Like(""), Codes: []int{0, Failure}}}},
	{ID: "W18", Name: "set -x", Steps: []Step{
		{Text: "set -x; echo a", Stdout: "a\n", StderrLike: Like("echo a"), TerminalLike: Without("_gw")},
		{Text: "echo b", Stdout: "b\n", StderrLike: Like("echo b"), TerminalLike: Without("_gw")},
		{Text: "set +x", StderrLike: Without("_gw"), TerminalLike: Without("_gw")},
	}},
	{ID: "W19", Name: "set -v", Steps: []Step{
		{Text: "set -v; echo a", Stdout: "a\n", StderrLike: Without("_gw"), TerminalLike: Without("_gw")},
		{Text: "echo b", Stdout: "b\n", StderrLike: Without("_gw"), TerminalLike: Without("_gw")},
		{Text: "set +v", StderrLike: Without("_gw"), TerminalLike: Without("_gw")},
	}},
	{ID: "W20", Name: "a line of more than 4095 bytes", Steps: []Step{{Text: "echo " + lettered(5000), Stdout: lettered(5000) + "\n"}}},
	{ID: "W21", Name: "a TMPDIR that is no place", Steps: []Step{{Text: "TMPDIR=/nonexistent; export TMPDIR; echo a", Stdout: "a\n"}, {Text: "echo b; (exit 3)", Stdout: "b\n", Code: 3}, {Text: "unset TMPDIR"}}},
	{ID: "W22", Name: "aliases and functions of printf, cat, eval", Steps: []Step{
		{Text: "printf() { false; }; cat() { false; }; alias eval=false", StderrLike: Like("")},
		{Text: "echo a; (exit 3)", Stdout: "a\n", Code: 3},
		{Text: "unset -f printf cat; unalias eval"},
	}},
	{ID: "W23", Name: "exit 3", Steps: []Step{{Text: "exit 3", Code: 3, Ended: true}}},
	{ID: "W24", Name: "set -e", Steps: []Step{{Text: "set -e"}, {Text: "echo on", Stdout: "on\n"}, {Text: "false", Code: 1, Ended: true}}},
	{ID: "W25", Name: "a deadline", Steps: []Step{timedOut("echo part; sleep 60"), {Text: "echo on", Stdout: "on\n"}}},
	{ID: "W26", Name: "a shell that keeps the terminal for its job", Steps: []Step{
		{Text: `bash --norc -ic "sleep 0.1"`, StderrLike: Like("")},
		{Text: "echo on", Stdout: "on\n"},
		{Text: `x=$(bash --norc -ic "sleep 0.1" 2>&1)`},
		{Text: "echo on", Stdout: "on\n"},
		{Text: `bash --norc -ic "sleep 60" >/dev/null`, With: session.Command{Timeout: ms(300)}, Verdict: session.TimedOut, Codes: endings, Error: "cmd.timeout", StderrLike: Like(""), Most: ms(9000)},
		{Text: "/bin/echo on", Stdout: "on\n"},
	}},
	{ID: "W27", Name: "a shell that is killed on the terminal", Needs: Terminal, Steps: []Step{
		{Text: `bash --norc -ic 'kill -9 $$'`, With: session.Command{TTY: true}, Code: 137, StdoutLike: Like("")},
		{Text: "echo on", Stdout: "on\n"},
		{Text: "stty -a </dev/tty", StdoutLike: Like("-opost.* -echo ")},
	}},
}
