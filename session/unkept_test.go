package session_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gateway/session"
	"gateway/transport/local"
)

// TestNothingIsWrittenDown: no shell keeps in a file what is typed to it, for secrets are
// and nonces, which a command could find there before it ends. Neither the environment
// that it starts in nor a profile gets it to.
func TestNothingIsWrittenDown(t *testing.T) {
	for _, shell := range shells {
		t.Run(shell, func(t *testing.T) {
			for _, login := range []bool{false, true} {
				home := t.TempDir()
				keeps := "HISTFILE=" + filepath.Join(home, "kept")
				if login {
					for _, name := range []string{".profile", ".bash_profile", ".zprofile", ".yash_profile"} {
						must(t, os.WriteFile(filepath.Join(home, name), []byte("export "+keeps+" HISTSIZE=500 HISTFILESIZE=500 SAVEHIST=500\n"), 0o600))
					}
				}
				tr := local.New(local.Config{Env: []string{"HOME=" + home, keeps, "HISTSIZE=500", "SAVEHIST=500"}})
				s, err := session.Open(t.Context(), tr, session.Config{Shell: shell, Login: login})
				if err != nil {
					t.Fatal(err)
				}
				want(t, run(t, s, "xyzzy=plugh"), 0, "", "")
				want(t, run(t, s, "echo $xyzzy"), 0, "plugh\n", "")
				if err := s.Close(); err != nil {
					t.Error(err)
				}
				tr.Close()
				err = filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
					if err != nil || d.IsDir() {
						return err
					}
					text, err := os.ReadFile(path)
					if strings.Contains(string(text), "plugh") || strings.Contains(string(text), "_gw") {
						t.Errorf("login %v: %s has %q", login, d.Name(), text)
					}
					return err
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
}
