package hosts_test

import (
	"strings"
	"testing"

	"gateway/hosts"
)

func TestCovers(t *testing.T) {
	for _, c := range []struct {
		pattern, path string
		want          bool
	}{
		{"/srv/app", "/srv/app", true},
		{"/srv/app", "/srv/app/a/b", true},
		{"/srv/app/", "/srv/app/a", true},
		{"/srv/app", "/srv/application", false},
		{"/srv/app", "/srv", false},
		{"/", "/", true},
		{"/", "/etc/passwd", true},
		{"/srv/*", "/srv", false},
		{"/srv/*", "/srv/a/b", true},
		{"/srv/*.log", "/srv/a.log", true},
		{"/srv/*.log", "/srv/a/b.log", false},
		{"/home/*/.ssh", "/home/eve/.ssh/id", true},
		{"/home/*/.ssh", "/home/eve/a/.ssh", false},
		{"/srv/*", "/srv/.hidden", true},
		{"/srv/[a-c]?", "/srv/b1", true},
		{"/srv/[a-c]?", "/srv/d1", false},
		{`/srv/\[x]`, "/srv/[x]", true},
		{"/srv/[!.]*", "/srv/app", true},
		{"/srv/[!.]*", "/srv/.ssh", false},
		{"/srv/[!.]*", "/srv/!", true},
	} {
		if got := hosts.Covers(c.pattern, c.path); got != c.want {
			t.Errorf("Covers(%q, %q) = %v", c.pattern, c.path, got)
		}
	}
}

func TestAbove(t *testing.T) {
	for _, c := range []struct {
		pattern, path string
		want          bool
	}{
		{"/srv/app", "/", true},
		{"/srv/app", "/srv", true},
		{"/srv/app", "/srv/app", true},
		{"/srv/app", "/srv/app/a", false},
		{"/srv/app", "/sr", false},
		{"/srv/app", "/etc", false},
		{"/", "/", true},
		{"/", "/etc", false},
		{"/home/*/.ssh", "/home/eve", true},
		{"/home/*/.ssh", "/home/eve/a", false},
		{"/srv/[a-c]?/x", "/srv/b1", true},
		{"/srv/[a-c]?/x", "/srv/d1", false},
	} {
		if got := hosts.Above(c.pattern, c.path); got != c.want {
			t.Errorf("Above(%q, %q) = %v", c.pattern, c.path, got)
		}
	}
}

func TestFilePatterns(t *testing.T) {
	for pattern, refused := range map[string]string{
		"/srv/app": "", "~/upload": "", "~": "", "/var/log/*.log": "",
		"srv": "relative path", "/srv/../etc": "no . or ..", "~/./a": "no . or ..", "/srv/[a": "no pattern", "/srv/[[:digit:]]": "no pattern",
	} {
		_, err := hosts.Parse("hosts.yaml", []byte("hosts: {web1: {files: {allow: ['"+pattern+"']}}}"))
		if (err != nil) != (refused != "") || err != nil && !strings.Contains(err.Error(), refused) {
			t.Errorf("%s: %v, want %q", pattern, err, refused)
		}
	}
}
