package transfer

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// Some disks take no name that is no text: half a character is none.
func TestPartOfLongText(t *testing.T) {
	for n := range 4 {
		name := strings.Repeat("n", n) + strings.Repeat("é€😀", 28)
		if part := partPath(name); !utf8.ValidString(part) || !isPart(part, name) {
			t.Errorf("%q", part)
		}
	}
}

// A part is that of one name, also where two long ones begin alike.
func TestIsPart(t *testing.T) {
	long := strings.Repeat("n", 250)
	names := []string{"a", "ab", "a.gateway-b", long, long + "2", long[:200], long[:201]}
	for _, name := range names {
		_, part := split(partPath("dir/" + name))
		if len(part) > 255 {
			t.Errorf("%d bytes", len(part))
		}
		if whole := Whole("dir/" + part); len(name) <= 200 && whole != "dir/"+name {
			t.Errorf("%s: a part of %s", part, whole)
		}
		for _, other := range names {
			if isPart(part, other) != (other == name) {
				t.Errorf("%s: a part of %s", part, other)
			}
		}
	}
}
