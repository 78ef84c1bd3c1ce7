package conformance_test

import (
	"context"
	"testing"

	"gateway/session"
	"gateway/session/conformance"
	"gateway/transport/local"
)

// TestFaultyShell: a case counts as failed but where a fault of the shell's own was seen,
// and it does not fail in a fresh session.
func TestFaultyShell(t *testing.T) {
	t.Parallel()
	second := conformance.Case{Steps: []conformance.Step{{Text: `[ -e "$T/once" ] || { : >"$T/once"; false; }`}}}
	never := conformance.Case{Steps: []conformance.Step{{Text: "false"}}}
	for name, test := range map[string]struct {
		faulty, again, passes bool
		conformance.Case
	}{
		"a fault":                {faulty: true, again: true, passes: true, Case: second},
		"no fault":               {Case: second},
		"a fault that is not it": {faulty: true, again: true, Case: never},
		"a fault without harm":   {faulty: true, passes: true, Case: conformance.Case{Steps: []conformance.Step{{Text: "true"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := local.New(local.Config{})
			defer tr.Close()
			dir := t.TempDir()
			r := conformance.Runner{
				Shell: "sh", Dir: dir,
				Open: func(ctx context.Context, config session.Config) (*session.Session, error) {
					config.Shell, config.Env = "sh", map[string]string{"T": dir}
					return session.Open(ctx, tr, config)
				},
				Watch: func(shell, pid string) func() bool { return func() bool { return test.faulty } },
			}
			defer r.Close()
			problems := r.Run(t.Context(), test.Case)
			if len(problems) == 0 != test.passes || r.Again != test.again {
				t.Errorf("got %q, again %v; want passed %v, again %v", problems, r.Again, test.passes, test.again)
			}
		})
	}
}
