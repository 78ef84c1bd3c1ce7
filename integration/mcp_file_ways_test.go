package integration

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
)

// waysTree is a tree whose rules allow way, which leads to app over two symlinks,
// and tree/*/public; way/secrets is denied.
func waysTree(t *testing.T) (dir, rules string) {
	t.Helper()
	dir = realDir(t)
	plant(t, dir, []string{"app/secrets/dir", "app/sub", "out/dir", "hops", "tree/x/public"}, []string{"app/ok", "app/secrets/file", "out/file", "tree/y/public/ok"}, map[string]string{
		"way": "hops/hop", "hops/hop": "../app", "app/secrets/link": "../ok", "out/link": "../app",
		"app/inner": "sub/../ok", "app/outer": "../out/link/ok", "app/round": "secrets/dir/../../ok",
		"app/via-file": "secrets/file/../../ok", "app/via-none": "secrets/none/../../ok",
	})
	return dir, fmt.Sprintf("files: {allow: [%[1]s/way, %[1]s/tree/*/public], deny: [%[1]s/way/secrets]}", dir)
}

// TestAgentFileWays: the way to a file says nothing of what is forbidden there.
func TestAgentFileWays(t *testing.T) {
	t.Parallel()
	inventory, names := fileServers(t)
	dir, rules := waysTree(t)
	h := newHouse(t)
	h.write(t, ".config/gateway/hosts.yaml", inventory+"groups:\n  all-of-them:\n    hosts: [sftp, bare, dropbear, localhost]\n    "+rules+"\n")
	h.serves(t)
	a, _ := h.stdio(t, eras[1], "--hosts", strings.Join(names, ","))
	// How a way is followed depends on the host, and what is asked for at its end does not.
	ops := []string{"stat", "read", "write", "list"}
	for _, host := range names {
		t.Run(host, func(t *testing.T) {
			a.t = t
			for _, op := range ops {
				testForbiddenWays(a, host, op, dir)
			}
			for _, path := range []string{"app/ok", "way/ok", "way/../app/ok", "hops/../way/ok", "app/sub/../ok", "app/inner", "tree/x/../y/public/ok"} {
				for _, op := range []string{"read", "write", "stat"} {
					a.file(t, aFileCall(host, op, dir+"/"+path))
				}
			}
			a.file(t, aFileCall(host, "list", dir+"/way"))
			ops = ops[:2]
			for _, link := range []string{"outer", "round", "via-file", "via-none"} {
				s := a.file(t, aFileCall(host, "stat", dir+"/app/"+link))
				if s.Target == "" || s.LeadsTo != nil || s.RealPath != "" || !strings.Contains(s.Next, "the inventory's files.") {
					t.Errorf("stat %s: %+v", link, s)
				}
			}
		})
	}
}

// testForbiddenWays wants one answer for each way, whatever is on it.
func testForbiddenWays(a *agent, host, op, dir string) {
	a.t.Helper()
	for _, c := range []struct{ way, words string }{
		{"app/secrets/%s/../../ok", "files.deny"},
		{"app/secrets/%s/../../sub/new", "files.deny"},
		{"app/ſecrets/%s/../../ok", "files.deny"},
		{"app/sub/../secrets/%s/../../ok", "files.deny"},
		{"out/%s/../../app/ok", "files.allow"},
		{"out/%s/../../new", "files.allow"},
		{"app/../out/%s/ok", "files.allow"},
		{"app/../out/%s/../../app/ok", "files.allow"},
	} {
		var first string
		for _, there := range []string{"none", "file", "link", "dir"} {
			path := dir + "/" + fmt.Sprintf(c.way, there)
			s := a.refused("file.denied", c.words, "file", aFileCall(host, op, path))
			text := strings.ReplaceAll(s.text, "/"+there, "/*")
			if first = cmp.Or(first, text); text != first {
				a.t.Errorf("%s %s: %s, but without it %s", op, path, text, first)
			}
		}
	}
	if op == "stat" { // of the links themselves
		return
	}
	for _, link := range []string{"outer", "round", "via-file", "via-none"} {
		a.refused("file.denied", "the inventory's files.", "file", aFileCall(host, op, dir+"/app/"+link))
	}
}

func aFileCall(host, op, path string) args {
	call := args{"host": host, "op": op, "path": path}
	if op == "write" {
		call["content"] = "content"
	}
	return call
}
