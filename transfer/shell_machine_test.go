package transfer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"gateway/gateway"
	"gateway/hosts"
	"gateway/internal/sshdtest"
	"gateway/transport/local"
)

// here is a connection with this machine.
func here(t *testing.T) *gateway.Connection {
	t.Helper()
	c, err := gateway.New(gateway.Config{Inventory: hosts.New()}).Connect(t.Context(), "localhost", "")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// shellHere returns the files of this machine by its shell, with another stat.
func shellHere(t *testing.T, stat string) *Shell {
	t.Helper()
	c := here(t)
	s := &Shell{name: "web1", connection: c, hasher: newHasher(c.Pipe), shells: make(chan *shell, 1), stat: stat + " -c %f:%s:%X:%Y"}
	s.shells <- nil
	t.Cleanup(func() { s.Close() })
	return s
}

// script writes a program.
func script(t *testing.T, path, text string) string {
	t.Helper()
	must(t, os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700))
	return path
}

// A shell that has no stat is no way to files, and says so.
func TestShellWithoutStat(t *testing.T) {
	c := here(t)
	c.Close()
	tools := t.TempDir()
	must(t, os.Symlink("/bin/sh", tools+"/sh"))
	c.Transport = local.New(local.Config{Env: []string{"PATH=" + tools}})
	if _, err := openShellMachine(t.Context(), c, nil); gateway.Code(err) != "file.no_subsystem" || gateway.Hint(err) == "" {
		t.Errorf("open = %v (%s), want file.no_subsystem", err, gateway.Code(err))
	}
}

// An account that runs nothing says so in place of sftp too, which looks like bad sftp.
func TestNoShellEither(t *testing.T) {
	c := here(t)
	c.Close()
	c.Transport = local.New(local.Config{Shell: script(t, t.TempDir()+"/nologin", "echo This account is currently not available.; exit 1")})
	why := errors.New("sftp: packet too long")
	_, err := openShellMachine(t.Context(), c, why)
	if gateway.Code(err) != "file.no_subsystem" || !errors.Is(err, why) || !strings.Contains(gateway.Hint(err), "gateway hosts check localhost") {
		t.Errorf("open = %v (%s, %q)", err, gateway.Code(err), gateway.Hint(err))
	}
}

// What goes while a directory is listed is left out, and nothing else with it.
func TestListWhatGoes(t *testing.T) {
	tools := t.TempDir()
	for name, test := range map[string]struct {
		stat, find string // what they do before they look
		names      string
		cause      error
	}{
		"nothing":             {"", "", "-n a\nb gone here", nil},
		"before stat":         {"rm -f gone", "", "-n a\nb here", nil},
		"while find looks":    {"", "echo find: ./gone: No such file or directory >&2", "-n a\nb gone here", nil},
		"all":                 {"rm -f ./*", "", "", nil},
		"stat is refused one": {"case $* in *here*) echo stat: ./here: Permission denied >&2; exit 1; esac", "", "", fs.ErrPermission},
		"find is refused":     {"", "echo find: .: Permission denied >&2", "", fs.ErrPermission},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, name := range []string{"here", "gone", "-n", "a\nb"} {
				must(t, os.WriteFile(dir+"/"+name, nil, 0o600))
			}
			s := shellHere(t, script(t, tools+"/stat", test.stat+"\nPATH=${PATH#*:} exec stat \"$@\""))
			script(t, tools+"/find", test.find+"\nPATH=${PATH#*:} exec find \"$@\"")
			if _, err := s.run(t.Context(), "PATH="+tools+":$PATH"); err != nil {
				t.Fatal(err)
			}
			var names []string
			err := s.List(t.Context(), dir, func(info Info) error {
				if !info.Mode.IsRegular() {
					t.Errorf("%+v", info)
				}
				names = append(names, info.Name)
				return nil
			})
			slices.Sort(names)
			if got := strings.Join(names, " "); !errors.Is(err, test.cause) || err == nil && got != test.names {
				t.Errorf("%q, %v, want %q, %v", got, err, test.names, test.cause)
			}
		})
	}
}

