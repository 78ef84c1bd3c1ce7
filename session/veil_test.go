package session

import (
	"fmt"
	"strings"
	"testing"
)

// TestVeilInPieces: what is shown does not depend on how the bytes arrive, and
// nothing of a secret is left beside the mask.
func TestVeilInPieces(t *testing.T) {
	for _, test := range []struct {
		secrets     []string
		input, want string
	}{
		{[]string{"release-2024.1", "release-2024.1-rc1"}, "a release-2024.1-rc1 b release-2024.1 c release-2024.1-rc", "a ******** b ******** c ********-rc"},
		{[]string{"release-2024.1-rc1", "release-2024.1"}, "release-2024.1", "********"},
		{[]string{"xyzab", "abcdef"}, "xyzab xyzabcdef abcde", "******** xyz******** abcde"},
		{[]string{"aaaa"}, "aaaaaaaaaa", "****************aa"},
		{[]string{"correct horse"}, "correct hors", "correct hors"},
	} {
		for size := 1; size <= len(test.input); size++ {
			t.Run(fmt.Sprintf("%s in pieces of %d", test.input, size), func(t *testing.T) {
				var v veil
				for _, secret := range test.secrets {
					v.hide(secret)
				}
				var got strings.Builder
				for rest := test.input; rest != ""; {
					n := min(size, len(rest))
					got.Write(v.over(Stdout, []byte(rest[:n])))
					rest = rest[n:]
				}
				got.Write(v.rest(Stdout))
				if got.String() != test.want {
					t.Errorf("got %q, want %q", got.String(), test.want)
				}
			})
		}
	}
}
