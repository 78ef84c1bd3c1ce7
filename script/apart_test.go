package script_test

import "testing"

// TestNothingMatchesAcrossWhatIsLeftOut: of a long stream the end is no continuation of the
// beginning, and a short one beside it is whole.
func TestNothingMatchesAcrossWhatIsLeftOut(t *testing.T) {
	const text = `
steps:
  - {name: begin, run: 's() { head -c $1 /dev/zero | tr "\0" $2; }; long() { s 524286 x; printf ab; s 1000 m; printf "cd\nef\n"; s 524282 y; echo z >&2; }'}
  - {name: a, run: long, expect: {stdout: {contains: abcd}}, on_fail: continue}
  - {name: b, run: long, expect: {stdout: {matches: '(?m)bcd$'}}, on_fail: continue}
  - {name: c, run: long, expect: {stdout: {matches: '(?m)^cd$'}}, on_fail: continue}
  - {name: d, run: long, expect: {stderr: {contains: abcd}}, on_fail: continue}
  - {name: e, run: long, expect: {stdout: {contains: xxx, matches: '(?m)^ef$'}}}
`
	want := map[string]string{
		"begin": "",
		"a":     `script: stdout does not contain "abcd" (only its beginning and end were kept)`,
		"b":     `script: stdout does not match "(?m)bcd$" (only its beginning and end were kept)`,
		"c":     `script: stdout does not match "(?m)^cd$" (only its beginning and end were kept)`,
		"d":     `script: stderr does not contain "abcd"`,
		"e":     "",
	}
	result := runner(t, text, nil).Host(t.Context(), "localhost")
	if len(result.Steps) != len(want) {
		t.Fatalf("%d steps, %v", len(result.Steps), result.Err)
	}
	for _, step := range result.Steps {
		got := ""
		if step.Err != nil {
			got = step.Err.Error()
		}
		if got != want[step.Name] {
			t.Errorf("%s: %q, want %q", step.Name, got, want[step.Name])
		}
	}
}
