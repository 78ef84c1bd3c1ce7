package transfer_test

import (
	"testing"

	"gateway/gateway"
	"gateway/transfer"
)

func TestParsePlace(t *testing.T) {
	tests := []struct{ in, selector, path, code string }{
		{"a", "", "a", ""},
		{"", "", "", ""},
		{"./a:b", "", "./a:b", ""},
		{"/a:b", "", "/a:b", ""},
		{"a/b:c", "", "a/b:c", ""},
		{"web1:", "web1", "", ""},
		{"web1:a:b", "web1", "a:b", ""},
		{"web1:/a:b", "web1", "/a:b", ""},
		{"web1:~", "web1", "", ""},
		{"web1:~/x", "web1", "x", ""},
		{"web1:~x", "web1", "~x", ""},
		{"@web:/srv/", "@web", "/srv/", ""},
		{"tag:eu:/srv", "tag:eu", "/srv", ""},
		{"@web,&tag:eu,!tag:old:/srv", "@web,&tag:eu,!tag:old", "/srv", ""},
		{"web[01-20]:x", "web[01-20]", "x", ""},
		{"run:last/failed:/tmp/x", "run:last/failed", "/tmp/x", ""},
		{"run:last/failed,unknown:x", "run:last/failed,unknown", "x", ""},
		{"tag:eu", "", "", "usage"},
		{"run:last/failed", "", "", "usage"},
		{":x", "", "", "usage"},
		{"tag:eu:a b", "tag:eu", "a b", ""},
		{"tag:role:db:/srv", "tag:role:db", "/srv", ""},
		{"tag:role:db:~", "tag:role:db", "", ""},
		{"tag:role:db:", "tag:role:db", "", ""},
		{"tag:role:db:./a:b", "tag:role:db", "./a:b", ""},
		{"tag:role:db:../a", "tag:role:db", "../a", ""},
		{"tag:eu:/srv/a:b", "tag:eu", "/srv/a:b", ""},
		{"tag:a/b:/srv", "tag:a/b", "/srv", ""},
		{"tag:a/b,web1:x", "tag:a/b,web1", "x", ""},
		{"tag:role:db,web1:x", "", "", "usage"}, // tag:role:db, or db,web1:x on tag:role
		{"tag:role:db,@web:/srv", "tag:role:db,@web", "/srv", ""},
		{"tag:role:db,!tag:os:bsd,&tag:eu:~", "tag:role:db,!tag:os:bsd,&tag:eu", "", ""},
		{"tag:role:db,tag:os:bsd:./x", "tag:role:db,tag:os:bsd", "./x", ""},
		{"tag:role:db,run:last/failed:/srv", "tag:role:db,run:last/failed", "/srv", ""},
		{"@web,tag:role:db:/srv", "@web,tag:role:db", "/srv", ""},
		{"tag:role:/srv,@web:/srv", "tag:role", "/srv,@web:/srv", ""},
		{"tag:role:db,tag:os:bsd:x", "", "", "usage"},
		{"tag:role:db,web1", "tag:role", "db,web1", ""},
		{"tag:role:db:x", "", "", "usage"},
		{"tag:eu:a b:c", "", "", "usage"},
		{"tag:a/b", "", "", "usage"},
		{"run:last:a:b", "run:last", "a:b", ""},
		{"tags:x", "tags", "x", ""},
		{"tag/x:y", "", "tag/x:y", ""},
	}
	for _, test := range tests {
		p, err := transfer.ParsePlace(test.in)
		if p.Selector != test.selector || p.Path != test.path || gateway.Code(err) != test.code {
			t.Errorf("ParsePlace(%q) = %q, %q, %v; want %q, %q, %q", test.in, p.Selector, p.Path, err, test.selector, test.path, test.code)
		}
	}
}
