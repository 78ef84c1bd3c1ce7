package transfer

import (
	"net"
	"testing"

	"gateway/gateway"
)

// TestOneHandleForTwo: of two open files that have one handle neither is as it was sent or
// read, whatever the server gives back. One at a time is.
func TestOneHandleForTwo(t *testing.T) {
	const isOpen, isLstat, isFstat, isOpenDir = 3, 7, 8, 11
	for _, two := range []bool{false, true} {
		near, far := net.Pipe()
		r := remote(t, linkTo(t, yesMan{far, map[byte]answerTo{isOpen: handle, isOpenDir: handle, isLstat: status(2), isFstat: regular}}, near, near))
		part, err := r.Create(t.Context(), Spec{Path: "/a", Perm: 0o644, Size: 2 * Small})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := part.Write(make([]byte, 2*Small)); err != nil {
			t.Fatal(err)
		}
		want := ""
		if two {
			want = codeUnsafe
			if _, err := r.Open(t.Context(), "/b", Info{}, 0); gateway.Code(err) != want {
				t.Errorf("open: %v", err)
			}
			if _, err := r.Create(t.Context(), Spec{Path: "/c", Perm: 0o644}); gateway.Code(err) != want {
				t.Errorf("create: %v", err)
			}
		}
		if _, err := part.Finish(t.Context(), Times{}); gateway.Code(err) != want {
			t.Errorf("finish: %v, want %q", err, want)
		}
		if part.Abandon(false) {
			t.Error("the part is left")
		}
	}
}
