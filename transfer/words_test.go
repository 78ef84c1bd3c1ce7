package transfer

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pkg/sftp"
)

// What a machine says stays within a line, and within bounds.
func TestWordsAreQuoted(t *testing.T) {
	for _, words := range []string{
		"stat: odd\n::error file=a::forged\r\n", "\x1b[2J\x07", "\xff\xfe\u2028\u202e", strings.Repeat("\n", 10_000) + "x", strings.Repeat("long ", 10_000), "",
	} {
		text := problem("web1", "look at", "/f", spoken(words)).Error()
		if strings.ContainsAny(text, "\n\r\x1b\x07\u2028\u202e") || !utf8.ValidString(text) || len(text) > 1000 || !strings.HasSuffix(text, `"`) {
			t.Errorf("%.100q gives %q", words, text)
		}
	}
}

// talker is a server that has much to say.
type talker string

func (t talker) Filelist(*sftp.Request) (sftp.ListerAt, error) { return nil, errors.New(string(t)) }

func TestStatusIsCut(t *testing.T) {
	handlers := sftp.InMemHandler()
	handlers.FileList = talker("no " + strings.Repeat("such luck ", 10_000))
	_, err := over(t, handlers).Stat(t.Context(), "/f", true)
	if err == nil || !strings.Contains(err.Error(), `"no such luck`) || len(err.Error()) > 1000 {
		t.Errorf("%.2000v", err)
	}
}
