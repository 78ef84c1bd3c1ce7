package session_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"gateway/session"
	"gateway/transport"
	"gateway/transport/local"
)

// overtaking is a terminal whose shell shows its first prompt before what came in front of it.
type overtaking struct {
	transport.Terminal
	text io.Reader
}

func (l *overtaking) Read(p []byte) (int, error) {
	if l.text == nil {
		var got []byte
		for prompt := -1; prompt < 0 || !bytes.HasSuffix(got, []byte(";")); prompt = bytes.Index(got, []byte("\x1eP")) {
			n, err := l.Terminal.Read(p)
			if got = append(got, p[:n]...); err != nil {
				return 0, err
			}
		}
		before, prompt, _ := bytes.Cut(got, []byte("\x1eP"))
		l.text = io.MultiReader(strings.NewReader("\x1eP"+string(prompt)+string(before)), l.Terminal)
	}
	return l.text.Read(p)
}

// TestPromptOvertakesReport: stdout and stderr may have ways of their own.
func TestPromptOvertakesReport(t *testing.T) {
	t.Parallel()
	for _, shell := range shells {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			tr := local.New(local.Config{Env: []string{"HOME=" + t.TempDir()}})
			overtaken := func(t transport.Terminal) transport.Terminal { return &overtaking{Terminal: t} }
			s := openOn(t, altered{Transport: tr, terminal: overtaken}, session.Config{Shell: shell})
			want(t, run(t, s, "echo out; echo err >&2; (exit 3)"), 3, "out\n", "err\n")
		})
	}
}
