package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What a host says for a registered variable names files here, and chooses no other
// place: neither one that is overwritten, nor one that is sent to it.
func TestCopyStepStaysHere(t *testing.T) {
	t.Parallel()
	d := copyUser(t)
	d.mkdir("ci/in/sub")
	d.file("ci/in/sub/x", "x")
	d.file("victim", "as it was")
	for _, test := range []struct{ name, said, step string }{
		{"up", "../..", `fetch: {src: got, dst: "in/${{ r }}/victim"}`},
		{"up in a value", "sub/../../../victim", `fetch: {src: got, dst: "in/${{ r }}"}`},
		{"up by two values", ".", `fetch: {src: got, dst: "${{ r }}${{ r }}/victim"}`},
		{"absolute", d.dir + "/victim", `fetch: {src: got, dst: "${{ r }}"}`},
		{"nothing before a slash", "", `fetch: {src: got, dst: "${{ r }}` + d.dir + `/victim"}`},
		{"home", "~", `fetch: {src: got, dst: "${{ r }}/victim"}`},
		{"sent", d.dir + "/victim", `copy: {src: "${{ r }}", dst: taken}`},
		{"sent from above", "..", `copy: {src: "${{ r }}/victim", dst: taken}`},
	} {
		status, results, stderr := d.copies("steps:\n  - run: \"echo hers >got; echo '" + test.said + "'\"\n    register: r\n  - " + test.step + "\n")
		if status != 1 || len(results) != 2 {
			t.Errorf("%s: status %d: %s", test.name, status, stderr)
			continue
		}
		for _, r := range results {
			if s := r.Steps[1]; s.Error == nil || s.Error.Code != "script.invalid" || !strings.Contains(s.Error.Message, "elsewhere on this machine") {
				t.Errorf("%s: %+v, %+v", test.name, s, s.Error)
			}
			if got := d.read("victim"); got != "as it was" {
				t.Fatalf("%s: the file is %q", test.name, got)
			}
		}
	}
	for i := range 2 {
		if _, err := os.Stat(filepath.Join(d.home(i+1), "taken")); err == nil {
			t.Errorf("web%d has what is not for it", i+1)
		}
	}
	status, _, stderr := d.copies("steps:\n  - run: echo hers >got; echo sub\n    register: r\n" +
		"  - copy: {src: \"in/${{ r }}/x\", dst: x}\n" +
		"  - fetch: {src: got, dst: \"../${{ host }}/${{ r }}/y\"}\n" +
		"  - fetch: {src: got, dst: \"" + d.dir + "/at-${{ r }}/${{ host }}/z..\"}\n")
	if status != 0 || d.read("web1/sub/y") != "hers\n" || d.read("at-sub/web2/z..") != "hers\n" {
		t.Errorf("names: status %d: %s", status, stderr)
	}
}
