package conformance

import (
	"fmt"
	"strconv"
	"strings"

	"gateway/session"
)

// plain is group A.
var plain = []Case{
	{ID: "A1", Name: "a line", Steps: []Step{{Text: "echo hello", Stdout: "hello\n"}}},
	{ID: "A3", Name: "a leading newline, none at the end", Steps: []Step{{Text: `printf '\nx'`, Stdout: "\nx"}}},
	{ID: "A4", Name: "newlines around", Steps: []Step{{Text: `printf '\n\nx\n\n\n'`, Stdout: "\n\nx\n\n\n"}}},
	{ID: "A6", Name: "no newline at the end", Steps: []Step{
		{Text: "printf abc", Stdout: "abc"},
		{Text: "printf abc >&2", Stderr: "abc"},
		{Text: "echo next", Stdout: "next\n"},
	}},
	{ID: "A7", Name: "nothing", Steps: []Step{{Text: "true"}, {Text: ":"}}},
	{ID: "A9", Name: "no such command", Steps: []Step{
		{Text: "doesnt-exist", Code: 127, StderrLike: Like(`doesnt-exist`)},
		{Text: "/nonexistent/program", Code: 127, StderrLike: Like(`/nonexistent/program`)},
		{Text: "/", Codes: []int{126, 127}, StderrLike: Like(`/`)},
	}},
	{ID: "A10", Name: "and, or", Steps: []Step{{Text: "false && true", Code: 1}, {Text: "false || true"}}},
	{ID: "A12", Name: "status of a program", Steps: []Step{
		{Text: "sh -c 'exit 42'", Code: 42},
		{Text: "sh -c 'exit 255'", Code: 255},
		{Text: "! true", Code: 1},
	}},
	{ID: "A13", Name: "exit", Steps: []Step{{Text: "echo last; exit 17", Stdout: "last\n", Code: 17, Ended: true}}},
	{ID: "A15", Name: "the shell dies of a signal", Steps: []Step{
		{Text: "echo last; kill -KILL $$", Stdout: "last\n", Verdict: session.Signaled, Code: 137, Signal: "KILL", Ended: true},
	}},
	{ID: "A16", Name: "a real 0", Steps: []Step{{Text: "echo last; exit 0", Stdout: "last\n", Ended: true}}},
	{ID: "A18", Name: "a failure is a result with output", Steps: []Step{{Text: "echo kept; false", Stdout: "kept\n", Code: 1}}},
	{ID: "A19", Name: "streams apart", Steps: []Step{{Text: "echo OUT; echo ERR >&2; false", Stdout: "OUT\n", Stderr: "ERR\n", Code: 1}}},
	{ID: "A21", Name: "stderr alone", Steps: []Step{{Text: `printf 'err\n' >&2`, Stderr: "err\n"}}},
	{ID: "A22", Name: "lines in order", Steps: []Step{{Text: "seq 1 100", Stdout: numbers(1, 100)}}},
	{ID: "A24", Name: "UTF-8", Steps: []Step{{Text: "echo 'héllo ✓ 漢字 👩‍💻'", Stdout: "héllo ✓ 漢字 👩‍💻\n"}}},
	{ID: "A25", Name: "bytes that are no UTF-8", Steps: []Step{
		{Text: `printf 'a\377b\200\303\n'; printf '\355\240\200' >&2`, Stdout: "a\xffb\x80\xc3\n", Stderr: "\xed\xa0\x80"},
	}},
	{ID: "A27", Name: "a locale without UTF-8", Steps: []Step{
		{Text: `old=${LC_ALL-}; LC_ALL=C; export LC_ALL; printf '\346\274\242\345\255\227.txt\n'`, Stdout: "漢字.txt\n"},
		{Text: `printf '\346\274'; (exit 3)`, Stdout: "\xe6\xbc", Code: 3},
		{Text: "LC_ALL=$old; [ \"$LC_ALL\" ] || unset LC_ALL; unset old"},
	}},
	{ID: "A28", Name: "no comment within a word", Steps: []Step{{Text: "echo a#b#c#d", Stdout: "a#b#c#d\n"}}},
	{ID: "A30", Name: "a prompt that is printed", Steps: []Step{
		{Text: `echo "[$PS1]"; env | grep -c ^PS1; true`, StdoutLike: Like(`\A\[.*\]\n[01]\n\z`)},
		{Text: `printf '$ '; printf '# ' >&2; printf 'user@host:~$ '`, Stdout: "$ user@host:~$ ", Stderr: "# "},
	}},
	{ID: "A31", Name: "the text does not show", Steps: []Step{{Text: "ls -d / ; cat /dev/null", Stdout: "/\n"}}},
	{ID: "A33", Name: "the time it took", Steps: []Step{
		{Text: "sleep 0.2", Least: ms(200), Most: ms(3000)},
		{Text: "true", Most: ms(1500)},
	}},
	{ID: "A34", Name: "no colours", Steps: []Step{
		{Text: "ls -ld / /tmp; echo $TERM", StdoutLike: Like(`\A[^\x1b]+ /tmp\ndumb\n\z`)},
	}},
	{ID: "A60", Name: "every byte", Steps: []Step{
		{Text: `printf '` + octals() + `'`, Stdout: span(0, 255)},
		{Text: `printf '` + octals() + `' >&2`, Stderr: span(0, 255)},
		{Text: `printf '\000\r\033[31m\004\003\032\b'; (exit 9)`, Stdout: "\x00\r\x1b[31m\x04\x03\x1a\b", Code: 9},
	}},
	{ID: "A61", Name: "a program that closes its streams and lives on", Steps: []Step{
		{Text: "sh -c 'echo x; exec >&- 2>&-; sleep 0.2; exit 5'", Stdout: "x\n", Code: 5, Least: ms(200)},
		{Text: "echo y; (exec 1>&-; echo gone 2>/dev/null; exit 3); echo z", Stdout: "y\nz\n"},
	}},
	{ID: "A62", Name: "merged, in true order", Steps: []Step{
		{Text: "for i in 1 2 3; do echo o$i; echo e$i >&2; done", With: session.Command{Merge: true}, Stdout: "o1\ne1\no2\ne2\no3\ne3\n"},
	}},
	{ID: "A63", Name: "a child dies of a signal", Steps: []Step{
		{Text: `sh -c 'kill -KILL $$' 2>/dev/null`, Code: 137, StderrLike: Like("")},
		{Text: `(sh -c 'kill -TERM $$') 2>/dev/null; echo on`, Stdout: "on\n", StderrLike: Like("")},
	}},
	{ID: "A64", Name: "a status of every kind", Steps: statuses()},
}

// numbers is what seq says.
func numbers(first, last int) string {
	var b []byte
	for i := first; i <= last; i++ {
		b = append(strconv.AppendInt(b, int64(i), 10), '\n')
	}
	return string(b)
}

// octals returns every byte as printf takes it, span some bytes themselves.
func octals() string {
	var b strings.Builder
	for i := range 256 {
		fmt.Fprintf(&b, `\%03o`, i)
	}
	return b.String()
}

func span(first, last int) string {
	var b strings.Builder
	for i := first; i <= last; i++ {
		b.WriteByte(byte(i))
	}
	return b.String()
}

func statuses() (steps []Step) {
	for _, status := range []int{0, 1, 2, 100, 124, 125, 126, 127, 128, 129, 130, 143, 254, 255} {
		steps = append(steps, Step{Text: fmt.Sprintf("(exit %d)", status), Code: status})
	}
	return steps
}
