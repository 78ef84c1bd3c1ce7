package session_test

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"gateway/session"
	"gateway/transport"
	"gateway/transport/local"
)

// overtaken is a machine whose shell shows its first prompt before its report comes.
type overtaken struct{ transport.Transport }

func (o overtaken) Terminal(ctx context.Context, command string, options transport.TerminalOptions) (transport.Terminal, error) {
	term, err := o.Transport.Terminal(ctx, command, options)
	if err != nil {
		return nil, err
	}
	return &overtaking{Terminal: term}, nil
}

// overtaking has what comes before the first prompt behind it.
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
			tr := overtaken{local.New(local.Config{Env: []string{"HOME=" + t.TempDir()}})}
			defer tr.Close()
			s, err := session.Open(t.Context(), tr, session.Config{Shell: shell})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			want(t, run(t, s, "echo out; echo err >&2; (exit 3)"), 3, "out\n", "err\n")
		})
	}
}
