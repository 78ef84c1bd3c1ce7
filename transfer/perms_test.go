package transfer

import (
	"io/fs"
	"testing"
)

// TestPermissions: what a part has one after the other, where a umask takes something.
func TestPermissions(t *testing.T) {
	const none = 0o10000 // no Final
	for _, test := range []struct {
		name               string
		perm, final, umask fs.FileMode
		begins, ends       fs.FileMode
		unreadable         bool
	}{
		{"new", 0o644, none, 0o022, 0o644, 0o644, false},
		{"new, of the group", 0o664, none, 0o002, 0o664, 0o664, false},
		{"new, for its owner", 0o644, none, 0o077, 0o644, 0o600, false},
		{"new, to run", 0o755, none, 0o027, 0o755, 0o750, false},
		{"new, to run for others only", 0o711, none, 0o022, 0o711, 0o711, false},
		{"new, and nobody writes to it", 0o444, none, 0o022, 0o644, 0o444, false},
		{"new, and nobody reads it", 0o200, none, 0o022, 0o600, 0o600, true},
		{"new, with none", 0, none, 0o022, 0o600, 0o400, true},
		{"exact", 0o600, 0o666, 0o022, 0o600, 0o666, false},
		{"exact, to run", 0o644, 0o755, 0o077, 0o600, 0o755, false},
		{"exact, and nobody reads it", 0o644, 0o200, 0o022, 0o600, 0o600, true},
		{"exact, with none", 0o644, 0, 0o022, 0o600, 0o400, true},
	} {
		s := Spec{Perm: test.perm}
		if test.final != none {
			s.Final = &test.final
		}
		if got := s.begins(); got != test.begins {
			t.Errorf("%s: begins with %03o, want %03o", test.name, got, test.begins)
		}
		made := []fs.FileMode{s.begins() &^ test.umask}
		if test.perm&0o044 == 0o044 || s.Final != nil { // a server may have made it for all to read and write
			made = append(made, 0o666&^test.umask)
		}
		for _, made := range made {
			if got := s.ends(lessUmask(s.Perm, made)); got != test.ends {
				t.Errorf("%s, made with %03o: ends with %03o, want %03o", test.name, made, got, test.ends)
			}
		}
		if got := s.ends(s.Perm &^ test.umask); got != test.ends {
			t.Errorf("%s, with a shell: ends with %03o, want %03o", test.name, got, test.ends)
		}
		if got := s.unreadable(); got != test.unreadable {
			t.Errorf("%s: unreadable is %v, want %v", test.name, got, test.unreadable)
		}
	}
}

// TestKeptPermissions: what a file may have where a disk gives it no other ones.
func TestKeptPermissions(t *testing.T) {
	for _, test := range []struct {
		perm, final, has fs.FileMode
		fine             bool
	}{
		{perm: 0o644, has: 0o644, fine: true},
		{perm: 0o664, has: 0o644, fine: true},
		{perm: 0o600, has: 0o644},
		{perm: 0o640, has: 0o644},
		{perm: 0o755, has: 0o644},
		{perm: 0o644, has: 0o777, fine: true}, // as all of Windows in WSL
		{perm: 0o755, has: 0o777, fine: true},
		{perm: 0o600, has: 0o777},
		{perm: 0o640, has: 0o770, fine: true},
		{perm: 0o600, final: 0o644, has: 0o644, fine: true},
		{perm: 0o644, final: 0o644, has: 0o777},
	} {
		s := Spec{Path: "/f", Perm: test.perm}
		if test.final != 0 {
			s.Final = &test.final
		}
		if err := s.kept("m", test.has, fs.ErrPermission); err == nil != test.fine {
			t.Errorf("%03o, exactly %03o, in place of which it has %03o: %v", test.perm, test.final, test.has, err)
		}
	}
}
