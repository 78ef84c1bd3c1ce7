package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pkg/sftp"

	"gateway/gateway"
	"gateway/transport"
)

// over returns the files of a server that runs in this process and no programs.
func over(t *testing.T, handlers sftp.Handlers) *Remote {
	t.Helper()
	near, far := net.Pipe()
	return remote(t, linkTo(t, sftp.NewRequestServer(far, handlers), near, near))
}

// remote returns the files behind a link to a machine that runs no programs.
func remote(t *testing.T, l *link) *Remote {
	t.Helper()
	r := &Remote{name: "web1", link: l, hasher: newHasher(func(context.Context, string) (*transport.Pipe, error) {
		return nil, fmt.Errorf("no programs here")
	})}
	t.Cleanup(r.hasher.close)
	return r
}

// linkTo has a server serve, and returns a link to it; in is what it reads.
func linkTo(t *testing.T, s interface {
	Serve() error
	Close() error
}, near net.Conn, in io.WriteCloser,
) *link {
	t.Helper()
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	l, err := newLink(t.Context(), &transport.Pipe{Stdin: in, Stdout: near, Program: program{near}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		l.close()
		<-served
		s.Close()
	})
	return l
}

// program is what serves behind a connection.
type program struct{ net.Conn }

func (program) Wait() (transport.Exit, error) { return transport.Exit{}, nil }
func (program) Done() <-chan struct{}         { return nil }
func (program) AfterDone(func())              {}

// A server that runs no programs has what it stored read back.
func TestReadBack(t *testing.T) {
	r := over(t, sftp.InMemHandler())
	from, here := t.TempDir(), t.TempDir()
	for name, size := range map[string]int{"empty": 0, "small": 100, "edge": Small, "over": Small + 1, "large": 3<<20 + 1} {
		must(t, os.WriteFile(filepath.Join(from, name), []byte(strings.Repeat("0123456789abcde", size/15+1)[:size]), 0o644))
	}
	for _, c := range []Copy{
		{From: &Local{}, To: r, Paths: []string{from}, Into: "/tree", Recursive: true},
		{From: &Local{}, To: r, Paths: []string{from + "/."}, Into: "/tree", Recursive: true},
		{From: r, To: &Local{}, Paths: []string{"/tree"}, Into: here + "/back", Recursive: true},
	} {
		want := int64(5)
		if c.From == r { // what is written here is not read again
			want = 0
		}
		if report := c.Run(t.Context()); !report.OK() || report.Checked != want {
			t.Fatalf("%+v, want %d checked", report, want)
		}
	}
	for _, name := range []string{"empty", "small", "edge", "over", "large"} {
		want, _ := os.ReadFile(filepath.Join(from, name))
		got, err := os.ReadFile(filepath.Join(here, "back", name))
		if err != nil || string(got) != string(want) {
			t.Errorf("%s: %v, %d bytes of %d", name, err, len(got), len(want))
		}
	}
	entries, err := os.ReadDir(filepath.Join(here, "back"))
	if err != nil || len(entries) != 5 {
		t.Errorf("%v, %v", entries, err)
	}
}

// liar is a server's file system that makes things up.
type liar struct {
	entries func(dir string) []fs.FileInfo
}

type entry struct {
	name string
	mode fs.FileMode
	size int64
}

func (e entry) Name() string       { return e.name }
func (e entry) Size() int64        { return e.size }
func (e entry) Mode() fs.FileMode  { return e.mode }
func (e entry) ModTime() time.Time { return time.Unix(0, 0) }
func (e entry) IsDir() bool        { return e.mode.IsDir() }
func (e entry) Sys() any           { return nil }

type entries []fs.FileInfo

func (l entries) ListAt(into []fs.FileInfo, offset int64) (int, error) {
	if offset >= int64(len(l)) {
		return 0, io.EOF
	}
	return copy(into, l[offset:]), nil
}

func (l liar) Filelist(r *sftp.Request) (sftp.ListerAt, error) {
	switch r.Method {
	case "List":
		return entries(l.entries(r.Filepath)), nil
	case "Readlink":
		return entries{entry{name: "/etc"}}, nil
	}
	return entries{entry{name: "d", mode: fs.ModeDir | 0o755}}, nil
}

func (l liar) Fileread(*sftp.Request) (io.ReaderAt, error) { return strings.NewReader("evil"), nil }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// endless is a directory whose names are more than anyone should keep.
func endless(string) []fs.FileInfo {
	many := make([]fs.FileInfo, 10_000)
	for i := range many {
		many[i] = entry{name: fmt.Sprintf("%0600d", i)}
	}
	return many
}

