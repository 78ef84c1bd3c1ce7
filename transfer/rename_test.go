package transfer

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pkg/sftp"

	"gateway/gateway"
	"gateway/transport"
)

// grudging is a server's file system that refuses some of its renames, by their
// number, and perhaps all removals.
type grudging struct {
	sftp.FileCmder
	refused  []int
	keeps    bool
	why      error
	renaming int
	lost     func() // the link goes while the third one is answered, if there is one
}

func (g *grudging) Filecmd(r *sftp.Request) error {
	switch r.Method {
	case "Rename":
		if g.renaming++; slices.Contains(g.refused, g.renaming) {
			return g.why
		}
		if g.lost != nil && g.renaming == 3 {
			defer g.lost()
		}
	case "Remove":
		if g.keeps {
			return g.why
		}
	}
	return g.FileCmder.Filecmd(r)
}

// withoutPosixRename has servers not know it, until the test is over.
func withoutPosixRename(t *testing.T) {
	t.Helper()
	must(t, sftp.SetSFTPExtensions("hardlink@openssh.com"))
	t.Cleanup(func() {
		if err := sftp.SetSFTPExtensions("hardlink@openssh.com", "posix-rename@openssh.com", "statvfs@openssh.com"); err != nil {
			t.Error(err)
		}
	})
}

// TestRenameLost: the new file may have its name, and the error says where the old
// one is.
func TestRenameLost(t *testing.T) {
	withoutPosixRename(t)
	memory := sftp.InMemHandler()
	g := &grudging{FileCmder: memory.FileCmd}
	memory.FileCmd = g
	r := over(t, memory)
	must(t, Write(t.Context(), r, "/f", []byte("old"), nil))
	g.renaming, g.lost = 0, func() { _ = r.link.Close() }
	err := Write(t.Context(), r, "/f", []byte("new"), nil)
	if !Lost(err) || !strings.Contains(err.Error(), "it may have been done") || !strings.Contains(err.Error(), ".old") {
		t.Errorf("%v, want a lost link, and where the old file is", err)
	}
}

// TestSymlinkLost: so may a symlink, and a copy says that it may.
func TestSymlinkLost(t *testing.T) {
	memory := sftp.InMemHandler()
	g := &grudging{FileCmder: memory.FileCmd, renaming: 2}
	memory.FileCmd = g
	r := over(t, memory)
	g.lost = func() { _ = r.link.Close() }
	from := t.TempDir()
	must(t, os.Symlink("anywhere", from+"/link"))
	c := Copy{From: &Local{}, To: r, Paths: []string{from + "/."}, Into: "/", Recursive: true}
	report := c.Run(t.Context())
	if report.Unsure != 1 || len(report.Problems) != 1 || !MayBeDone(report.Problems[0].Err) {
		t.Errorf("%+v", report)
	}
}

// TestRenameInterrupted: a rename of several steps, once begun, is not left half
// done.
func TestRenameInterrupted(t *testing.T) {
	withoutPosixRename(t)
	r := over(t, sftp.InMemHandler())
	must(t, Write(t.Context(), r, "/f", []byte("old"), nil))
	ctx, cancel := context.WithCancel(t.Context())
	part, err := r.Create(ctx, Spec{Path: "/f", Perm: 0o644, Size: 3})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := part.Write([]byte("new")); err != nil {
		t.Fatal(err)
	}
	if _, err := part.Finish(ctx, Times{}); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := part.Commit(ctx); err != nil {
		t.Error(err)
	}
	if got := contents(t, r); got != "f=new" {
		t.Errorf("there is %q", got)
	}
}

// busy is a server's file system that is at something else for a while before it
// renames.
type busy struct {
	sftp.FileCmder
	renames time.Duration
}

func (b busy) Filecmd(r *sftp.Request) error {
	if r.Method == "Rename" {
		time.Sleep(b.renames)
	}
	return b.FileCmder.Filecmd(r)
}

// TestRenameWaits: a name may be long in coming, as behind the fsync of a large
// file. Only who does not wait for it is told that it may have been given.
func TestRenameWaits(t *testing.T) {
	for name, test := range map[string]struct {
		gives   time.Duration // how long the caller waits
		renames time.Duration
		code    string
	}{
		"behind other work":            {time.Hour, time.Minute, ""},
		"a little longer than allowed": {time.Minute, time.Minute + time.Second, ""},
		"much longer":                  {time.Minute, time.Hour, "link.lost"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				memory := sftp.InMemHandler()
				memory.FileCmd = busy{memory.FileCmd, test.renames}
				r := over(t, memory)
				ctx, cancel := context.WithTimeout(t.Context(), test.gives)
				defer cancel()
				if err := Write(ctx, r, "/f", []byte("new"), nil); gateway.Code(err) != test.code {
					t.Errorf("Write = %v, want %q", err, test.code)
				}
				if test.code != "" {
					return
				}
				if err := r.Symlink(ctx, "f", "/link"); ctx.Err() == nil && err != nil {
					t.Errorf("Symlink = %v", err)
				}
			})
		})
	}
}

// silent is a server's file system that has stopped to answer when something is renamed.
type silent struct{ sftp.FileCmder }

