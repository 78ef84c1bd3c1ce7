package conformance

import (
	"slices"

	"gateway/session"
)

const noSubstitution = "the shell has no process substitution"

// interrupts is group E.
var interrupts = []Case{
	{ID: "E1", Name: "a loop is interrupted", Steps: []Step{
		interrupted("echo part; while :; do :; done"),
		{Text: "echo on", Stdout: "on\n"},
	}},
	{ID: "E2", Name: "the status of an interrupt", Steps: []Step{
		with(interrupted("echo part; while :; do :; done"), func(s *Step) { s.Codes = []int{130} }),
		with(interrupted("echo part; sleep 60"), func(s *Step) { s.Codes = []int{130} }),
	}},
	{ID: "E3", Name: "last words after an interrupt", Steps: []Step{
		with(interrupted(`sh -c 'trap "echo bye; exit 42" INT; echo part; while :; do sleep 0.02; done'`), func(s *Step) {
			s.Stdout, s.Codes = "part\nbye\n", []int{42, 130}
		}),
	}},
	{ID: "E4", Name: "what does not listen", Steps: []Step{
		interrupted(`sh -c 'trap "" INT; echo part; while :; do sleep 0.05; done'`),
		interrupted(`sh -c 'trap "" INT QUIT; echo part; while :; do sleep 0.05; done'`),
		{Text: "echo on", Stdout: "on\n"},
	}},
	{ID: "E5", Name: "the shell itself does not listen", Steps: []Step{
		interrupted(`trap '' INT; echo part; sleep 60`),
		{Text: "trap - INT; echo on", Stdout: "on\n"},
	}},
	{ID: "E7", Name: "a pager is interrupted", Needs: Terminal, Steps: []Step{
		{Text: `seq 1 500 >"$T/long"`},
		{
			Text: `busybox less "$T/long"`, With: session.Command{TTY: true}, React: []Reaction{{After: "20", Cancel: true}},
			Verdict: session.Interrupted, Codes: endings, Error: "cmd.interrupted", StdoutLike: Like("20"), StderrLike: Like(""), TerminalLike: Like(""),
		},
		{Text: "echo on; (exit 3)", Stdout: "on\n", Code: 3},
	}},
	{ID: "E9", Name: "^D", Needs: Terminal, Steps: []Step{
		{Text: "echo up; cat", With: session.Command{TTY: true}, React: []Reaction{{After: "up", Type: "line\n\x04"}}, Stdout: "up\nline\n"},
	}},
	{ID: "E10", Name: "^C to a program on the terminal", Needs: Terminal, Steps: []Step{
		{
			Text: `sh -c 'trap "echo interrupted; exit 3" INT; sleep 0.2; echo up; while :; do sleep 0.02; done'`, With: session.Command{TTY: true},
			// A bash that the ^C meets before it waits for the program ends its own line behind that, or
			// before the program's last words: it is given the time to.
			React: []Reaction{{After: "up", Type: "\x03"}}, StdoutLike: Like(`\Aup\n(\^C|\n)*interrupted\n+\z`), Codes: []int{3, 130},
		},
		{Text: "echo on", Stdout: "on\n"},
		{Text: `sh -c 'echo up; exec sleep 60'`, With: session.Command{TTY: true}, React: []Reaction{{After: "up", Type: "\x03"}}, StdoutLike: Like(`\Aup\n`), Code: 130},
	}},
	{ID: "E12", Name: "late output of a job", Steps: []Step{
		{Text: "(sleep 0.3; echo LATE; echo LATE >&2) & echo now", Job: true, Stdout: "now\n", Most: ms(5000)},
		{Text: "echo mine; (exit 3)", Stdout: "mine\n", Code: 3},
		{Text: "echo mine; sleep 0.3", Stdout: "mine\n"},
		// yash tells on stdout what it has waited for.
		{Text: "case ${YASH_VERSION-} in '') wait;; *) wait >/dev/null;; esac; echo mine", Stdout: "mine\n"},
	}},
	{ID: "E13", Name: "a job that is let go", Steps: []Step{
		{Text: `setsid nohup sleep 20 >/dev/null 2>&1 & echo now`, Job: true, Stdout: "now\n", Most: ms(5000)},
		{Text: "(setsid sleep 20 &); echo now", Job: true, Stdout: "now\n", Most: ms(5000)},
		{Text: "nohup sleep 20 & echo now; kill $!", Job: true, Stdout: "now\n", StderrLike: Like(""), TerminalLike: Like("")},
	}},
	{ID: "E15", Name: "a process substitution that lasts", Except: map[string]string{
		"dash": noSubstitution, "busybox ash": noSubstitution, "mksh": noSubstitution, "yash": noSubstitution, "zsh": "the shell waits for it",
	}, Steps: []Step{
		{Text: "echo hi > >(cat >/dev/null; sleep 20); cat <(echo in)", Stdout: "in\n", Most: ms(5000)},
	}},
	{ID: "E16", Name: "a job does not outlive its command's deadline", Steps: []Step{
		with(timedOut(`sh -c 'sleep 60; :' & echo $! >"$T/pid"; echo part; wait >/dev/null`), func(s *Step) { s.Job = true }),
		gone(),
	}},
	{ID: "E18", Name: "no terminal to open", Needs: NoTerminal, Steps: []Step{
		{Text: "(: </dev/tty) 2>/dev/null", Code: Failure, Most: ms(3000)},
		{Text: "echo x", With: session.Command{TTY: true}, Verdict: session.NotStarted, Code: -1, Error: "session.pty_refused"},
	}},
	{ID: "E21", Name: "what nothing but KILL ends", Steps: []Step{
		timedOut(`echo part; sh -c 'echo $$ >"$T/pid"; trap "" INT QUIT TERM HUP; while :; do sleep 0.05; done'`), gone(),
		{Text: "echo on", Stdout: "on\n"},
	}},
	{ID: "E25", Name: "an interrupt that meets the end", Steps: race(6)},
	{ID: "E60", Name: "a child that an interrupt kills", Steps: []Step{
		{Text: "sh -c 'kill -INT $$'; echo on", StdoutLike: Like(`\A(on\n)?\z`), StderrLike: Like(""), TerminalLike: Like(""), Codes: []int{0, 130}},
		{Text: "sh -c 'kill -TERM $$'", Code: 143, StderrLike: Like(""), TerminalLike: Like("")},
	}},
	{ID: "E61", Name: "a child that stops itself", Needs: Terminal, Steps: []Step{
		with(timedOut("echo part; sh -c 'kill -STOP $$; echo on'"), func(s *Step) { s.Either, s.Least, s.Codes = true, 0, append([]int{147}, endings...) }),
		{Text: "echo on", Stdout: "on\n", TerminalLike: Like(""), StderrLike: Like("")},
	}},
	{ID: "E62", Name: "an older job lives on", Steps: []Step{
		{Text: "sleep 60 & J=$!", Job: true},
		timedOut("echo part; sleep 60"),
		{Text: "kill -0 $J && kill $J"},
		{Text: "wait $J >/dev/null 2>&1; true"},
	}},
	{ID: "E63", Name: "a wait for an older job", Steps: []Step{
		{Text: "sleep 60 & J=$!", Job: true},
		with(timedOut("echo part; wait; echo never"), func(s *Step) { s.Codes = []int{130} }),
		with(interrupted("echo part; wait $J; echo never"), func(s *Step) { s.Codes = []int{130} }),
		{Text: "kill -0 $J && kill $J"},
		{Text: "wait $J >/dev/null 2>&1; true"},
	}},
	{ID: "E66", Name: "a job after one that ended long ago", Steps: slices.Concat(
		[]Step{{Text: "true & J=$!", Job: true}},
		slices.Repeat([]Step{{Text: "echo on", Stdout: "on\n"}}, 130),
		[]Step{{Text: "true & wait $! >/dev/null 2>&1", Job: true}},
	)},
	{ID: "E67", Name: "a program that follows a file", Steps: []Step{
		{Text: `echo part >"$T/log"`},
		with(timedOut(`tail -f "$T/log"`), func(s *Step) { s.With.Timeout, s.Least = ms(1000), ms(1000) }), // within which it starts
		interrupted(`tail -f "$T/log"`),
		interrupted(`tail -f "$T/log" | sh -c 'echo $$ >"$T/pid"; exec cat'`),
		gone(),
	}},
	{ID: "E68", Name: "^Z", Needs: Terminal, Steps: []Step{
		{
			Text: `sh -c 'echo $$ >"$T/pid"; echo up; exec sleep 60'`, With: session.Command{TTY: true, Timeout: ms(1000)},
			React: []Reaction{{After: "up", Type: "\x1a"}}, Verdict: session.TimedOut, Codes: append([]int{148}, endings...), Error: "cmd.timeout", StdoutLike: Like(`\Aup\n`), Either: true,
		},
		{Text: "echo on", Stdout: "on\n", TerminalLike: Like(""), StderrLike: Like("")},
		gone(),
	}},
	{ID: "E69", Name: "nothing of it is left", Steps: []Step{
		timedOut(`echo part; sh -c 'echo $$ >"$T/pid"; exec sleep 60' | cat`), gone(),
		timedOut(`echo part; sh -c 'echo $$ >"$T/pid"; exec yes' | cat >/dev/null`), gone(),
		interrupted(`sh -c 'echo $$ >"$T/pid"; echo part; exec sleep 60'`), gone(),
	}},
	{ID: "E65", Name: "an interrupt of each level", Steps: []Step{
		{Text: "cd /usr; V=kept", Cwd: "/usr", Moves: true},
		ordered(`sh -c 'echo part; exec sleep 60'`, session.Int, 130),
		ordered(`echo part; sh -c 'trap "exit 42" INT; while :; do sleep 0.01; done'`, session.Int, 42, 130),
		ordered(`i=0; while :; do i=$((i+1)); [ $i != 99 ] || echo part; done`, session.Int, 130),
		ordered(`sh -c 'trap "" INT; echo part; while :; do sleep 0.01; done'`, session.Term, 143),
		ordered(`sh -c 'trap "" INT TERM; echo part; while :; do sleep 0.01; done'`, session.Kill, 137),
		{Text: "pwd; echo $V", Stdout: "/usr\nkept\n"},
	}},
}

