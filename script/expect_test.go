package script_test

import "testing"

// What is expected is found as it came and as reports show it: behind a progress bar,
// and under colours.
func TestExpectReads(t *testing.T) {
	const text = `steps:
  - name: progress
    run: printf ' 50%%\rDone\n'
    expect: {stdout: {contains: "%\r", matches: '(?m)^Done$', equals: " 50%\rDone"}}
  - name: colours
    run: |
      printf '\033[1;31merror\033[0m: no such file\n' >&2
    expect: {stderr: {contains: "error: no such", matches: '^error: .* file$'}}
  - name: exact
    run: printf '\033[1mDone\033[0m\n'
    expect: {stdout: {equals: Done}}
    on_fail: continue
  - name: nothing of it
    run: printf ' 50%%\rDone\n'
    expect: {stdout: {matches: '(?m)^50'}}
    on_fail: continue
`
	got := summary(runner(t, text, nil).Host(t.Context(), "localhost"))
	want := "progress: ok \" 50%\\rDone\\n\"\n" +
		"colours: ok\n" +
		"exact: failed (ignored) \"\\x1b[1mDone\\x1b[0m\\n\" [script.failed: script: stdout is not \"Done\"]\n" +
		"nothing of it: failed (ignored) \" 50%\\rDone\\n\" [script.failed: script: stdout does not match \"(?m)^50\"]\nok"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