func (s silent) Filecmd(r *sftp.Request) error {
	if r.Method == "Rename" || r.Method == "Remove" {
		time.Sleep(time.Hour)
	}
	return s.FileCmder.Filecmd(r)
}

// placings are the ways in which /f becomes a file of a server: one that says "new".
func placings(t *testing.T) map[string]func(context.Context, *Remote) error {
	t.Helper()
	from := t.TempDir()
	must(t, os.WriteFile(from+"/f", []byte("new"), 0o644))
	return map[string]func(context.Context, *Remote) error{
		"write": func(ctx context.Context, r *Remote) error { return Write(ctx, r, "/f", []byte("new"), nil) },
		"copy": func(ctx context.Context, r *Remote) error {
			return onlyProblem(ctx, &Copy{From: &Local{}, To: r, Paths: []string{from + "/f"}, Into: "/f"})
		},
	}
}

// TestRenameUnanswered: where the answer does not come, who gives up waits for that, and not
// once more for a removal.
func TestRenameUnanswered(t *testing.T) {
	for name, do := range placings(t) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				memory := sftp.InMemHandler()
				memory.FileCmd = silent{memory.FileCmd}
				r := over(t, memory)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				begun := time.Now()
				if err := do(ctx, r); !MayBeDone(err) {
					t.Errorf("%v, want that it may have been done", err)
				}
				if took := time.Since(begun); took > time.Second+Committing {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// TestShellSymlinkWaits: a symlink that a shell is about to give its name has it, if that is
// told in time, and else may have it.
func TestShellSymlinkWaits(t *testing.T) {
	for after, want := range map[time.Duration]error{Committing / 2: nil, time.Hour: context.DeadlineExceeded} {
		synctest.Test(t, func(t *testing.T) {
			near, far := net.Pipe()
			defer near.Close()
			go drain(far) // ends with the pipe
			time.AfterFunc(after, func() { _, _ = io.WriteString(far, "\nmark 0\n") })
			s := &Shell{shells: make(chan *shell, 1)}
			s.shells <- &shell{pipe: &transport.Pipe{Stdin: near, Stdout: near, Program: program{near}}, out: bufio.NewReader(near), mark: "mark"}
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			if err := s.Symlink(ctx, "anywhere", "link"); !errors.Is(err, want) {
				t.Errorf("answered after %v: %v, want %v", after, err, want)
			}
		})
	}
}

// Where a server renames only to what is not there, the old file is never lost.
func TestRenameRefused(t *testing.T) {
	withoutPosixRename(t)
	for name, test := range map[string]struct {
		refused []int // the first one finds the old file in the way
		keeps   bool
		why     error
		code    string
		left    string // what is there in the end
	}{
		"what is there is in the way":  {nil, false, nil, "", "f=new"},
		"a rename is not allowed":      {[]int{1}, false, sftp.ErrSSHFxPermissionDenied, codePermission, "f=old"},
		"a rename is not known":        {[]int{1}, false, sftp.ErrSSHFxOpUnsupported, codeFailed, "f=old"},
		"the old one must stay":        {[]int{2}, false, sftp.ErrSSHFxPermissionDenied, codePermission, "f=old"},
		"the new one does not come in": {[]int{3}, false, sftp.ErrSSHFxFailure, codeFailed, "f=old"},
		"nor does the old one":         {[]int{3, 4}, false, sftp.ErrSSHFxFailure, codeFailed, ".old=old"},
		"the old one is not removed":   {nil, true, sftp.ErrSSHFxPermissionDenied, "", ".old=old f=new"},
	} {
		t.Run(name, func(t *testing.T) {
			memory := sftp.InMemHandler()
			g := &grudging{FileCmder: memory.FileCmd, why: test.why}
			memory.FileCmd = g
			r := over(t, memory)
			must(t, Write(t.Context(), r, "/f", []byte("old"), nil))
			g.renaming, g.refused, g.keeps = 0, test.refused, test.keeps
			err := Write(t.Context(), r, "/f", []byte("new"), nil)
			if err == nil != (test.code == "") || err != nil && gateway.Code(err) != test.code {
				t.Errorf("%v, want %q", err, test.code)
			}
			got := contents(t, r)
			if got != test.left {
				t.Errorf("there is %q, want %q", got, test.left)
			}
			if _, ok := strings.CutPrefix(got, ".old="); ok && err != nil && !strings.Contains(err.Error(), ".old") {
				t.Errorf("%v: it does not say where the old file is", err)
			}
		})
	}
}

// contents are what a server's root has, each file by its name, or what that
// ends with where it is one of ours.
func contents(t *testing.T, r *Remote) string {
	t.Helper()
	var all []string
	err := r.List(t.Context(), "/", func(info Info) error {
		content, err := r.Open(t.Context(), "/"+info.Name, info, 0)
		if err != nil {
			return err
		}
		defer content.Close()
		text, err := io.ReadAll(content)
		name := info.Name
		if i := strings.LastIndexByte(name, '.'); i >= 0 {
			name = name[i:]
		}
		all = append(all, name+"="+string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}
