package integration

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"gateway/internal/netsim"
	"gateway/internal/sshdtest"
)

// aFile is what the tool file answers.
type aFile struct {
	Host, Path, Via, Type, Mode, Encoding, Content, Target string
	RealPath                                               string `json:"real_path"`
	Size, Offset                                           int64
	NextOffset                                             int64 `json:"next_offset"`
	Bytes, Total, Omitted, Denied                          int
	Created                                                bool
	Entries                                                []aFile
	Name                                                   string
	NameBase64                                             string `json:"name_base64"`
	LeadsTo                                                *aFile `json:"leads_to"`
	Next                                                   string
}

// file wants the tool to do something.
func (a *agent) file(t *testing.T, arguments args) (f aFile) {
	t.Helper()
	text := a.do("file", arguments).text
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return f
}

// fileServers are the ways to a host's files.
func fileServers(t *testing.T) (inventory string, names []string) {
	t.Helper()
	return "hosts:\n  sftp: " + entry(sshdtest.Start(t, sshdtest.Options{}), "") +
		"\n  bare: " + entry(sshdtest.Start(t, sshdtest.Options{NoSftp: true}), "") +
		"\n  dropbear: " + entry(sshdtest.StartDropbear(t, sshdtest.Options{}), "") + "\n", []string{"sftp", "bare", "dropbear", "localhost"}
}

func TestAgentFiles(t *testing.T) {
	t.Parallel()
	inventory, names := fileServers(t)
	h := newHouse(t)
	h.write(t, ".config/gateway/hosts.yaml", inventory)
	h.serves(t)
	a, _ := h.stdio(t, eras[1], "--hosts", strings.Join(names, ","))
	for _, host := range names {
		t.Run(host, func(t *testing.T) {
			a.t = t
			testFiles(t, a, host, realDir(t))
		})
	}
}

// realDir is a temporary directory by a path that has no symlink in it.
func realDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// plant makes directories, files and symlinks in a directory.
func plant(t *testing.T, in string, dirs, files []string, links map[string]string) {
	t.Helper()
	for _, dir := range dirs {
		must(t, os.MkdirAll(filepath.Join(in, dir), 0o755))
	}
	for _, file := range files {
		write(t, filepath.Join(in, file), "content", 0o644)
	}
	for link, target := range links {
		must(t, os.Symlink(target, filepath.Join(in, link)))
	}
}

