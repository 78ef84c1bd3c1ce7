package session

import (
	"strings"
	"testing"
)

// TestFrameCanBeTyped: whatever a frame has to say beside the text, no line of it
// is too long for the terminal.
func TestFrameCanBeTyped(t *testing.T) {
	dir := "/run/user/4294967294/gateway-" + strings.Repeat("x", 32)
	k := &keeper{stdout: dir + "/1", stderr: dir + "/2", dir: dir, stored: make(chan struct{})}
	names := strings.Repeat("directory/", 9)
	for family, d := range dialects {
		for _, text := range []string{"ls", "unset x; f() { return; }; cat <<E\nsh\nE"} {
			for _, cwd := range []string{"", "/" + names} {
				for _, f := range []frame{
					{command: Command{TTY: true, Echo: true}, modes: true, loud: true},
					{command: Command{TTY: true, Echo: true}, modes: true, loud: true, traced: true},
					{command: Command{Merge: true, Stdin: strings.NewReader("")}, stdin: k.stdin(newNonce()), quiet: true, traced: true, modes: true, loud: true},
					{quiet: true, traced: true, modes: true},
				} {
					f.dialect, f.keeper, f.nonce, f.reopen, f.cwd, f.once = d, k, newNonce(), true, "/"+names, d.mend+d.recount+d.retrap
					f.command.Text, f.command.Cwd = text, cwd
					f.uploaded = !f.typable()
					if line, ok := f.line(); !ok {
						t.Errorf("%s, %q in %q: %d bytes, a line of %d", family, text, cwd, len(line), longestLine(line))
					}
				}
			}
		}
	}
	for family, d := range dialects {
		k := &keeper{stdout: "/proc/11957/fd/3", stderr: "/proc/11957/fd/4", dir: "/dev/shm/.gw-5369c85f151338d8", stored: make(chan struct{})}
		for n := range 16 * 150 { // whatever stands beside each other on a line
			is := func(bit int) bool { return n>>bit&1 == 1 }
			f := frame{dialect: d, keeper: k, nonce: newNonce(), quiet: true, loud: is(0), uploaded: is(1), cwd: "/root"}
			f.command = Command{Text: "ls", Env: map[string]string{"A": strings.Repeat("v", 3*(n>>4))}}
			if is(2) {
				f.command.Cwd = "/usr"
			}
			if is(3) {
				f.once = d.recount
			}
			if line, ok := f.line(); !ok {
				t.Errorf("%s, %d bytes of environment: %d bytes, a line of %d", family, 3*(n>>4), len(line), longestLine(line))
			}
		}
	}
}
