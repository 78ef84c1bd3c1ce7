package transfer

import (
	"os"
	"os/exec"
	"testing"
)

// A symlink to a directory is replaced by what there is, and by nothing else,
// also where mv knows no -T.
func TestPlace(t *testing.T) {
	for name, mv := range map[string]string{"GNU": "", "BSD": "mv() { case $1 in *T*) return 64; esac; command mv \"$@\"; }; "} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			to, part := dir+"/to", dir+"/part"
			if err := os.Symlink(t.TempDir(), to); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command("sh", "-c", mv+place(part, to)).CombinedOutput(); err == nil {
				t.Errorf("there is no part: %s", out)
			}
			if _, err := os.Readlink(to); err != nil {
				t.Errorf("the symlink is gone: %v", err)
			}
			if err := os.WriteFile(part, []byte("new"), 0o600); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command("sh", "-c", mv+place(part, to)).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
			if b, err := os.ReadFile(to); err != nil || string(b) != "new" {
				t.Errorf("%q, %v", b, err)
			}
			if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
				t.Errorf("left behind: %v, %v", entries, err)
			}
		})
	}
}
