package conformance

import (
	"fmt"
	"strconv"
	"strings"

	"gateway/session"
)

const (
	noArrays  = "the shell has no arrays"
	noBracket = "the shell has no [[ ]]"
	noWords   = "the shell has no <<< and no &>"
	charsOnly = "the shell reads characters of the locale, not bytes"
)

// text is group B.
var text = []Case{
	{ID: "B2", Name: "only a comment", Steps: []Step{{Text: "# only a comment"}, {Text: "  # one\n\t# two\n"}}},
	{ID: "B3", Name: "a comment behind", Steps: []Step{{Text: "echo hi # note", Stdout: "hi\n"}, {Text: "echo 'a' #'", Stdout: "a\n"}}},
	{ID: "B5", Name: "a job in the background", Steps: []Step{
		{Text: "sleep 10 &", Most: ms(3000), Job: true},
		{Text: "kill $!"},
		{Text: "(sleep 10) &", Most: ms(3000), Job: true},
		{Text: "kill -KILL $!; wait $! >/dev/null 2>&1; true"}, // a TERM may meet it while it is still a copy of the shell
	}},
	{ID: "B6", Name: "blank lines around", Steps: []Step{{Text: "\n\n  \n\techo x\n\n \n", Stdout: "x\n"}}},
	{ID: "B8", Name: "a line that fails is not the end", Steps: []Step{{Text: "echo a; false\necho b", Stdout: "a\nb\n"}, {Text: "true\nfalse", Code: 1}}},
	{ID: "B9", Name: "seven lines", Steps: []Step{{Text: "echo 1\necho 2\necho 3\necho 4\necho 5\necho 6\necho 7", Stdout: numbers(1, 7)}}},
	{ID: "B11", Name: "nested loops over lines", Steps: []Step{
		{Text: "m=1\nwhile [ $m -le 12 ]; do\n  d=1\n  while [ $d -le 28 ]; do\n    echo \"$m-$d\"\n\n    d=$((d+1))\n  done\n  m=$((m+1))\ndone", Stdout: calendar()},
	}},
	{ID: "B12", Name: "if over lines", Steps: []Step{{Text: "if false\nthen\n  echo yes\nelse\n  echo no\nfi", Stdout: "no\n"}}},
	{ID: "B14", Name: "a continued line", Steps: []Step{{Text: "echo \\\n foo\\\nbar", Stdout: "foobar\n"}}},
	{ID: "B15", Name: "blank lines in the output", Steps: []Step{{Text: `printf 'a\n\n\nz\n'`, Stdout: "a\n\n\nz\n"}}},
	{ID: "B17", Name: "a heredoc, and more", Steps: []Step{{Text: "cat <<E\nfoo\n\tbar\nE\necho z", Stdout: "foo\n\tbar\nz\n"}, {Text: "cat <<E\nlast\nE", Stdout: "last\n"}}},
	{ID: "B18", Name: "a heredoc behind &&", Steps: []Step{{Text: "true && sh -s 4 <<'EOF' && echo end\necho \"$1\"\nEOF", Stdout: "4\nend\n"}}},
	{ID: "B20", Name: "a quoted delimiter", Steps: []Step{{Text: "cat <<'E'\n$foo `x` \\\\ $(y)\nE", Stdout: "$foo `x` \\\\ $(y)\n"}}},
	{ID: "B21", Name: "a heredoc with TABs before it", Steps: []Step{{Text: "cat <<-E\n\t\tone\n\ttwo\n\tE", Stdout: "one\ntwo\n"}}},
	{ID: "B23", Name: "two heredocs, and one in a substitution", Steps: []Step{
		{Text: "{ cat; cat <&3; } <<A 3<<B\na\nA\nb\nB\necho c", Stdout: "a\nb\nc\n"},
		{Text: "x=$(cat <<E\nin $((1+1))\nE\n)\necho \"$x\"", Stdout: "in 2\n"},
	}},
	{ID: "B24", Name: "what looks like a delimiter", Steps: []Step{
		{Text: "cat << NAME\n\n  NAME\nNAME \nNAMES\n\nNAME\necho z", Stdout: "\n  NAME\nNAME \nNAMES\n\nz\n"},
	}},
	{ID: "B26", Name: "heredocs of many sizes into a file", Steps: heredocs(512, 513, 4095, 4096, 65535, 65536)},
	{ID: "B27", Name: "four heredocs in four commands", Steps: []Step{
		{Text: "cat <<E\n1\nE", Stdout: "1\n"},
		{Text: "cat <<'E'\n2\nE", Stdout: "2\n"},
		{Text: "cat <<E\n3\nE", Stdout: "3\n"},
		{Text: "cat <<-E\n\t4\n\tE", Stdout: "4\n"},
		{Text: "echo 5", Stdout: "5\n"},
	}},
	{ID: "B29", Name: "a newline in quotes", Steps: []Step{{Text: "echo 'line1\nline2'", Stdout: "line1\nline2\n"}}},
	{ID: "B30", Name: "operators in quotes", Steps: []Step{
		{Text: `echo "a;b|c&d" 'e>f<g(h)'`, Stdout: "a;b|c&d e>f<g(h)\n"},
		{Text: `printf 'A|B\nC\n' | grep 'A\|Z'; printf '%s\n' "A\|B"`, Stdout: "A|B\nA\\|B\n"},
	}},
	{ID: "B32", Name: "[[ ]]", Except: on("dash", noBracket), Steps: []Step{{Text: "v=x; [[ $v == $v ]]"}, {Text: "[[ $v == y ]]", Code: 1}}},
	{ID: "B33", Name: "arrays", Except: on("dash, busybox ash", noArrays), Steps: []Step{
		{Text: "echo hw;A=();echo asdf", Stdout: "hw\nasdf\n"},
		{Text: "A=(); false", Code: 1},
		{Text: `A=(a 'b c'); echo "${A[@]}"`, Stdout: "a b c\n"},
	}},
	{ID: "B35", Name: "redirections and pipes", Steps: []Step{
		{Text: "{ echo a; echo b >&2; } 2>&1 | sort -r", Stdout: "b\na\n"},
		{Text: "{ echo c >&3; } 3>&1; false || echo d | cat && echo e", Stdout: "c\nd\ne\n"},
		{Text: `sh -c 'echo f; echo g >&2' 3>&1 >"$T/f" 2>&3; cat "$T/f"`, Stdout: "g\nf\n"},
	}},
	{ID: "B36", Name: "quotes within quotes", Steps: []Step{
		{Text: `printf '%s\n' '{"a":{"b":1}}' | sed 's/.*"b":\([0-9]\).*/\1/'`, Stdout: "1\n"},
		{Text: `sh -c "sh -c 'echo \"\\\"'\\\$0'\\\"\"'"`, StdoutLike: Like(`sh`), StderrLike: Like("")},
	}},
	{ID: "B38", Name: "a TAB", Steps: []Step{{Text: "echo 'a\tb'\techo", Stdout: "a\tb echo\n"}}},
	{ID: "B39", Name: "control bytes", Steps: []Step{
		{Text: "printf %s 'a\x1b\x03\x04\x15\x1a\x1c\x7fb'", Stdout: "a\x1b\x03\x04\x15\x1a\x1c\x7fb"},
		{Text: "printf %s '" + strings.ReplaceAll(span(1, 127), "'", "") + "'", Stdout: strings.ReplaceAll(span(1, 127), "'", "")},
		{Text: "echo a\r", Stdout: "a\r\n"},
	}},
	{ID: "B41", Name: "NUL", Steps: []Step{
		{Text: "echo a\x00b", Verdict: session.NotStarted, Code: -1, Error: "usage"},
		{Text: "echo $E", With: session.Command{Env: map[string]string{"E": "a\x00b"}}, Verdict: session.NotStarted, Code: -1, Error: "usage"},
	}},
	{ID: "B42", Name: "separators of Unicode", Steps: []Step{{Text: "echo 'a\u2028b\u2029c\u0085d\ufeff'", Stdout: "a\u2028b\u2029c\u0085d\ufeff\n"}}},
	{ID: "B44", Name: "an open quote", Steps: []Step{mistake("echo 'abc"), mistake(`echo "abc`), mistake("echo `abc"), mistake("echo $(abc")}},
	{ID: "B45", Name: "syntax errors", Steps: []Step{
		mistake("(a"), mistake("if then"), mistake("for"), mistake("a='"), mistake("}"), mistake(")"), mistake(";;"),
		mistake("&& true"), mistake("| cat"), mistake("if true; then echo never"), mistake("case x in"), mistake("done"), mistake("f() {"),
	}},
	{ID: "B47", Name: "a heredoc without an end", Steps: []Step{
		mistake("f() {"),
		{Text: "cat <<E\nbody", Codes: []int{0, Failure}, StdoutLike: Like(`\A(body\n?)?\z`), StderrLike: Like("")},
		{Text: "cat <<'E'", Codes: []int{0, Failure}, StderrLike: Like("")},
		{Text: "echo a\ncat <<'E'", Codes: []int{0, Failure}, StdoutLike: Like(`\A(a\n)?\z`), StderrLike: Like("")},
	}},
	{ID: "B48", Name: "marks in the text", Steps: []Step{
		{Text: "echo '\x1eE0123456789abcdef:5::/\x1e0123456789abcdef;'", Stdout: "\x1eE0123456789abcdef:5::/\x1e0123456789abcdef;\n"},
		{Text: `printf '\036P0123456789abcdef:0:#\0360123456789abcdef;\036D'; (exit 6)`, Stdout: "\x1eP0123456789abcdef:0:#\x1e0123456789abcdef;\x1eD", Code: 6},
		{Text: `old=${_gwn-}`},
		{Text: `printf '\036E%s:5::/\036%s;\036P%s:5:#\036%s;' "$old" "$old" "$old" "$old" | tr "$old" x; echo; (exit 4)`, StdoutLike: Like("\\A\x1eE.*\n\\z"), Code: 4},
		{Text: `printf '\036E%s:5::/\036%s;' "$old" "$old" >/dev/null; echo '__DONE__ 0'; echo 'SENTINEL 0'; (exit 8)`, Stdout: "__DONE__ 0\nSENTINEL 0\n", Code: 8},
		{Text: `printf '\036\036\036E'; printf '\036' >&2`, Stdout: "\x1e\x1e\x1eE", Stderr: "\x1e"},
	}},
	{ID: "B50", Name: "texts of many sizes", Steps: sizes(500, 899, 900, 901, 4095, 4096, 4200, 6000, 20_000, 70_000, 200_000)},
	{ID: "B51", Name: "texts of many sizes, one behind another", Steps: fifty()},
	{ID: "B53", Name: "5,000 lines", Steps: []Step{{Text: "n=0\n" + strings.Repeat("n=$((n+1))\n", 5000) + "echo $n", Stdout: "5000\n"}}},
	{ID: "B60", Name: "one byte, and none", Steps: []Step{{Text: ":"}, {Text: ""}, {Text: " "}, {Text: "\n"}, mistake("("), mistake("&")}},
	{ID: "B61", Name: "more than is possible", Steps: []Step{
		{Text: strings.Repeat(":", 4<<20+1), Verdict: session.NotStarted, Code: -1, Error: "usage"},
	}},
	{ID: "B62", Name: "a backslash at the end", Steps: []Step{
		{Text: `echo a\`, Codes: []int{0, Failure}, StdoutLike: Like(`\A(a\\?\n)?\z`), StderrLike: Like("")},
		{Text: `echo 'a\'`, Stdout: "a\\\n"},
	}},
	{ID: "B63", Name: "history expansion", Steps: []Step{
		{Text: `echo "wow!!" '!x' !$ !1 a!b`, Stdout: "wow!! !x !$ !1 a!b\n"},
		{Text: "echo '^a^b'", Stdout: "^a^b\n"},
		{Text: "!!", Code: 127, StderrLike: Like("!!")},
	}},
	{ID: "B64", Name: "here-strings and &>", Except: on("dash, busybox ash, yash", noWords), Steps: []Step{
		{Text: `cat <<< "a  b"; { echo o; echo e >&2; } &>"$T/both"; cat "$T/both"`, Stdout: "a  b\no\ne\n"},
	}},
	{ID: "B65", Name: "bytes that are no UTF-8, in the text", Except: on("yash", charsOnly), Steps: []Step{
		{Text: "printf %s '" + span(128, 255) + "'", Stdout: span(128, 255)},
	}},
	{ID: "B66", Name: "a trailing ; and a trailing |", Steps: []Step{{Text: "echo a;", Stdout: "a\n"}, {Text: "echo b ; ", Stdout: "b\n"}, mistake("echo c |")}},
	{ID: "B69", Name: "a trailing &&", Except: on("zsh", "the shell takes nothing for a command there"), Steps: []Step{mistake("echo d &&"), mistake("echo d ||")}},
	{ID: "B67", Name: "lines that end in CR LF", Steps: []Step{{Text: "echo a\r\necho b\r\n", Stdout: "a\r\nb\r\n"}}},
	{ID: "B70", Name: "a text that begins with a dash", Steps: []Step{
		{Text: "-foo", Code: 127, StderrLike: Like("-foo")},
		{Text: "--help", Code: 127, StderrLike: Like("--help")},
		{Text: "-- x", Code: 127, StderrLike: Like("--")},
	}},
	{ID: "B68", Name: "a function over lines, and its return", Steps: []Step{
		{Text: "f() {\n  echo \"in $1\"\n  return 6\n}\nf x", Stdout: "in x\n", Code: 6},
		{Text: "f y; echo $?", Stdout: "in y\n6\n"},
		{Text: "echo on; return 5; echo never", Stdout: "on\n", Code: 5},
		{Text: "break 2>/dev/null; continue 2>/dev/null; echo on", StdoutLike: Like(`\A(on\n)?\z`), Codes: []int{0, Failure}},
	}},
}

// mistake is a text that no shell takes: it says so, with a status.
func mistake(text string) Step {
	return Step{Text: text, Code: Failure, StderrLike: Like(`\S`)}
}

func calendar() string {
	var b strings.Builder
	for m := 1; m <= 12; m++ {
		for d := 1; d <= 28; d++ {
			fmt.Fprintf(&b, "%d-%d\n", m, d)
		}
	}
	return b.String()
}

// lettered is text of n bytes in which every place can be told.
func lettered(n int) string {
	b := make([]byte, 0, n+8)
	for len(b) < n { // by hand: it is a MiB here and there, and Sprintf is slow with the race detector
		at := strconv.AppendInt(nil, int64(len(b)), 16)
		b = append(append(append(b, "0000000"[len(at):]...), at...), '.')
	}
	return string(b[:n])
}

func heredocs(sizes ...int) (steps []Step) {
	for _, size := range sizes {
		body := lettered(size-1) + "\n"
		steps = append(steps, Step{Text: "cat >\"$T/here\" <<'E'\n" + body + "E"}, Step{Text: `cat "$T/here"`, Stdout: body})
	}
	return steps
}

// sizes are texts of so many bytes.
func sizes(sizes ...int) (steps []Step) {
	for _, size := range sizes {
		word := lettered(size - len("echo ''"))
		steps = append(steps, Step{Text: "echo '" + word + "'", Stdout: word + "\n"})
	}
	return steps
}

func fifty() (steps []Step) {
	for range 10 {
		steps = append(steps, sizes(40, 899, 4096, 6000, 20_000)...)
	}
	return steps
}
