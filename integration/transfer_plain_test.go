package integration

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"

	"gateway/gateway"
	"gateway/internal/sshdtest"
	"gateway/transfer"
)

// asPlainUser runs a test on the ways to the files of an account for which
// permissions count. What is in home is the account's, but for what is given to root.
func asPlainUser(t *testing.T, test func(t *testing.T, m transfer.Machine, home string, uid int)) {
	t.Helper()
	if os.Getuid() != 0 {
		sshdtest.Skip(t, "only root can have another account")
	}
	for name, noSftp := range map[string]bool{"sftp": false, "shell": true} {
		t.Run(name, func(t *testing.T) {
			s := sshdtest.Start(t, sshdtest.Options{NoSftp: noSftp, Account: &sshdtest.Account{Name: "deploy"}})
			info, err := os.Stat(s.Home)
			if err != nil {
				t.Fatal(err)
			}
			test(t, filesOf(t, s, s.Port), s.Home, int(info.Sys().(*syscall.Stat_t).Uid))
		})
	}
}

// give writes a file and gives it to an account.
func give(t *testing.T, path, text string, mode fs.FileMode, uid int) string {
	t.Helper()
	write(t, path, text, mode)
	must(t, os.Chown(path, uid, uid))
	return path
}

const partName = "/.f.gateway-ABCDEFGHIJ.part"

// A part has what the file is to have from before it is compared on: perhaps nothing
// that lets its owner write to it.
func TestTransferResumesReadOnlyPart(t *testing.T) {
	asPlainUser(t, func(t *testing.T, m transfer.Machine, home string, uid int) {
		path := write(t, t.TempDir()+"/f", strings.Repeat("x", 9<<20), 0o444)
		give(t, home+partName, strings.Repeat("x", 8<<20), 0o444, uid)
		if r := copyFiles(t, transfer.Copy{From: &transfer.Local{}, To: m, Paths: []string{path}, Into: home, Resume: true}); r.Resumed != 8<<20 {
			t.Errorf("%+v", r)
		}
		if info, err := os.Stat(home + "/f"); err != nil || info.Mode() != 0o444 || info.Size() != 9<<20 {
			t.Errorf("%v, %v", info, err)
		}
	})
}

func TestTransferResumesWhatMayNotBeRead(t *testing.T) {
	asPlainUser(t, func(t *testing.T, m transfer.Machine, home string, uid int) {
		path := write(t, t.TempDir()+"/f", strings.Repeat("x", 9<<20), 0o600)
		write(t, home+partName, strings.Repeat("x", 8<<20), 0o600)
		c := transfer.Copy{From: &transfer.Local{}, To: m, Paths: []string{path}, Into: home, Resume: true}
		if r := run(t, c); codes(r) != "file.unsafe" {
			t.Errorf("root's part: %+v", r)
		}
		must(t, os.Chmod(home, 0o300)) // to copy into it, nobody needs to list it
		if r := run(t, c); !r.OK() {
			t.Errorf("a directory that can't be listed: %+v", r)
		}
	})
}

// A target that can't be read is as good as any other that is replaced.
func TestTransferChecksumOfUnreadable(t *testing.T) {
	asPlainUser(t, func(t *testing.T, m transfer.Machine, home string, uid int) {
		for _, size := range []int{5, 100 << 10} {
			text := strings.Repeat("x", size)
			path := write(t, t.TempDir()+"/f", text, 0o600)
			give(t, home+"/f", text, 0o200, uid)
			if r := run(t, transfer.Copy{From: &transfer.Local{}, To: m, Paths: []string{path}, Into: home, Checksum: true}); !r.OK() || r.Files != 1 {
				t.Errorf("%d bytes: %+v", size, r)
			}
		}
	})
}

// What the owner can't read is compared before he can't: by the mode of its source, of
// what it replaces, or because it is asked for.
func TestTransferUnreadableOfPlainUser(t *testing.T) {
	asPlainUser(t, func(t *testing.T, m transfer.Machine, home string, uid int) {
		for _, size := range []int{5, 100 << 10} {
			for _, mode := range []fs.FileMode{0o044, 0o200, 0} {
				name := fmt.Sprintf("/f-%d-%03o", size, mode)
				path := write(t, t.TempDir()+name, strings.Repeat("x", size), mode)
				r := run(t, transfer.Copy{From: &transfer.Local{}, To: m, Paths: []string{path}, Into: home})
				info, err := os.Stat(home + name)
				if err = cmp.Or(err, r.Err); !r.OK() || err != nil || info.Mode() != mode || info.Size() != int64(size) {
					t.Errorf("%s: %+v, %v", name, r, err)
					continue
				}
				err = transfer.Write(t.Context(), m, home+name, []byte(strings.Repeat("y", size)), nil)
				if info, failed := os.Stat(home + name); err != nil || failed != nil || info.Mode() != mode {
					t.Errorf("%s is written: %v, %v", name, err, gateway.Hint(err))
				}
			}
		}
	})
}

// Where no part can be made, the error says what that takes.
func TestTransferIntoWhatMayNotBeWritten(t *testing.T) {
	asPlainUser(t, func(t *testing.T, m transfer.Machine, home string, uid int) {
		there := home + "/roots"
		must(t, os.Mkdir(there, 0o755))
		for _, size := range []int{5, 100 << 10, 9 << 20} {
			path := write(t, t.TempDir()+"/f", strings.Repeat("x", size), 0o600)
			r := run(t, transfer.Copy{From: &transfer.Local{}, To: m, Paths: []string{path}, Into: there})
			if codes(r) != "file.permission" || !strings.Contains(gateway.Hint(r.Problems[0].Err), there+" has to be writable") {
				t.Errorf("%d bytes: %v, %q", size, r.Problems, gateway.Hint(r.Problems[0].Err))
			}
		}
		err := transfer.Write(t.Context(), m, there+"/f", []byte("x"), nil)
		if gateway.Code(err) != "file.permission" || !strings.Contains(gateway.Hint(err), there+" has to be writable") {
			t.Errorf("written: %v, %q", err, gateway.Hint(err))
		}
	})
}

// Where a directory lets nobody replace what is another's, the error says so, and nothing is
// kept to go on with.
func TestTransferInPlaceOfAnothers(t *testing.T) {
	asPlainUser(t, func(t *testing.T, m transfer.Machine, home string, uid int) {
		there := home + "/sticky"
		roots := write(t, there+"/f", "root's", 0o644)
		must(t, os.Chmod(there, 0o777|fs.ModeSticky))
		for _, size := range []int{5, 9 << 20} {
			path := write(t, t.TempDir()+"/f", strings.Repeat("x", size), 0o600)
			r := run(t, transfer.Copy{From: &transfer.Local{}, To: m, Paths: []string{path}, Into: there})
			if codes(r) != "file.permission" || r.Kept > 0 || !strings.Contains(gateway.Hint(r.Problems[0].Err), "sticky bit") {
				t.Errorf("%d bytes: %+v, %q", size, r, gateway.Hint(r.Problems[0].Err))
			}
		}
		err := transfer.Write(t.Context(), m, roots, []byte("x"), nil)
		if gateway.Code(err) != "file.permission" || !strings.Contains(gateway.Hint(err), "sticky bit") {
			t.Errorf("written: %v, %q", err, gateway.Hint(err))
		}
		if text, err := os.ReadFile(roots); string(text) != "root's" {
			t.Errorf("there is %q, %v", text, err)
		}
		holds(t, there, "f")
	})
}
