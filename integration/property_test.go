package integration

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gateway/session"
	"gateway/transport/local"
)

// TestSessionIsAScript: commands that are run one by one in a session leave
// what one file with all of them leaves that the same shell runs: output, exit
// codes, directory, variables and files.
func TestSessionIsAScript(t *testing.T) {
	t.Parallel()
	if checks := flag.Lookup("rapid.checks"); checks.Value.String() == checks.DefValue {
		flag.Set("rapid.checks", long("40", "3000"))
		defer flag.Set("rapid.checks", checks.DefValue)
	}
	flag.Set("rapid.nofailfile", "true") // the seed is in the message
	base := t.TempDir()
	tr := local.New(local.Config{Env: []string{"HOME=" + base, "XDG_RUNTIME_DIR=" + t.TempDir(), inUTF8}})
	defer tr.Close()
	for _, shell := range allShells {
		t.Run(shell, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				steps := rapid.SliceOfN(rapid.Custom(step), 1, 12).Draw(t, "steps")
				steps = append(steps, dump)
				want := asFile(t, shell, base, steps)
				got := asSession(t, tr, shell, base, steps)
				for i := range steps {
					if got.steps[i] != want.steps[i] {
						t.Fatalf("step %d, %q:\nthe session: %+v\n   the file: %+v", i, steps[i], got.steps[i], want.steps[i])
					}
				}
				if got.files != want.files {
					t.Fatalf("files: the session left\n%sthe file\n%s", got.files, want.files)
				}
			})
		})
	}
}

// inUTF8 is for yash, which reads characters.
const inUTF8 = "LC_ALL=C.UTF-8"

// left is what a run leaves.
type left struct {
	steps []stepLeft
	files string
}

type stepLeft struct {
	stdout, stderr string
	code           int
	cwd            string
}

// dump shows what else a shell remembers.
const dump = `for v in v0 v1 v2 v3; do eval "printf '%s=[%s]\n' $v \"\${$v-unset}\""; done
env | grep '^v[0-3]=' | sort; printf '<%s>' "$#" "$@"; umask; f0 2>/dev/null; f1 2>/dev/null; (exit 3)`