// A server cannot lead a copy out of where it belongs, nor keep it for ever.
func TestLiar(t *testing.T) {
	file := func(name string) fs.FileInfo { return entry{name, 0o644, 4} }
	link := func(name string) fs.FileInfo { return entry{name, fs.ModeSymlink | 0o777, 4} }
	dir := func(name string) fs.FileInfo { return entry{name, fs.ModeDir | 0o755, 0} }
	tests := map[string]struct {
		entries func(dir string) []fs.FileInfo
		code    string
	}{
		"a way up":           {func(string) []fs.FileInfo { return []fs.FileInfo{file("../evil")} }, ""},
		"a way down":         {func(string) []fs.FileInfo { return []fs.FileInfo{file("x/evil")} }, ""},
		"an absolute path":   {func(string) []fs.FileInfo { return []fs.FileInfo{file("/evil")} }, ""},
		"no name":            {func(string) []fs.FileInfo { return []fs.FileInfo{file("")} }, codeUnsafe},
		"a NUL":              {func(string) []fs.FileInfo { return []fs.FileInfo{file("a\x00b")} }, codeUnsafe},
		"a link and a dir":   {func(string) []fs.FileInfo { return []fs.FileInfo{link("x"), dir("x")} }, codeUnsafe},
		"a size that is not": {func(string) []fs.FileInfo { return []fs.FileInfo{entry{"x", 0o644, 1 << 50}} }, codeChanged},
		"no end":             {endless, codeFailed},
		"no bottom":          {func(string) []fs.FileInfo { return []fs.FileInfo{dir("d")} }, codeFailed},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l := liar{test.entries}
			r := over(t, sftp.Handlers{FileGet: l, FileList: l})
			r.link.in.most = 1 << 20
			above := t.TempDir()
			c := Copy{From: r, To: &Local{}, Paths: []string{"d"}, Into: above + "/into", Recursive: true}
			report := c.Run(t.Context())
			// Of a path the last element alone is taken for the name.
			if test.code != "" && (report.Failed == 0 || gateway.Code(report.Problems[0].Err) != test.code) {
				t.Errorf("%+v, want %s", report, test.code)
			}
			found, err := os.ReadDir(above)
			if err != nil || len(found) != 1 {
				t.Errorf("%v, %v", found, err)
			}
		})
	}
}

// TestListsOnce: what is replaced while it is listed, and comes twice, is there once.
func TestListsOnce(t *testing.T) {
	l := liar{func(string) []fs.FileInfo {
		return []fs.FileInfo{entry{"x", 0o644, 4}, entry{"y", 0o644, 4}, entry{"x", 0o600, 5}}
	}}
	var names []string
	err := over(t, sftp.Handlers{FileList: l}).List(t.Context(), "d", func(info Info) error {
		names = append(names, info.Name)
		return nil
	})
	if err != nil || !slices.Equal(names, []string{"x", "y"}) {
		t.Errorf("%q, %v", names, err)
	}
}

// unsized is a server's file system that knows nothing of its size, as with FUSE,
// and makes no directories.
type unsized struct{ sftp.FileCmder }

func (unsized) StatVFS(*sftp.Request) (*sftp.StatVFS, error) { return &sftp.StatVFS{}, nil }
func (unsized) Filecmd(*sftp.Request) error                  { return sftp.ErrSSHFxFailure }

// A failure is not taken for a full disk where nothing is known of the disk.
func TestUnknownSize(t *testing.T) {
	memory := sftp.InMemHandler()
	memory.FileCmd = unsized{memory.FileCmd}
	r := over(t, memory)
	if err := r.Mkdir(t.Context(), "/d", 0o700); gateway.Code(err) != codeFailed {
		t.Errorf("%v, want %s", err, codeFailed)
	}
}

// nulLinks says that its symlinks lead where no path can.
type nulLinks struct{ *Local }

func (nulLinks) Readlink(context.Context, string) (string, error) { return "a\x00b", nil }

// A shell would make another symlink of it, and sshd's server of sftp ends over it.
func TestSymlinkToNUL(t *testing.T) {
	from := nulLinks{&Local{Dir: t.TempDir()}}
	must(t, errors.Join(from.Mkdir(t.Context(), "d", 0o755), from.Symlink(t.Context(), "x", "d/link")))
	for _, to := range []Machine{&Local{}, over(t, sftp.InMemHandler()), shellHere(t, "stat")} {
		into := t.TempDir() + "/new"
		if to.About().Via == viaSFTP {
			into = "/new" // in its memory
		}
		r := (&Copy{From: from, To: to, Paths: []string{"d"}, Into: into, Recursive: true}).Run(t.Context())
		if r.Links != 0 || len(r.Problems) != 1 || gateway.Code(r.Problems[0].Err) != codeUnsafe {
			t.Errorf("%s: %+v", to.About().Via, r)
		}
	}
}
