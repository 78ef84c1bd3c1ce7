package transfer

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pkg/sftp"

	"gateway/gateway"
)

// fixed is a server's disk on which all files have the same permissions, as on FAT: 0644.
type fixed struct{ sftp.FileCmder }

func (f fixed) Filecmd(r *sftp.Request) error {
	if r.Method == "Setstat" && r.AttrFlags().Permissions {
		return sftp.ErrSSHFxPermissionDenied
	}
	return f.FileCmder.Filecmd(r)
}

// fixedHere is such a disk of this machine, which takes a chmod and does nothing about it.
func fixedHere(f *os.File) (fs.FileInfo, error) {
	if err := f.Chmod(0o644); err != nil {
		return nil, err
	}
	return f.Stat()
}

// TestFixedPermissions: where a file can't have other permissions than it has, it is copied
// if they do: if nobody else reads it who should not, and it can be run if it should; or if
// it is to have just these, as what it replaces has.
func TestFixedPermissions(t *testing.T) {
	withoutPosixRename(t)
	refusing := sftp.InMemHandler()
	refusing.FileCmd = fixed{refusing.FileCmd}
	for name, handlers := range map[string]sftp.Handlers{"refused": refusing, "said to be done": sftp.InMemHandler()} {
		t.Run("sftp, "+name, func(t *testing.T) {
			r := over(t, handlers)
			testFixed(t, r, "")
			if got := contents(t, r); strings.Contains(got, partSuffix) {
				t.Errorf("left behind: %.300s", got)
			}
		})
	}
	t.Run("local", func(t *testing.T) {
		there := t.TempDir()
		testFixed(t, &Local{stat: fixedHere}, there)
		if left, err := filepath.Glob(there + "/.*"); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	})
}

func testFixed(t *testing.T, to Machine, there string) {
	t.Helper()
	from := t.TempDir()
	for mode, code := range map[fs.FileMode]string{0o644: "", 0o664: "", 0o444: "", 0o600: codePermission, 0o640: codePermission, 0o755: codePermission} {
		for _, size := range []int{1, Small + 1} {
			name := fmt.Sprintf("/%03o-%d", mode, size)
			must(t, os.WriteFile(from+name, make([]byte, size), 0o600))
			must(t, os.Chmod(from+name, mode))
			c := Copy{From: &Local{}, To: to, Paths: []string{from + name}, Into: there + name}
			err := onlyProblem(t.Context(), &c)
			if gateway.Code(err) != code || code != "" && !strings.Contains(gateway.Hint(err), "--mode 0644") {
				t.Errorf("%s: %v, %s, want %q", name, err, gateway.Hint(err), code)
			}
			if code != "" {
				c.Mode = new(fs.FileMode(0o644))
				if err := onlyProblem(t.Context(), &c); err != nil {
					t.Errorf("%s with --mode: %v", name, err)
				}
				c.Mode = nil
			}
			if err := onlyProblem(t.Context(), &c); err != nil {
				t.Errorf("%s in place of another one: %v", name, err)
			}
			c.Preserve = true
			if err := onlyProblem(t.Context(), &c); err == nil != (mode == 0o644) || err != nil && gateway.Code(err) != codePermission {
				t.Errorf("%s with -p: %v", name, err)
			}
		}
	}
	for range 2 {
		if err := Write(t.Context(), to, there+"/new", []byte("text"), nil); err != nil {
			t.Error(err)
		}
	}
}

// TestFixedPermissionsOfDirectories: a directory has those of such a disk, whatever those of
// its source are, unless they are to be kept.
func TestFixedPermissionsOfDirectories(t *testing.T) {
	memory := sftp.InMemHandler()
	memory.FileCmd = fixed{memory.FileCmd}
	r := over(t, memory)
	for _, mode := range []fs.FileMode{0o700, 0o555, 0o500} {
		from, into := t.TempDir(), fmt.Sprintf("/%03o", mode)
		must(t, os.WriteFile(from+"/f", []byte("f"), 0o644))
		must(t, os.Chmod(from, mode))
		t.Cleanup(func() { _ = os.Chmod(from, 0o700) })
		c := Copy{From: &Local{}, To: r, Paths: []string{from}, Into: into, Recursive: true}
		if report := c.Run(t.Context()); !report.OK() || report.Dirs != 1 || report.Files != 1 {
			t.Errorf("%s: %+v", into, report)
		}
		c.Into, c.Preserve = into+"-kept", true
		if err := onlyProblem(t.Context(), &c); gateway.Code(err) != codePermission {
			t.Errorf("%s with -p: %v", into, err)
		}
	}
}