// world makes the directory what it is before a run.
func world(t *rapid.T, base string) {
	entries, _ := os.ReadDir(base)
	for _, entry := range entries {
		os.RemoveAll(filepath.Join(base, entry.Name()))
	}
	for _, dir := range []string{"d0", "d1/d2"} {
		if err := os.MkdirAll(filepath.Join(base, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
}

// asFile runs all steps as one file.
func asFile(t *rapid.T, shell, base string, steps []string) (l left) {
	world(t, base)
	var script strings.Builder
	for _, step := range steps {
		// A byte that no step writes separates what the steps leave.
		fmt.Fprintf(&script, "%s\nprintf '%%s:%%s\\001' \"$?\" \"$PWD\" >&9; printf '\\001'; printf '\\001' >&2\n", step)
	}
	dir, err := os.MkdirTemp("", "script")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "script")
	if err := os.WriteFile(file, []byte(script.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	ends := filepath.Join(dir, "ends")
	cmd := exec.Command("sh", "-c", `exec "$@" 9>`+ends, "sh")
	cmd.Args = append(append(cmd.Args, strings.Fields(shell)...), file)
	cmd.Dir = base
	cmd.Env = []string{"HOME=" + base, "PATH=" + os.Getenv("PATH"), "PWD=" + base, inUTF8}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s\n%s", err, stderr.String(), script.String())
	}
	states, err := os.ReadFile(ends)
	if err != nil {
		t.Fatal(err)
	}
	out, errs, end := strings.Split(stdout.String(), "\x01"), strings.Split(stderr.String(), "\x01"), strings.Split(string(states), "\x01")
	if len(out) != len(steps)+1 || len(errs) != len(out) || len(end) != len(out) {
		t.Fatalf("%d, %d and %d pieces of %d steps: %q %q", len(out), len(errs), len(end), len(steps), stdout.String(), stderr.String())
	}
	for i := range steps {
		s := stepLeft{stdout: out[i], stderr: errs[i]}
		code, cwd, _ := strings.Cut(end[i], ":")
		fmt.Sscan(code, &s.code)
		s.cwd = cwd
		l.steps = append(l.steps, s)
	}
	l.files = files(t, base)
	return l
}

// asSession runs the steps one by one.
func asSession(t *rapid.T, tr *local.Transport, shell, base string, steps []string) (l left) {
	world(t, base)
	s, err := session.Open(context.Background(), tr, session.Config{Shell: shell, Cwd: base})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, step := range steps {
		r, err := s.Run(context.Background(), session.Command{Text: step})
		if err != nil || r.Verdict != session.Exited {
			t.Fatalf("%q: %s, %v", step, r.Verdict, err)
		}
		if r.Streams != session.Split || r.Ended {
			t.Fatalf("%q: streams %s, ended %v", step, r.Streams, r.Ended)
		}
		l.steps = append(l.steps, stepLeft{string(r.Stdout), string(r.Stderr), r.ExitCode, r.Cwd})
	}
	l.files = files(t, base)
	return l
}

// files lists what is below a directory, with modes and contents.
func files(t *rapid.T, base string) string {
	var b strings.Builder
	err := filepath.WalkDir(base, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		text := []byte{}
		if info.Mode().IsRegular() {
			text, err = os.ReadFile(path)
		}
		fmt.Fprintf(&b, "%s %v %q\n", strings.TrimPrefix(path, base), info.Mode(), text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// The generated part of shell. What the shell itself would complain about is
// left out: a file's name and line would be in its message.

func pick(t *rapid.T, from ...string) string { return rapid.SampledFrom(from).Draw(t, "of") }

func number(t *rapid.T, most int) int { return rapid.IntRange(0, most).Draw(t, "n") }

// step is one command, of one line or several.
func step(t *rapid.T) string {
	text := command(t, 2)
	switch number(t, 11) {
	case 0:
		text = "# a comment with 'a quote\n" + text
	case 1:
		text += " # and \"another"
	case 2:
		text = "\n" + text + "\n\n"
	case 3:
		text = text + "; " + command(t, 1)
	case 4:
		text = text + "\n" + command(t, 1)
	}
	return text
}

func variable(t *rapid.T) string { return pick(t, "v0", "v1", "v2", "v3") }

func file(t *rapid.T) string { return pick(t, "a", "b", `"$HOME/c"`, "'d d'") }

// word is an argument in some quotes.
func word(t *rapid.T) string {
	switch number(t, 6) {
	case 0:
		return fmt.Sprint(number(t, 1000))
	case 1:
		return `"$` + variable(t) + `"`
	case 2:
		return `"${` + variable(t) + `:-none}x"`
	case 3:
		return session.Quote(rapid.StringOfN(rapid.RuneFrom([]rune("ab \t\n'\"\\$`!*?~#&|;<>(){}[]é%-\x02\x7f\x1e")), 0, 12, -1).Draw(t, "text"))
	case 4:
		return `"$( ` + simple(t) + ` )"`
	case 5:
		return fmt.Sprintf("$((%d + %d))", number(t, 99), number(t, 99))
	}
	return pick(t, "x", "yy", "-n", "a=b", "''")
}

// simple is a command that writes and changes nothing else.
func simple(t *rapid.T) string {
	switch number(t, 7) {
	case 0:
		return "printf '%s\\n' " + word1(t) + " " + word1(t)
	case 1:
		return "printf '%s' " + word1(t) + " >&2"
	case 2:
		return fmt.Sprintf("(exit %d)", number(t, 255))
	case 3:
		return pick(t, "true", "false", ":", "! true", "pwd", "echo $#", `printf '%s,' "$@"`)
	case 4:
		return "cat " + file(t) + " 2>/dev/null"
	case 5:
		return "sh -c 'echo $0 $1 $v0; exit 4' x " + word1(t)
	case 6:
		return pick(t, "f0", "f1") + " " + word1(t) + " 2>/dev/null"
	}
	return "printf '%s\\n' c a b | " + pick(t, "sort", "cat", "head -n 1", "while read -r x; do printf '%s.' \"$x\"; done")
}

// word1 is a word without a command in it.
func word1(t *rapid.T) string {
	switch number(t, 2) {
	case 0:
		return `"$` + variable(t) + `"`
	case 1:
		return session.Quote(rapid.StringOfN(rapid.RuneFrom([]rune("ab \n'\"\\$`!*#é%")), 0, 8, -1).Draw(t, "text"))
	}
	return pick(t, "x", "yy", "0")
}

// command is any command.
func command(t *rapid.T, depth int) string {
	most := 15
	if depth == 0 {
		most = 9
	}
	inner := func() string { return command(t, depth-1) }
	switch number(t, most) {
	case 0:
		return variable(t) + "=" + word(t)
	case 1:
		return pick(t, "export ", "unset ") + variable(t)
	case 2:
		return "export " + variable(t) + "=" + word1(t)
	case 3:
		return pick(t, `cd "$HOME/d0"`, `cd "$HOME/d1/d2"`, "cd", "cd .", "cd / && cd", "cd nowhere 2>/dev/null", "mkdir -p 'n w' && cd 'n w'")
	case 4:
		return simple(t) + pick(t, " >", " >>") + file(t)
	case 5:
		return fmt.Sprintf("%s() { printf '%%s\\n' \"in $1\" %s; return %d; }", pick(t, "f0", "f1"), word1(t), number(t, 255))
	case 6:
		return "cat <<" + pick(t, "E", "'E'", "\\E") + pick(t, "", " | tr a-z A-Z", " >&2", " >a") + "\none $v1\n\ttwo 'x' \"y\"\nE\n:"
	case 7:
		return pick(t, "set -- ", "set -- x ") + word1(t)
	case 8:
		return pick(t, "umask 022", "umask 027", "rm -f a b", "read -r v2 </etc/hostname", `eval "v3=\$v0"`, "[ -e a ]", "( sleep 0 & wait )", "{ echo x; echo y >&2; } 2>&1")
	case 9:
		return simple(t)
	case 10:
		return "if " + inner() + "\nthen " + inner() + "\nelse " + inner() + "\nfi"
	case 11:
		return "for i in 1 2 " + word(t) + "; do\n" + inner() + "\ndone"
	case 12:
		return inner() + pick(t, " &&\n", " || ") + simple(t)
	case 13:
		return "( " + inner() + "\n)"
	case 14:
		return "{ " + inner() + "\n} 2>&1"
	}
	return "case $v0 in [0-9]*) " + inner() + "\n;; x|y) " + simple(t) + ";; *) " + inner() + "\nesac"
}
