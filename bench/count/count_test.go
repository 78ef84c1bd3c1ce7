package count

import (
	"io"
	"maps"
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	const log = `100 execve("bench", ...) = 0
100 read(3, ""..., 4096) = 10
100 clone(child_stack=NULL, flags=SIGCHLD) = 102
101 futex(0xc000, FUTEX_WAIT <unfinished ...>
101 write(5, ""..., 20) = 20
102 close(3) = 0
102 execve("/bin/dash", ...) = 0
102 read(0, ""..., 100) = 5
102 write(1, ""..., 5 <unfinished ...>
100 epoll_pwait(4, ...) = 1
102 <... write resumed>) = 5
101 <... futex resumed>) = 0
102 +++ exited with 0 +++
`
	got, err := read(strings.NewReader(log))
	if want := (tally{own: 3, shell: 3}); err != nil || got != want { // a child is our own until it is another program
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	if _, err := read(strings.NewReader("strace: no such thing\n")); err == nil {
		t.Error("nothing was seen, and that is no error")
	}
}

func TestCompare(t *testing.T) {
	baseline := Counts{}
	for _, tolerance := range tolerances {
		baseline[tolerance.name] = 100
	}
	const name = "allocations of a command, over SSH" // a tenth and two more
	for _, c := range []struct {
		is    float64
		worse int
		says  string
	}{{100, 0, ""}, {112, 0, ""}, {113, 1, "WORSE"}, {87, 0, "better"}} {
		is := maps.Clone(baseline)
		is[name] = c.is
		var out strings.Builder
		if got := is.Compare(&out, baseline); got != c.worse || !strings.Contains(out.String(), c.says) {
			t.Errorf("%v: %d are worse, want %d and %q:\n%s", c.is, got, c.worse, c.says, out.String())
		}
	}
	missing := maps.Clone(baseline)
	delete(missing, name)
	if missing.Compare(io.Discard, baseline) != 1 || baseline.Compare(io.Discard, missing) != 1 {
		t.Error("a count that is missing is not noticed")
	}
}