func testFiles(t *testing.T, a *agent, host, dir string) {
	name := dir + "/it's a file"
	with := func(op, path string, more args) args {
		all := args{"host": host, "op": op, "path": path}
		for k, v := range more {
			all[k] = v
		}
		return all
	}
	made := a.file(t, with("write", name, args{"content": "one\nzwei ä\n", "mode": "0640"}))
	if !made.Created || made.Bytes != 12 || made.Path != name || made.Via == "" {
		t.Errorf("write: %+v", made)
	}
	has(t, name, "one\nzwei ä\n", 0o640)
	if again := a.file(t, with("write", name, args{"content": ""})); again.Created {
		t.Errorf("write again: %+v", again)
	}
	has(t, name, "", 0o640)
	a.file(t, with("write", name, args{"content": "0123456789ä", "mode": "600"}))
	has(t, name, "0123456789ä", 0o600)

	for _, c := range []struct {
		offset, limit int
		content       string
		next          int64
	}{
		{0, 0, "0123456789ä", 0},
		{0, 4, "0123", 4},
		{4, 6, "456789", 10},
		{4, 7, "456789", 10}, // no half characters
		{10, 2, "ä", 0},
		{12, 5, "", 0},
		{13, 5, "", 0},
		{1 << 30, 1, "", 0},
	} {
		more := args{"offset": c.offset}
		if c.limit > 0 {
			more["limit"] = c.limit
		}
		got := a.file(t, with("read", name, more))
		if got.Content != c.content || got.Encoding != "text" || got.NextOffset != c.next || got.Size != 12 || got.Bytes != len(c.content) || got.Type != "file" || got.Mode != "0600" {
			t.Errorf("read %d %d: %+v", c.offset, c.limit, got)
		}
	}
	if half := a.file(t, with("read", name, args{"offset": 11})); half.Encoding != "base64" || half.Content != base64.StdEncoding.EncodeToString([]byte("ä")[1:]) {
		t.Errorf("half a character: %+v", half)
	}

	// What is no text, and more than one answer holds.
	large := bytes.Repeat([]byte("\x00\xff\n a line\x1b[0m\r\n"), 60_000)
	must(t, os.WriteFile(dir+"/large", large, 0o644))
	var all []byte
	for offset := int64(0); ; {
		page := a.file(t, with("read", dir+"/large", args{"offset": offset, "limit": 256 << 10}))
		b, err := base64.StdEncoding.DecodeString(page.Content)
		if err != nil || page.Encoding != "base64" || page.Size != int64(len(large)) || len(b) != page.Bytes {
			t.Fatalf("page at %d: %v", offset, err)
		}
		all = append(all, b...)
		if offset = page.NextOffset; offset == 0 {
			break
		}
	}
	if !bytes.Equal(all, large) {
		t.Errorf("%d bytes came, want %d", len(all), len(large))
	}
	a.file(t, with("write", dir+"/binary", args{"content": base64.StdEncoding.EncodeToString(large[:900_000]), "encoding": "base64"}))
	if b, err := os.ReadFile(dir + "/binary"); err != nil || !bytes.Equal(b, large[:900_000]) {
		t.Errorf("binary: %d bytes, %v", len(b), err)
	}

	// A symlink is followed, and stays.
	os.Symlink("binary", dir+"/link")
	a.file(t, with("write", dir+"/link", args{"content": "through"}))
	has(t, dir+"/binary", "through", 0o644)
	if s := a.file(t, with("stat", dir+"/link", nil)); s.Type != "symlink" || s.Target != "binary" || s.LeadsTo == nil || s.LeadsTo.Size != 7 || s.RealPath != dir+"/binary" {
		t.Errorf("stat: %+v", s)
	}

	// Names that are no text, and a list that is cut.
	os.WriteFile(dir+"/\xffname", nil, 0o600)
	list := a.file(t, with("list", dir, args{"limit": 2}))
	if list.Total != 5 || len(list.Entries) != 2 || list.Omitted != 3 || list.NextOffset != 2 || list.Entries[0].Name != "binary" {
		t.Errorf("list: %+v", list)
	}
	rest := a.file(t, with("list", dir, args{"offset": 2}))
	if len(rest.Entries) != 3 || rest.NextOffset != 0 || rest.Entries[2].NameBase64 != base64.StdEncoding.EncodeToString([]byte("\xffname")) || rest.Entries[1].Type != "symlink" {
		t.Errorf("the rest: %+v", rest)
	}

	// What can't be done.
	must(t, syscall.Mkfifo(dir+"/fifo", 0o600))
	a.refused("file.special", "", "file", with("read", dir+"/fifo", nil))
	a.refused("file.special", "", "file", with("write", dir+"/fifo", args{"content": "x"}))
	a.refused("file.is_directory", "list", "file", with("read", dir, nil))
	a.refused("file.is_directory", "", "file", with("write", dir, args{"content": "x"}))
	a.refused("file.not_directory", "", "file", with("list", name, nil))
	a.refused("file.not_found", "mkdir -p", "file", with("write", dir+"/none/x", args{"content": "x"}))
	a.refused("file.permission", "a copy is made", "file", with("write", "/proc/sys/none", args{"content": "x"})) // the directory is there
	a.refused("file.not_found", "did you mean "+dir+"/large?", "file", with("read", dir+"/lrge", nil))
	a.refused("file.not_directory", "", "file", with("read", name+"/x", nil))

	// Writers at the same time: one of them has the last word, whole.
	var writers sync.WaitGroup
	for i := range 6 {
		writers.Go(func() {
			content := strings.Repeat(fmt.Sprint(i), 100_000)
			if s, err := a.call(t.Context(), "file", with("write", dir+"/race", args{"content": content})); err != nil || s.isError {
				t.Errorf("a writer: %s, %v", s.text, err)
			}
		})
	}
	writers.Wait()
	if b, err := os.ReadFile(dir + "/race"); err != nil || len(b) != 100_000 || strings.Trim(string(b), string(b[:1])) != "" {
		t.Errorf("%d bytes of several writers, %v", len(b), err)
	}
	if parts, _ := filepath.Glob(dir + "/.*.part"); len(parts) > 0 {
		t.Errorf("left are %q", parts)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.call(ended, "file", with("read", name, nil)); err == nil {
		t.Error("a call that was cancelled has an answer")
	}
}

func has(t *testing.T, name, content string, perm fs.FileMode) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil || string(b) != content {
		t.Errorf("%s has %.100q, %v, want %q", name, b, err, content)
	}
	if info, err := os.Stat(name); err == nil && info.Mode().Perm() != perm {
		t.Errorf("%s has mode %v, want %v", name, info.Mode().Perm(), perm)
	}
}

