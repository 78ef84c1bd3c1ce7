package conformance

import (
	"strings"

	"gateway/session"
)

// deadlines is group D.
var deadlines = []Case{
	{ID: "D12", Name: "a deadline", Steps: []Step{timedOut("echo part; sleep 60"), {Text: "echo on", Stdout: "on\n"}}},
	{ID: "D13", Name: "a deadline of a loop, a pipeline, a group", Steps: []Step{
		timedOut("echo part; while :; do :; done"),
		timedOut("echo part; sleep 60 | cat"),
		timedOut("(echo part; (sleep 60; echo never))"),
		timedOut(`echo part; sh -c 'while :; do sleep 0.05; done'`),
	}},
	{ID: "D15", Name: "late output of what timed out", Steps: []Step{
		with(timedOut(`echo part; sh -c 'trap "" INT QUIT TERM; sleep 0.4; echo LATE; echo LATE >&2; sleep 60'`), func(s *Step) {
			s.Stdout, s.StdoutLike = "", Like(`\Apart\n(LATE\n)?\z`)
		}),
		{Text: "echo mine; sleep 0.3", Stdout: "mine\n"},
		{Text: "echo mine", Stdout: "mine\n"},
	}},
	{ID: "D17", Name: "a deadline of silence", Steps: []Step{
		{
			Text: "for i in 1 2 3 4 5; do echo $i; sleep 0.3; done; sleep 60", With: session.Command{Idle: ms(1000), Timeout: ms(60_000)},
			Verdict: session.TimedOut, Codes: endings, Error: "cmd.timeout", Stdout: "1\n2\n3\n4\n5\n", StderrLike: Like(""), TerminalLike: Without("_gw"), Least: ms(2200), Most: ms(9000),
		},
		{Text: "echo on", Stdout: "on\n"},
	}},
	{ID: "D18", Name: "a deadline of what never stops to write", Steps: []Step{
		{Text: "yes", With: session.Command{Timeout: ms(200), Limit: 10}, Verdict: session.TimedOut, Codes: endings, Error: "cmd.timeout", Stdout: strings.Repeat("y\n", 5), StderrLike: Like(`\A\n?\z`), Truncated: true, Most: ms(9000)},
		{Text: "echo on", Stdout: "on\n"},
	}},
	{ID: "D21", Name: "a context that has ended", Steps: []Step{
		{Text: `: >"$T/never"`, Canceled: true, Verdict: session.NotStarted, Code: -1, Error: "session: context canceled"},
		{Text: `test -e "$T/never"`, Code: 1},
	}},
	{ID: "D26", Name: "deadlines and interrupts, again and again", Steps: rounds(3)},
	{ID: "D63", Name: "a deadline of a program that fills the screen", Needs: Terminal, Steps: []Step{
		{Text: `seq 1 500 >"$T/long"`},
		{
			Text: `sh -c 'echo $$ >"$T/pid"; exec busybox less "$T/long"'`, With: session.Command{TTY: true, Timeout: ms(500)},
			Verdict: session.TimedOut, Codes: endings, Error: "cmd.timeout", StdoutLike: Like("20"), Least: ms(500), Most: ms(9000),
		},
		{Text: "echo on; (exit 3)", Stdout: "on\n", Code: 3},
		gone(),
		{
			Text: `sh -c 'echo $$ >"$T/pid"; exec busybox vi "$T/long"'`, With: session.Command{TTY: true, Timeout: ms(500)},
			Verdict: session.TimedOut, Codes: endings, Error: "cmd.timeout", StdoutLike: Like("20"), Least: ms(500), Most: ms(9000),
		},
		{Text: "echo on; (exit 3)", Stdout: "on\n", Code: 3},
		gone(),
	}},
	{ID: "D60", Name: "what a deadline leaves alone", Steps: []Step{
		{Text: "cd /usr; V=kept; f() { echo $V; }", Cwd: "/usr", Moves: true},
		timedOut("echo part; V=changed; sleep 60"),
		{Text: "pwd; f", Stdout: "/usr\nchanged\n"},
	}},
	{ID: "D61", Name: "an end before its deadline", Steps: []Step{{Text: "echo on; (exit 3)", With: session.Command{Timeout: ms(20_000)}, Stdout: "on\n", Code: 3}}},
	{ID: "D62", Name: "a program after a pipeline that was ended", Steps: []Step{
		timedOut("echo part; sleep 60 | cat"),
		{Text: "sh -c 'sleep 0.1; echo on; exit 3'", Stdout: "on\n", Code: 3},
		timedOut("echo part; while :; do sleep 0.01; done | cat; sleep 60"),
		{Text: "echo a | cat; sh -c 'sleep 0.1; echo on; exit 3'", Stdout: "a\non\n", Code: 3},
	}},
}

// endings are what a command may say when it is ended: its own status after an
// interrupt, a quit, a TERM or a KILL, or nothing.
var endings = []int{-1, 0, 1, 130, 131, 137, 143}

// timedOut is a command that says "part" and has to be ended.
func timedOut(text string) Step {
	return Step{
		Text: text, With: session.Command{Timeout: ms(150)}, Verdict: session.TimedOut, Codes: endings, Error: "cmd.timeout",
		Stdout: "part\n", StderrLike: Like(""), TerminalLike: Without("_gw"), Least: ms(150), Most: ms(9000),
	}
}

// interrupted is one that is interrupted once it has said "part".
func interrupted(text string) Step {
	return Step{
		Text: text, React: []Reaction{{After: "part\n", Cancel: true}}, Verdict: session.Interrupted, Codes: endings, Error: "cmd.interrupted",
		Stdout: "part\n", StderrLike: Like(""), TerminalLike: Without("_gw"), Most: ms(9000),
	}
}

func rounds(n int) (steps []Step) {
	for range n {
		steps = append(steps,
			timedOut("echo part; sleep 60"),
			interrupted("echo part; sleep 60"),
			interrupted("echo part; while :; do :; done"),
			Step{Text: "echo clean; (exit 3)", Stdout: "clean\n", Code: 3})
	}
	return append(steps, timedOut(`echo part; sh -c 'trap "" INT; while :; do sleep 0.05; done'`), Step{Text: "echo clean", Stdout: "clean\n"})
}
