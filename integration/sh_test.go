package integration

import (
	"errors"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gateway/internal/sshdtest"
	"gateway/session"
)

// TestAnySh: what a session types for /bin/sh is understood by whatever a machine
// has there. Tests on this machine's own have only that of Debian, which is dash.
func TestAnySh(t *testing.T) {
	t.Parallel() // it waits, mostly
	for _, sh := range []string{"bash", "busybox", "ksh93", "mksh", "yash", "zsh"} {
		t.Run(sh, func(t *testing.T) {
			path, err := exec.LookPath(sh)
			if err != nil {
				sshdtest.Skip(t, "%v", err)
			}
			tr := mounted(t, "bin=$(readlink -f /bin) && old=$1 && mount --bind $bin $old && mount -t tmpfs none $bin && "+
				"$old/ln -s $old/* $bin && $old/ln -sf $old/${0##*/} $bin/sh", path, t.TempDir())
			sameOutcome(t, tr, []string{"bash", "dash"}, true)
			s := open(t, tr, session.Config{Shell: "dash"})
			replies(t, s, `readlink /bin/sh | sed 's|.*/||'`, sh+"\n")
			if r, err := s.Run(t.Context(), session.Command{Text: `printf "name? " >/dev/tty; read a </dev/tty`}); r.Prompt != "name? " || !errors.Is(err, session.ErrNeedsInput) {
				t.Errorf("a prompt: got %s %q, %v", r.Verdict, r.Prompt, err)
			}
			ignores := session.Command{Text: `sh -c 'trap "" INT QUIT; while :; do sleep 0.1; done'`, Timeout: 100 * time.Millisecond}
			if r, err := s.Run(t.Context(), ignores); r.Verdict != session.TimedOut || r.Ended {
				t.Errorf("a timeout: got %s, ended %v, %v", r.Verdict, r.Ended, err)
			}
			r, err := s.Run(t.Context(), session.Command{Text: "set -m; sleep 1000 >/dev/null 2>&1 & kill -STOP $!; echo $!"})
			job, bad := strconv.Atoi(strings.TrimSpace(string(r.Stdout)))
			if err != nil || bad != nil {
				t.Fatalf("a stopped job: got %q %q, %v", r.Stdout, r.Stderr, err)
			}
			s.Close()
			eventually(t, "the stopped job has ended", func() bool { return errors.Is(syscall.Kill(job, 0), syscall.ESRCH) })
			eventually(t, "nobody is left but who holds the mounts", func() bool { return tr.(inside).count() == 1 })
		})
	}
}

// TestPrintfInPieces: mksh has no printf of its own, and that of toybox makes several writes,
// between which the command may write.
func TestPrintfInPieces(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("mksh"); err != nil {
		sshdtest.Skip(t, "%v", err)
	}
	printf := `#!/bin/dash
x=$(printf "$@"; echo .)
x=${x%.} y=${x#?}
printf %s "${x%"$y"}"
sleep 0.3
printf %s "$y"
`
	tr := mounted(t, "bin=$(readlink -f /bin) && old=$1 && mount --bind $bin $old && mount -t tmpfs none $bin && "+
		`$old/ln -s $old/* $bin && $old/ln -sf $old/mksh $bin/sh && $old/rm $bin/printf && printf %s "$0" >$bin/printf && $old/chmod 755 $bin/printf`, printf, t.TempDir())
	s := open(t, tr, session.Config{Shell: "dash"})
	replies(t, s, "sleep 0.3; for i in 1 2 3 4 5 6 7 8 9; do printf $i; sleep 0.1; done", "123456789")
	repliesBig(t, s)
}

// TestBusyboxAsSh: it has the ways of busybox ash, whatever it is called.
func TestBusyboxAsSh(t *testing.T) {
	t.Parallel()
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		sshdtest.Skip(t, "%v", err)
	}
	tr := mounted(t, "bin=$(readlink -f /bin) && old=$1 && mount --bind $bin $old && mount -t tmpfs none $bin && "+
		"$old/ln -s $old/* $bin && $old/ln -sf $old/${0##*/} $bin/sh", busybox, t.TempDir())
	s := open(t, tr, session.Config{Shell: "sh"})
	for range 5 {
		for _, text := range []string{"sleep 60 &", "kill $!", "wait"} {
			if r, err := s.Run(t.Context(), session.Command{Text: text}); err != nil || strings.Contains(string(r.Terminal), "exit") {
				t.Errorf("%s: the terminal says %q, %v", text, r.Terminal, err)
			}
		}
	}
}
