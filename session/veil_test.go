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
		{[]string{"xyzab", "abcdef"}, "xyzab xyzabcdef abcde", "******** ******** abcde"},
		{[]string{"aaaa"}, "aaaaaaaaaa", "********"},
		{[]string{"correct horse"}, "correct hors", "correct hors"},
		{[]string{"correct horse\nbattery\n"}, "correct horse\r\nbattery", "********\r\n********"},
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

// TestVeilHoldsLittle: no more is held back than the longest secret has, also of
// one that may begin anywhere.
func TestVeilHoldsLittle(t *testing.T) {
	var v veil
	v.hide("0000")
	v.hide("00000000")
	shown := 0
	for range 1000 {
		shown += len(v.over(Stdout, []byte("000")))
		if held := len(v.sights[Stdout].held); held >= 8 {
			t.Fatalf("%d bytes are held", held)
		}
	}
	if shown != len(mask) {
		t.Errorf("%d bytes are shown, want one mask", shown)
	}
}

func TestTraces(t *testing.T) {
	for text, want := range map[string]bool{
		"set -x": true, "set -ex": true, "set -e -x": true, "set -o pipefail -x": true, "set -eo pipefail -v": true, "set +e -n": true,
		"set -o xtrace": true, "shopt -so xtrace": true, "setopt verbose": true, "options[xtrace]=on": true, "trap : DEBUG": true,
		"set -e": false, "set -- -x": false, "unset -v x": false, "set -eu; ls -x": false, "grep --verbose DEBUG": false, "echo options[x]": false,
	} {
		if got := (&Session{}).isTraced(text); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}
