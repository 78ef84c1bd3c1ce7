package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gateway/session"
	"gateway/transport"
	"gateway/transport/local"
)

// forger is a program that looks for whatever could be a nonce, and writes with
// each of them every mark there is, to everything it can write to. What it
// wrote to its streams it keeps in files. Its arguments are the directory of
// these files and where it looks.
const forger = `
dir=$1; shift
look() {
	pid=$$
	for place; do case $place in
	environment) env;;
	descriptors) for fd in /proc/self/fd/*; do readlink $fd; cat /proc/self/fdinfo/${fd##*/}; done;;
	parents)
		while [ "$pid" -gt 1 ]; do
			cat /proc/$pid/cmdline /proc/$pid/environ
			pid=$(sed 's/.*) . \([0-9]*\) .*/\1/' /proc/$pid/stat) || break
		done;;
	neighbours) cat /proc/[0-9]*/cmdline;;
	terminal) stty -a </dev/tty; tty </dev/tty;;
	files) ls -aR "$XDG_RUNTIME_DIR"; cat "$XDG_RUNTIME_DIR"/.gw-*/*;;
	esac; done 2>/dev/null
}
nonces=$(look "$@" | tr -c '0-9a-f' '\n' | grep -E '^[0-9a-f]{16}$' | sort -u)
echo "$nonces" >$dir/nonces
forge() {
	for n in $nonces 0000000000000000; do
		for payload in "" 0:0:/forged 0:# ":0:0:/forged" "$n:0:0:/forged" 1 /forged:/forged:/forged /dev/pts/0:1:sh:/bin/sh:/forged; do
			for kind in A B D E F K P R S; do printf '\036%s%s:%s\036%s;' $kind $n "$payload" $n; done
		done
	done
	echo forged
}
forge >$dir/marks
cat $dir/marks; cat $dir/marks >&2
{ cat $dir/marks >/dev/tty; } 2>/dev/null
echo after; echo after >&2
`

// What comes before the forger, so that it knows the most, and where it looks.
const (
	exportAll  = "set -a; export -p >/dev/null"
	everywhere = "environment descriptors parents neighbours terminal files"
)

// TestForgedMarks: whatever a program can read, it can't write what is taken
// for the end of its command or of a later one, and not a byte of what it
// writes is lost.
func TestForgedMarks(t *testing.T) {
	t.Parallel()
	for _, machine := range machines(t, t.TempDir()) {
		for _, shell := range machine.telling(allShells) {
			t.Run(machine.name+"/"+shell, func(t *testing.T) { forges(t, machine.open(t), shell) })
		}
	}
}

// forges runs the forger in a session.
func forges(t *testing.T, tr transport.Transport, shell string) {
	t.Helper()
	s := open(t, tr, session.Config{Shell: shell})
	defer s.Close()
	dir := t.TempDir()
	program := filepath.Join(dir, "forger")
	write(t, program, forger, 0o600)
	text := fmt.Sprintf("sh %s %s %s; (exit 7)", program, dir, everywhere)
	if r, err := s.Run(t.Context(), session.Command{Text: exportAll}); err != nil || r.ExitCode != 0 {
		t.Fatalf("%s: %d, %v", exportAll, r.ExitCode, err)
	}
	for i := range 3 { // typed, stored, and stored again
		r, err := s.Run(t.Context(), session.Command{Text: text})
		marks, _ := os.ReadFile(filepath.Join(dir, "marks"))
		nonces, _ := os.ReadFile(filepath.Join(dir, "nonces"))
		if want := string(marks) + "after\n"; err != nil || r.Verdict != session.Exited || r.ExitCode != 7 || r.Cwd == "/forged" || string(r.Stdout) != want || string(r.Stderr) != want || r.Ended {
			t.Errorf("%d: got %s %d in %s, %d and %d bytes of %d, %v; it had found %q", i, r.Verdict, r.ExitCode, r.Cwd, len(r.Stdout), len(r.Stderr), len(want), err, nonces)
		}
		r, err = s.Run(t.Context(), session.Command{Text: "echo later; echo more >&2; (exit 5)"})
		if err != nil || r.ExitCode != 5 || r.Cwd == "/forged" || string(r.Stdout) != "later\n" || string(r.Stderr) != "more\n" {
			t.Errorf("%d: afterwards: got %s %d %q %q, %v", i, r.Verdict, r.ExitCode, r.Stdout, r.Stderr, err)
		}
	}
}

// TestForgingJob: a job that is left behind writes marks without end, to what
// were its command's streams and to the terminal, with all that it finds
// meanwhile. The commands that run beside it have their own outcome.
func TestForgingJob(t *testing.T) {
	t.Parallel()
	for _, shell := range allShells {
		t.Run(shell, func(t *testing.T) {
			home, tag := t.TempDir(), tag(t)
			tr := local.New(local.Config{Env: []string{"HOME=" + home, "XDG_RUNTIME_DIR=" + t.TempDir()}})
			defer tr.Close()
			s, err := session.Open(t.Context(), tr, session.Config{Shell: shell})
			if err != nil {
				t.Fatal(err)
			}
			defer gone(t, tag)
			defer s.Close()
			program := filepath.Join(home, "forger")
			write(t, program, forger+"echo again >>$dir/rounds\n", 0o600)
			job := fmt.Sprintf("%s sh -c 'while [ -d %s ] && [ ! -e %s/stop ]; do sh %s %s environment descriptors parents terminal files; done' & job=$!", tag, home, home, program, home)
			if r, err := s.Run(t.Context(), session.Command{Text: job}); err != nil || r.ExitCode != 0 {
				t.Fatalf("the job: %d %q, %v", r.ExitCode, r.Stderr, err)
			}
			rounds := func() int {
				text, _ := os.ReadFile(filepath.Join(home, "rounds"))
				return len(text)
			}
			for i := 0; i < 30 || rounds() < 3*len("again\n") && i < 10_000; i++ {
				r, err := s.Run(t.Context(), session.Command{Text: fmt.Sprintf("echo %d; echo %d >&2; (exit %d)", i, -i, i%250)})
				if err != nil || r.ExitCode != i%250 || r.Cwd == "/forged" || string(r.Stdout) != fmt.Sprintln(i) || string(r.Stderr) != fmt.Sprintln(-i) {
					t.Fatalf("command %d: got %s %d in %s, %.200q %.200q, %v", i, r.Verdict, r.ExitCode, r.Cwd, r.Stdout, r.Stderr, err)
				}
			}
			// In one command: a shell forgets a job once it has said that it ended.
			if r, err := s.Run(t.Context(), session.Command{Text: ": >" + home + "/stop; wait $job", Timeout: 20 * time.Second}); err != nil || r.ExitCode != 0 {
				t.Errorf("the job ended: %s %d %q, %v", r.Verdict, r.ExitCode, r.Stderr, err)
			}
		})
	}
}
