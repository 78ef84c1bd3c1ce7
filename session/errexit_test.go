package session_test

import (
	"os"
	"path/filepath"
	"testing"

	"gateway/session"
	"gateway/transport/local"
)

// TestNoModesUnderErrexit: a session without a terminal has no modes to set, and a shell
// that leaves at what fails does not leave for that.
func TestNoModesUnderErrexit(t *testing.T) {
	for _, shell := range shells {
		for _, plain := range []bool{false, true} {
			t.Run(shell, func(t *testing.T) {
				t.Parallel()
				s := open(t, session.Config{Shell: shell, NoTerminal: plain})
				run(t, s, "set -e")
				want(t, run(t, s, "stty -a >/dev/null 2>&1 || :; echo modes"), 0, "modes\n", "")
				want(t, run(t, s, "echo on"), 0, "on\n", "")
			})
		}
	}
}

// TestNoexecOfAProfile: what follows runs, and is not told as run where it did not. dash and
// busybox ash are at their end with it, at a prompt of a person's as well.
func TestNoexecOfAProfile(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "ksh", "mksh", "yash"} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			for _, name := range []string{".profile", ".bash_profile", ".zprofile", ".yash_profile"} {
				must(t, os.WriteFile(filepath.Join(home, name), []byte("set -n\n"), 0o600))
			}
			s := openOn(t, local.New(local.Config{Env: []string{"HOME=" + home}}), session.Config{Shell: shell, Login: true})
			for range 2 { // typed, and from the frame file
				want(t, run(t, s, "echo ran; (exit 3)"), 3, "ran\n", "")
			}
		})
	}
}
