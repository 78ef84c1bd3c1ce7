package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"gateway/internal/config"
	"gateway/transfer"
	"gateway/transport"
)

// said returns what a view of a copy writes in text form.
func said(t *testing.T, c *copying, show func(cpView)) string {
	t.Helper()
	out, text := outputFile(t)
	c.app = &app{out: out, config: &config.Config{Quiet: true}}
	c.names = []string{"web1"}
	show(c.app.newCPView(c))
	return text()
}

// losing is a machine whose link is lost while a file gets its name.
type losing struct{ *transfer.Local }

func (m losing) Create(ctx context.Context, s transfer.Spec) (transfer.Part, error) {
	p, err := m.Local.Create(ctx, s)
	return losingPart{p}, err
}

type losingPart struct{ transfer.Part }

func (losingPart) Commit(context.Context) error { return transport.ErrLost }

// Of many problems the first ones are shown, and every file that may have been
// written.
func TestProblemsShown(t *testing.T) {
	mayBeThere := func(name string) error {
		return transfer.Write(t.Context(), losing{&transfer.Local{}}, filepath.Join(t.TempDir(), name), nil, nil)
	}
	for _, test := range []struct {
		refused int
		more    string
	}{
		{maxShown - 2, ""},
		{maxShown + 5, "gateway: and 5 more\n"},
	} {
		t.Run(fmt.Sprint(test.refused), func(t *testing.T) {
			r := &cpResult{Host: "web1"}
			for i := range test.refused {
				r.Problems = append(r.Problems, transfer.Problem{Err: &transport.Error{Code: "file.permission", Message: fmt.Sprint("refused ", i)}})
			}
			for _, name := range []string{"one", "two"} {
				r.Problems = append(r.Problems, transfer.Problem{Err: mayBeThere(name)})
			}
			r.Failed = int64(len(r.Problems))
			text := said(t, &copying{flags: &cpFlags{}}, func(v cpView) { v.done(0, r) })
			if n := strings.Count(text, "refused"); n != min(test.refused, maxShown) {
				t.Errorf("%d that were refused are shown: %s", n, text)
			}
			if strings.Count(text, "/one: it may have been done") != 1 || strings.Count(text, "/two: it may have been done") != 1 {
				t.Errorf("not both that may have been written are shown: %s", text)
			}
			if _, more, _ := strings.Cut(text, "gateway: and "); test.more != "" && "gateway: and "+more != test.more || test.more == "" && more != "" {
				t.Errorf("the end is %q, want %q", more, test.more)
			}
		})
	}
}

// What ended a copy is a file's error and the copy's, and is told once.
func TestEndIsToldOnce(t *testing.T) {
	full := &transport.Error{Code: "file.no_space", Message: "no space left"}
	for _, problems := range []int{0, 1, maxShown + 1} { // the last one is not among those shown
		r := &cpResult{Host: "web1"}
		r.Err = full
		for i := range problems {
			r.Problems = append(r.Problems, transfer.Problem{Err: &transport.Error{Code: "file.permission", Message: fmt.Sprint("refused ", i)}})
		}
		if problems > 0 {
			r.Problems[problems-1].Err = full
		}
		text := said(t, &copying{flags: &cpFlags{}}, func(v cpView) { v.done(0, r) })
		if n := strings.Count(text, "no space left"); n != 1 {
			t.Errorf("with %d problems it is told %d times: %s", problems, n, text)
		}
	}
}

// What a server calls its files does not move the cursor, nor turn a line around.
func TestDryRunOfHostileNames(t *testing.T) {
	for name, want := range map[string]string{
		"plain ü":          "plain ü",
		"a\u009b2Jb":       `"a\u009b2Jb"`,
		"a\u202eb":         `"a\u202eb"`,
		"a\x1b[2J":         `"a\x1b[2J"`,
		"a\nweb1:b -> c":   `"a\nweb1:b -> c"`,
		"\u2066a":          `"\u2066a"`,
		"\U0001f468\u200d": "\U0001f468\u200d", // it joins emoji
	} {
		c := &copying{flags: &cpFlags{dryRun: true}}
		c.from.Selector = "web1"
		text := said(t, c, func(v cpView) {
			v.watcher(0).End(transfer.Event{Path: name, Target: name, Done: transfer.Would})
		})
		if want := "web1:" + want + " -> " + want + "\n"; text != want {
			t.Errorf("%q is shown as %q, want %q", name, text, want)
		}
	}
}