// TestAgentFileRules: the inventory says which files an agent may touch.
func TestAgentFileRules(t *testing.T) {
	t.Parallel()
	inventory, names := fileServers(t)
	dir := realDir(t)
	plant(t, dir, []string{"app/secrets/inner", "app/sub"}, []string{"app/a", "app/secrets/key", "app/x.pem", "apple/a", "out/a", "logs/a.log", "logs/a.txt"}, map[string]string{
		"app/to-file": "../out/a", "app/to-dir": dir + "/out", "app/to-secret": "secrets", "app/loop": "loop",
		"app/to-nothing": dir + "/out/new", "app/inside": "sub/../a", "way": "app", "out/back": "../app",
	})
	files := fmt.Sprintf("groups:\n  all-of-them:\n    hosts: [sftp, bare, dropbear, localhost]\n    files: {allow: [%[1]s/way, %[1]s/logs/*.log], deny: [%[1]s/way/secrets, '%[1]s/app/*.pem']}\n", dir)
	h := newHouse(t)
	h.write(t, ".config/gateway/hosts.yaml", inventory+files)
	h.serves(t)
	a, _ := h.stdio(t, eras[1], "--hosts", strings.Join(names, ","))
	for _, host := range names {
		t.Run(host, func(t *testing.T) {
			a.t = t
			for _, c := range []struct{ op, path, code string }{
				{"read", "app/a", ""},
				{"read", "way/a", ""},
				{"read", "way/../app/a", ""},
				{"read", "app/inside", ""},
				{"read", "out/back/a", "file.denied"},
				{"read", "logs/a.log", ""},
				{"list", "app", ""},
				{"stat", "app/to-file", ""},
				{"write", "app/a", ""},
				{"write", "app/sub/new-" + host, ""},
				{"read", "app/none", "file.not_found"},
				{"read", "app/loop", "file.failed"},
				{"read", "logs/a.txt", "file.denied"},
				{"list", "logs", "file.denied"},
				{"read", "apple/a", "file.denied"},
				{"read", "apple/none", "file.denied"},
				{"read", "app/../out/a", "file.denied"},
				{"read", "app/none/../../out/a", "file.denied"},
				{"read", "app/sub/../../out/a", "file.denied"},
				{"read", "app/to-file", "file.denied"},
				{"read", "app/to-dir/a", "file.denied"},
				{"write", "app/to-file", "file.denied"},
				{"write", "app/to-dir/new", "file.denied"},
				{"write", "app/to-nothing", "file.denied"},
				{"list", "app/to-dir", "file.denied"},
				{"read", "app/secrets/key", "file.denied"},
				{"read", "way/secrets/key", "file.denied"},
				{"read", "app/to-secret/key", "file.denied"},
				{"read", "app/secrets/none", "file.denied"},
				{"list", "app/secrets", "file.denied"},
				{"stat", "app/secrets/inner", "file.denied"},
				{"write", "app/secrets/new", "file.denied"},
				{"read", "app/x.pem", "file.denied"},
				{"write", "app/new.pem", "file.denied"},
				{"list", "", "file.denied"},
			} {
				call := args{"host": host, "op": c.op, "path": dir + "/" + c.path}
				if c.op == "write" {
					call["content"] = "content"
				}
				if c.code == "" {
					a.file(t, call)
				} else {
					a.refused(c.code, "", "file", call)
				}
			}
			if list := a.file(t, args{"host": host, "op": "list", "path": dir + "/app"}); list.Denied != 2 || strings.Contains(fmt.Sprint(list.Entries), "secrets ") {
				t.Errorf("list: %+v", list)
			}
			if s := a.file(t, args{"host": host, "op": "stat", "path": dir + "/app/to-file"}); s.LeadsTo != nil || s.Target != "../out/a" || !strings.Contains(s.Next, "files.allow") {
				t.Errorf("stat of a link that leads out: %+v", s)
			}
			a.refused("file.denied", "allowed is "+dir+"/way", "file", args{"host": host, "op": "read", "path": "/etc/passwd"})
			a.refused("file.denied", "leads to", "file", args{"host": host, "op": "read", "path": dir + "/app/to-file"})
			a.refused("file.denied", "", "file", args{"host": host, "op": "list", "path": "~"})
		})
	}
	if left, err := os.ReadDir(dir + "/out"); err != nil || len(left) != 2 {
		t.Errorf("outside there are %v, %v", left, err)
	}
}