// What can't be listed for want of a program is no empty directory.
func TestListWithoutPrograms(t *testing.T) {
	dir, tools := t.TempDir(), t.TempDir()
	must(t, os.WriteFile(dir+"/here", nil, 0o600))
	for _, there := range []string{"", "find", "grep"} {
		s := shellHere(t, script(t, tools+"/stat", "PATH=/usr/bin:/bin exec stat \"$@\""))
		if there != "" {
			script(t, tools+"/"+there, "PATH=/usr/bin:/bin exec "+there+" \"$@\"")
		}
		if _, err := s.run(t.Context(), "PATH="+tools); err != nil {
			t.Fatal(err)
		}
		if err := s.List(t.Context(), dir, func(Info) error { return nil }); err == nil || !strings.Contains(err.Error(), "not found") {
			t.Errorf("with %q alone: %v, want what was not found", there, err)
		}
		_ = os.Remove(tools + "/" + there)
	}
}

// A symlink to a directory is replaced by what there is, and by nothing else,
// also where mv knows no -T.
func TestPlace(t *testing.T) {
	for name, mv := range map[string]string{"GNU": "", "BSD": "mv() { case $1 in *T*) return 64; esac; command mv \"$@\"; }; "} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			to, part := dir+"/to", dir+"/part"
			must(t, os.Symlink(t.TempDir(), to))
			if out, err := exec.Command("sh", "-c", mv+place(part, to)).CombinedOutput(); err == nil {
				t.Errorf("there is no part: %s", out)
			}
			if _, err := os.Readlink(to); err != nil {
				t.Errorf("the symlink is gone: %v", err)
			}
			must(t, os.WriteFile(part, []byte("new"), 0o600))
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

// TestShellFixedPermissions: where a file can't have other permissions than it has, it is
// written if these do, and so is one that goes on with a part. Linux says yes to the chmod on
// such a disk.
func TestShellFixedPermissions(t *testing.T) {
	for name, test := range map[string]struct{ chmod, stat string }{
		"a chmod is refused":   {"echo chmod: $2: Operation not permitted >&2; exit 1", "exec stat \"$@\""},
		"a chmod does nothing": {"exit 0", "stat \"$@\" | sed 's/^[^:]*/81a4/'"},
	} {
		t.Run(name, func(t *testing.T) {
			tools := t.TempDir()
			script(t, tools+"/chmod", test.chmod)
			s := shellHere(t, script(t, tools+"/fixed-stat", test.stat))
			s.feeds = make(chan struct{}, 1)
			if _, err := s.run(t.Context(), "PATH="+tools+":$PATH"); err != nil {
				t.Fatal(err)
			}
			for mode, refused := range map[fs.FileMode]bool{0o644: false, 0o755: true} {
				for _, size := range []int{1, Small + 1} {
					testShellFixed(t, s, Spec{Perm: mode, Size: int64(size)}, refused)
				}
				testShellFixed(t, s, Spec{Perm: mode, Size: 2 * step, Old: ".old", At: step}, refused)
			}
		})
	}
}

// testShellFixed writes a part, in a directory of its own.
func testShellFixed(t *testing.T, s *Shell, spec Spec, refused bool) {
	t.Helper()
	dir := t.TempDir()
	spec.Path = dir + "/f"
	if spec.Old != "" {
		spec.Old = dir + "/" + spec.Old
		must(t, os.WriteFile(spec.Old, make([]byte, spec.At+1), 0o644))
	}
	part, err := s.Create(t.Context(), spec)
	if err != nil {
		t.Errorf("%+v: %v", spec, err)
		return
	}
	if _, err := part.Write(make([]byte, spec.Size-spec.At)); err != nil {
		t.Fatal(err)
	}
	old := time.Unix(1e9, 0)
	_, err = part.Finish(t.Context(), Times{Modified: old})
	if (err != nil) != refused || refused && !strings.Contains(gateway.Hint(err), "--mode") {
		t.Errorf("%+v: %v, %q, refused %v", spec, err, gateway.Hint(err), refused)
	}
	if info, failed := os.Stat(part.Path()); failed != nil || info.Size() != spec.Size || err == nil && !info.ModTime().Equal(old) {
		t.Errorf("%+v: %v, %v", spec, info, failed)
	}
	part.Abandon(false)
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestShellGroupDirectory: what is made in a group's directory is the group's, also where
// mkdir gives a directory the permissions that it is told and nothing else, as busybox's does.
func TestShellGroupDirectory(t *testing.T) {
	mkdir, err := exec.LookPath("mkdir")
	if err != nil {
		sshdtest.Skip(t, "%v", err)
	}
	tools, dir := t.TempDir(), t.TempDir()
	script(t, tools+"/mkdir", mkdir+` "$3" && chmod g-s "$3" && chmod "$2" "$3"`)
	s := shellHere(t, "stat")
	if _, err := s.run(t.Context(), "PATH="+tools+":$PATH"); err != nil {
		t.Fatal(err)
	}
	for group, want := range map[fs.FileMode]fs.FileMode{0: fs.ModeDir | 0o750, fs.ModeSetgid: fs.ModeDir | fs.ModeSetgid | 0o750} {
		must(t, os.Chmod(dir, 0o700|group))
		path := fmt.Sprintf("%s/d-%d", dir, group)
		must(t, s.Mkdir(t.Context(), path, 0o750))
		if info, err := os.Stat(path); err != nil || info.Mode() != want {
			t.Errorf("%v, %v, want %v", info.Mode(), err, want)
		}
	}
}

// TestFeedDies: what a program did not say before it died, its end says.
func TestFeedDies(t *testing.T) {
	s := shellHere(t, "stat")
	s.feeds = make(chan struct{}, 1)
	for script, want := range map[string]string{
		"kill -KILL $$":                         `"ended by signal KILL"`,
		"exit 3":                                `"ended with status 3"`,
		"echo f: Permission denied >&2; exit 1": fs.ErrPermission.Error(),
	} {
		f, err := s.launch(t.Context(), script, true)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.ended(); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", script, err, want)
		}
		f.close()
	}
}

// TestShellDies: what a shell was told before it died may have been done.
func TestShellDies(t *testing.T) {
	s := shellHere(t, "stat")
	if _, err := s.run(t.Context(), "kill -9 $$"); !Lost(s.problem("write", "f", err)) {
		t.Errorf("%v, want a lost link", err)
	}
}

// TestShellEnds: a shell may be ended while nobody needs it, as by sshd's ChannelTimeout.
// The next one who does gets another.
func TestShellEnds(t *testing.T) {
	s := shellHere(t, "stat")
	if _, err := s.run(t.Context(), ":"); err != nil {
		t.Fatal(err)
	}
	sh := <-s.shells
	kill(t, sh)
	s.shells <- sh
	if out, err := s.run(t.Context(), "echo here"); err != nil || string(out) != "here\n" {
		t.Errorf("%q, %v", out, err)
	}
}

// TestHasherEnds: so may a hasher's, and what was asked of one that ends then is asked
// again.
func TestHasherEnds(t *testing.T) {
	s := shellHere(t, "stat")
	file := t.TempDir() + "/f"
	must(t, os.WriteFile(file, []byte("abc"), 0o600))
	sum := func() {
		t.Helper()
		if sum, err := s.hasher.sum(t.Context(), file, 0, -1); err != nil || sum != sha256.Sum256([]byte("abc")) {
			t.Errorf("%x, %v", sum, err)
		}
	}
	sum()
	kill(t, s.hasher.shell)
	sum()
	kills := &question{script: func(string) string {
		return "[ -e " + word(file+"2") + " ] || { echo >" + word(file+"2") + "; kill -9 $$; }; echo again\n"
	}}
	if line, err := s.hasher.ask(t.Context(), kills); err != nil || line != "again" {
		t.Errorf("%q, %v", line, err)
	}
	sum()
	always := &question{script: func(string) string { return "kill -9 $$\n" }}
	if line, err := s.hasher.ask(t.Context(), always); !errors.Is(err, errEnded) {
		t.Errorf("%q, %v, want %v", line, err, errEnded)
	}
}

// kill ends a shell that nobody is using, and returns when that is known.
func kill(t *testing.T, s *shell) {
	t.Helper()
	must(t, s.send("kill -9 $$"))
	<-s.pipe.Done()
}

// TestSumOfNothing: a file that is not there is not one that may not be read.
func TestSumOfNothing(t *testing.T) {
	if _, err := shellHere(t, "stat").Sum(t.Context(), t.TempDir()+"/none", 0, -1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v, want %v", err, fs.ErrNotExist)
	}
}

// TestNobodyReads: a file that somebody has stopped reading does not keep others from
// being read, and goes on where it was.
func TestNobodyReads(t *testing.T) {
	path := t.TempDir() + "/f"
	want := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	must(t, os.WriteFile(path, want, 0o600))
	s := shellHere(t, "stat")
	s.feeds, s.stalled = make(chan struct{}, 1), time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var open []Content
	for range 3 {
		content, err := s.Open(ctx, path, Info{Size: int64(len(want))}, 0)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, content)
	}
	for _, content := range open {
		got, err := io.ReadAll(content)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes, %v, want %d", len(got), err, len(want))
		}
		content.Close()
	}
	if len(s.feeds) > 0 {
		t.Error("a place is taken")
	}
}
