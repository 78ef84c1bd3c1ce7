package conformance

import (
	"strings"

	"gateway/session"
)

// volume is group G.
var volume = []Case{
	{ID: "G1", Name: "many lines: the head and the tail, and a count", Steps: []Step{
		{
			Text: "seq 1 50000; (exit 3)", With: session.Command{Limit: 40}, Stdout: "1\n2\n3\n4\n5\n6\n7\n8\n9\n107\n49998\n49999\n50000\n",
			StdoutBytes: 288_894, Truncated: true, Code: 3,
		},
		{Text: "seq 1 50000", Stdout: numbers(1, 50_000)},
	}},
	{ID: "G4", Name: "one long line", Steps: []Step{
		long(5_000), long(256_000), long(1 << 20),
		{
			Text: "head -c 10000000 /dev/zero | tr '\\0' x; (exit 3)", Code: 3, Truncated: true, StdoutBytes: 10_000_000,
			Stdout: strings.Repeat("x", 1<<20),
		},
	}},
	{ID: "G6", Name: "a file of a megabyte", Steps: []Step{
		{Text: `cat >"$T/file"`, Stdin: new(lettered(1 << 20))},
		{Text: `cat "$T/file"`, Stdout: lettered(1 << 20)},
	}},
	{ID: "G12", Name: "each stream has its own limit", Steps: []Step{
		{Text: "printf abcdefghijklmnop; printf short >&2", With: session.Command{Limit: 8}, Stdout: "abcdmnop", Stderr: "short", StdoutBytes: 16, Truncated: true},
		{Text: "printf short; printf abcdefghijklmnop >&2", With: session.Command{Limit: 8}, Stdout: "short", Stderr: "abcdmnop", StdoutBytes: 5, Truncated: true},
	}},
	{ID: "G13", Name: "carriage returns", Steps: []Step{{Text: `printf 'p 1\rp 2\rdone\n'`, Stdout: "p 1\rp 2\rdone\n"}}},
	{ID: "G15", Name: "colours with colons", Steps: []Step{{Text: `printf '\033[38:2::255:0:0mred\033[0m\n'`, Stdout: "\x1b[38:2::255:0:0mred\x1b[0m\n"}}},
	{ID: "G16", Name: "an escape that does not end", Steps: []Step{
		{Text: `printf 'x\033]0;title'`, Stdout: "x\x1b]0;title"},
		{Text: "echo on", Stdout: "on\n"},
		{Text: `printf 'x\033'; printf '\033' >&2; (exit 3)`, Stdout: "x\x1b", Stderr: "\x1b", Code: 3},
		{Text: "echo on", Stdout: "on\n"},
	}},
	{ID: "G17", Name: "an escape on the terminal that does not end", Needs: Terminal, Steps: []Step{
		{Text: `printf 'x\033]0;title' >/dev/tty; echo on`, Stdout: "on\n", Terminal: "x\x1b]0;title"},
		{Text: `printf 'x\036P' >/dev/tty; echo on; (exit 3)`, Stdout: "on\n", TerminalLike: Like(`\Ax`), Code: 3},
	}},
	{ID: "G18", Name: "what only looks like an escape", Steps: []Step{{Text: `printf '%s\n' '\x5b31m \033[0m ^[[0m'`, Stdout: "\\x5b31m \\033[0m ^[[0m\n"}}},
	{ID: "G19", Name: "nothing but control bytes", Steps: []Step{{Text: `printf '\033[2J\033[H\007\033[?25l'`, Stdout: "\x1b[2J\x1b[H\a\x1b[?25l"}}},
	{ID: "G22", Name: "pieces without a newline", Steps: []Step{
		{Text: "for i in 1 2 3 4; do printf .$i; sleep 0.05; done; printf '\\r100%%'", Stdout: ".1.2.3.4\r100%"},
	}},
	{ID: "G24", Name: "long lines are not wrapped", Steps: []Step{
		{Text: "echo " + lettered(400), Stdout: lettered(400) + "\n"},
	}},
	{ID: "G26", Name: "nor on a terminal", Needs: Terminal, Steps: []Step{
		{Text: "echo " + lettered(400), With: session.Command{TTY: true}, Stdout: lettered(400) + "\n"},
	}},
	{ID: "G25", Name: "blanks at the end", Steps: []Step{{Text: `printf 'a  \n\t\n  '`, Stdout: "a  \n\t\n  "}}},
	{ID: "G27", Name: "pagers", Steps: []Step{
		{Text: `seq 1 100 >"$T/page"; $PAGER "$T/page"; $GIT_PAGER "$T/page"; $MANPAGER "$T/page"; $SYSTEMD_PAGER "$T/page"`, Stdout: strings.Repeat(numbers(1, 100), 4)},
		{Text: `eval "${PAGER:-more}" <"$T/page"`, Stdout: numbers(1, 100)},
	}},
	{ID: "G60", Name: "both streams at once", Steps: []Step{
		{Text: "seq 1 30000 & seq 1 30000 >&2; wait >/dev/null", Job: true, Stdout: numbers(1, 30_000), Stderr: numbers(1, 30_000)},
		{Text: "i=0; while [ $i -lt 300 ]; do echo o$i; echo e$i >&2; i=$((i+1)); done", Stdout: prefixed("o", 300), Stderr: prefixed("e", 300)},
		{Text: "echo on", Stdout: "on\n"},
	}},
	{ID: "G61", Name: "much output, merged", Steps: []Step{
		{Text: "seq 1 30000; seq 1 30000 >&2", With: session.Command{Merge: true}, Stdout: numbers(1, 30_000) + numbers(1, 30_000)},
		{Text: "i=0; while [ $i -lt 2000 ]; do echo $i; echo e >&2; i=$((i+1)); done", With: session.Command{Merge: true}, Stdout: strings.ReplaceAll(numbers(0, 1_999), "\n", "\ne\n")},
	}},
	{ID: "G62", Name: "much output of a command on the terminal", Needs: Terminal, Steps: []Step{
		{Text: "seq 1 30000", With: session.Command{TTY: true}, Stdout: numbers(1, 30_000)},
	}},
}

// long is one line of n bytes that does not end.
func long(n int) Step {
	return Step{Text: "cat; (exit 3)", Stdin: new(lettered(n)), Stdout: lettered(n), Code: 3}
}

func prefixed(prefix string, n int) string {
	return prefix + strings.TrimSuffix(strings.ReplaceAll("0\n"+numbers(1, n-1), "\n", "\n"+prefix), prefix)
}
