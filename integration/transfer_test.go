package integration

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gateway/gateway"
	"gateway/hosts"
	"gateway/internal/sshdtest"
	"gateway/transfer"
)

// filesOf returns the files of a server, that is reached on a port of this
// machine.
func filesOf(t testing.TB, s *sshdtest.Server, port int) transfer.Machine {
	t.Helper()
	m, err := openFiles(t, s, port)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func openFiles(t testing.TB, s *sshdtest.Server, port int) (transfer.Machine, error) {
	t.Helper()
	inv, err := hosts.Parse("hosts.yaml", []byte("hosts:\n  web1: "+entryAt(s, port)+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	g := gateway.New(gateway.Config{Inventory: inv})
	t.Cleanup(func() { g.Close() })
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	c, err := g.Connect(ctx, "web1", "")
	if err != nil {
		return nil, err
	}
	return transfer.Open(ctx, c)
}

// smallFiles makes a tree of small files.
func smallFiles(t testing.TB, n int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tree")
	random := rand.NewChaCha8([32]byte{1})
	for i := range n {
		sub := filepath.Join(dir, fmt.Sprintf("d%02d", i%20))
		if i < 20 {
			must(t, os.MkdirAll(sub, 0o755))
		}
		b := make([]byte, i*7%8192)
		random.Read(b)
		must(t, os.WriteFile(filepath.Join(sub, fmt.Sprintf("f%04d", i)), b, 0o644))
	}
	return dir
}

// largeFile makes a file that does not compress.
func largeFile(t testing.TB, size int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "large")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	random := rand.NewChaCha8([32]byte{2})
	b := make([]byte, 1<<20)
	for ; size > 0; size -= len(b) {
		random.Read(b)
		if _, err := f.Write(b[:min(len(b), size)]); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// treeSum is a hash of everything below a directory.
func treeSum(t testing.TB, dir string) (sum string, entries int) {
	t.Helper()
	all := sha256.New()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		entries++
		fmt.Fprintf(all, "%q %v\n", rel, d.Type())
		switch {
		case d.Type().IsRegular():
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(all, "%x\n", sha256.Sum256(b))
		case d.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(all, "%q\n", target)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", all.Sum(nil)), entries
}

func sameTrees(t testing.TB, a, b string) {
	t.Helper()
	want, n := treeSum(t, a)
	got, m := treeSum(t, b)
	if got != want {
		t.Errorf("%s (%d entries) is not what %s (%d) is", b, m, a, n)
	}
}

func sameFiles(t testing.TB, a, b string) {
	t.Helper()
	if want, got := fileSum(t, a), fileSum(t, b); got != want {
		t.Errorf("%s (%s) is not what %s (%s) is", b, got, a, want)
	}
}

// fileSum is the size of a file, and a hash. It takes little memory, however large the file.
func fileSum(t testing.TB, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all := sha256.New()
	n, err := io.Copy(all, f)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d bytes, %x", n, all.Sum(nil))
}

// copyFiles runs a copy that must go well.
func copyFiles(t testing.TB, c transfer.Copy) *transfer.Report {
	t.Helper()
	r := run(t, c)
	if r.Err != nil {
		t.Fatalf("%s: %v", gateway.Code(r.Err), r.Err)
	}
	for _, p := range r.Problems {
		t.Fatalf("%s: %s: %v", p.Path, gateway.Code(p.Err), p.Err)
	}
	return r
}

// Trees and large files are the same afterwards, each way.
func TestTransfer(t *testing.T) {
	t.Parallel()
	const size = 33<<20 + 12345
	whole, few, large := smallFiles(t, 600), smallFiles(t, 300), largeFile(t, size)
	local := &transfer.Local{}
	machines := []struct {
		name, via string
		files     func(t *testing.T) transfer.Machine
	}{
		{"openssh", "sftp", func(t *testing.T) transfer.Machine {
			s := sshdtest.Start(t, sshdtest.Options{})
			return filesOf(t, s, s.Port)
		}},
		{"openssh without sftp", "shell", func(t *testing.T) transfer.Machine {
			s := sshdtest.Start(t, sshdtest.Options{NoSftp: true})
			return filesOf(t, s, s.Port)
		}},
		{"dropbear", "", func(t *testing.T) transfer.Machine {
			s := sshdtest.StartDropbear(t, sshdtest.Options{})
			return filesOf(t, s, s.Port)
		}},
		{"localhost", "local", func(*testing.T) transfer.Machine { return &transfer.Local{Name: "localhost"} }},
	}
	for _, m := range machines {
		t.Run(m.name, func(t *testing.T) {
			there, here := t.TempDir(), t.TempDir()
			far := m.files(t)
			tree, count := whole, int64(600)
			if m.via == "shell" { // each file is a process or two
				tree, count = few, 300
			}
			if via := far.About().Via; m.via != "" && via != m.via {
				t.Fatalf("via %s, want %s", via, m.via)
			}
			checked := count + 1
			if m.via == "local" {
				checked = 0
			}
			r := copyFiles(t, transfer.Copy{From: local, To: far, Paths: []string{tree, large}, Into: there, Recursive: true})
			if r.Files != count+1 || r.Dirs != 21 || r.Checked != checked {
				t.Errorf("%+v", r)
			}
			t.Log("up", r.Duration)
			sameTrees(t, tree, there+"/tree")
			sameFiles(t, large, there+"/large")
			r = copyFiles(t, transfer.Copy{From: far, To: local, Paths: []string{there + "/tree", there + "/large"}, Into: here, Recursive: true})
			if r.Files != count+1 || r.Dirs != 21 {
				t.Errorf("%+v", r)
			}
			t.Log("down", r.Duration)
			sameTrees(t, there, here)
			r = copyFiles(t, transfer.Copy{From: local, To: far, Paths: []string{tree + "/.", large}, Into: there + "/tree", Recursive: true, Checksum: true})
			t.Log("checksum", r.Duration)
			if r.Files != 1 || r.Unchanged != count {
				t.Errorf("%+v", r)
			}
		})
	}
}
