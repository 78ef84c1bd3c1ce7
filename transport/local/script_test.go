package local_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"gateway/internal/sshdtest"
	"gateway/transport/local"
)

func output(t *testing.T, config local.Config, line string) string {
	t.Helper()
	tr := local.New(config)
	defer tr.Close()
	pipe, err := tr.Pipe(t.Context(), line)
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	b, err := io.ReadAll(pipe.Stdout)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestScript: a line that has the account's shell become sh at once gives what the same
// line gives that makes it do something before.
func TestScript(t *testing.T) {
	t.Parallel()
	own := regexp.MustCompile(`(?m)^(SHLVL|_|OLDPWD)=.*\n`) // bash's and zsh's, of no account
	for _, shell := range []string{"sh", "dash", "bash", "zsh", "ksh"} {
		path, err := exec.LookPath(shell)
		if err != nil {
			sshdtest.Skip(t, "no %s", shell)
		}
		for _, script := range []string{`env | sort; pwd; umask; echo "$0 $# $-"`, `trap "" HUP; trap`, ``} {
			line := "exec /bin/sh -c '" + script + "'"
			config := local.Config{Shell: path, Dir: t.TempDir()}
			direct, through := own.ReplaceAllString(output(t, config, line), ""), own.ReplaceAllString(output(t, config, ":;"+line), "")
			if direct != through {
				t.Errorf("%s, %s: got %q, want %q", shell, line, direct, through)
			}
		}
	}
}

// TestScriptBehindAFile: a file that a shell reads for every line is read.
func TestScriptBehindAFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, ".zshenv"), []byte("echo read\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for shell, entry := range map[string]string{"bash": "BASH_ENV=" + dir + "/.zshenv", "zsh": "ZDOTDIR=" + dir} {
		path, err := exec.LookPath(shell)
		if err != nil {
			sshdtest.Skip(t, "no %s", shell)
		}
		if got := output(t, local.Config{Shell: path, Env: []string{entry}}, "exec /bin/sh -c 'echo on'"); got != "read\non\n" {
			t.Errorf("%s: got %q, want the file's word first", shell, got)
		}
	}
}

// TestScriptWithoutAShell: an account whose shell is missing runs nothing.
func TestScriptWithoutAShell(t *testing.T) {
	t.Parallel()
	tr := local.New(local.Config{Shell: filepath.Join(t.TempDir(), "bash")})
	defer tr.Close()
	if pipe, err := tr.Pipe(t.Context(), "exec /bin/sh -c 'echo on'"); err == nil {
		pipe.Close()
		t.Error("it ran")
	}
}