// TestAgentFileInput: calls that can't be meant, hosts that a server must not
// touch, and keys that nobody has accepted.
func TestAgentFileInput(t *testing.T) {
	t.Parallel()
	server := sshdtest.Start(t, sshdtest.Options{})
	h := newHouse(t)
	known := entry(server, "")
	unknown := strings.Replace(known, server.KnownHosts, filepath.Join(t.TempDir(), "none"), 1)
	h.write(t, ".config/gateway/hosts.yaml", "hosts:\n  web1: "+known+"\n  new: "+unknown+"\n  db1: "+known+"\n")
	h.serves(t)
	a, _ := h.stdio(t, eras[0], "--hosts", "web1,new")
	a.refused("inventory.unknown_host", "", "file", args{"host": "db1", "op": "list", "path": "/"})
	a.refused("inventory.unknown_host", "", "file", args{"host": "localhost", "op": "list", "path": "/"})
	a.refused("hostkey.unknown", "ask a person: compare", "file", args{"host": "new", "op": "list", "path": "/"})
	for _, c := range []struct {
		words string
		more  args
	}{
		{"op", args{"op": "delete"}},
		{"path", args{"path": ""}},
		{"NUL", args{"path": "/a\x00b"}},
		{"offset", args{"offset": -1}},
		{"limit", args{"limit": 1 << 30}},
		{"for write", args{"content": "x"}},
		{"for write", args{"mode": "0644"}},
		{"needs content", args{"op": "write"}},
		{"whole file", args{"op": "write", "content": "x", "offset": 4}},
		{"octal", args{"op": "write", "content": "x", "mode": "4755"}},
		{"base64", args{"op": "write", "content": "x", "encoding": "base64"}},
		{"at most", args{"op": "write", "content": strings.Repeat("x", 1<<20+1)}},
		{"2000", args{"op": "list", "limit": 2001}},
		{"no argument", args{"user": "root"}},
	} {
		call := args{"host": "web1", "op": "read", "path": "/etc/hostname"}
		for k, v := range c.more {
			call[k] = v
		}
		a.refused("usage", c.words, "file", call)
	}
	// A file that is made up while it is read.
	if f := a.file(t, args{"host": "web1", "op": "read", "path": "/proc/self/status", "limit": 5}); f.Content != "Name:" || f.NextOffset != 5 {
		t.Errorf("/proc: %+v", f)
	}
}

// TestAgentFilesWarm: calls share a connection, and one that has gone is no
// reason to fail.
func TestAgentFilesWarm(t *testing.T) {
	server := sshdtest.Start(t, sshdtest.Options{})
	proxy := netsim.Start(t, server.Addr, 0)
	h := newHouse(t)
	h.write(t, ".config/gateway/hosts.yaml", "hosts:\n  web1: "+entryAt(server, proxy.Port())+"\n")
	daemon := h.serve(t)
	a, _ := h.stdio(t, eras[1])
	name := t.TempDir() + "/a"
	a.do("session_open", args{"host": "web1", "name": "work"})
	a.file(t, args{"host": "web1", "op": "write", "path": name, "content": "before"})
	if n := proxy.Conns(); n != 1 {
		t.Errorf("session and files have %d connections, want one", n)
	}
	// What is lent goes with the daemon.
	must(t, daemon.Process.Kill())
	daemon.Wait()
	if f := a.file(t, args{"host": "web1", "op": "read", "path": name}); f.Content != "before" {
		t.Errorf("read: %+v", f)
	}
}