// ordered is a command that says "part" and is interrupted with a level then.
func ordered(text string, level session.Level, codes ...int) Step {
	return with(interrupted(text), func(s *Step) { s.React, s.Codes = []Reaction{{After: "part\n", Interrupt: level}}, codes })
}

func with(s Step, change func(*Step)) Step {
	change(&s)
	return s
}

// gone wants that the process whose number a step has left in $T/pid is no more.
// Once it is dead, somebody has to take note before its number is free.
func gone() Step {
	return Step{
		Text: `p=$(cat "$T/pid"); i=0; while kill -0 $p 2>/dev/null && [ $i -lt 40 ]; do i=$((i+1)); sleep 0.05; done; kill -0 $p 2>/dev/null`,
		Code: Failure, StderrLike: Like(""), TerminalLike: Like(""),
	}
}

// race interrupts commands at the moment of their end: there is one result,
// and the session goes on.
func race(n int) (steps []Step) {
	for range n {
		steps = append(steps,
			Step{
				Text: "echo part", React: []Reaction{{After: "part\n", Cancel: true}}, Stdout: "part\n", Verdict: session.Interrupted, Error: "cmd.interrupted", Either: true,
				Codes: []int{0, 130}, TerminalLike: Like(""),
			},
			Step{Text: "echo next; (exit 3)", Stdout: "next\n", Code: 3})
	}
	return steps
}
