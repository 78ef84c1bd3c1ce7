package document_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"gateway/internal/document"
)

func TestParse(t *testing.T) {
	for _, test := range []struct {
		name, text   string
		line, column int
		message      string // empty: a document
	}{
		{"empty", "", 0, 0, ""},
		{"a comment", "# nothing\n", 0, 0, ""},
		{"a mapping", "a: 1\n", 0, 0, ""},
		{"two", "a: 1\n---\nb: 2\n", 2, 1, "a second document in the file"},
		{"of the scanner", "a: 1\n\tb: 2\n", 2, 2, "not YAML: found a tab character that violates indentation"},
		{"of the parser", "a: 1\nb:\n  - c\n  d: e\n", 3, 3, "not YAML: did not find expected '-' indicator"},
		{"at the end", "a: 1\nb: [\n", 2, 1, "not YAML: did not find expected node content"},
		{"an alias", "password: *hunter2\n", 0, 0, "not YAML: an alias (*) without its anchor"},
		{"bytes", "\x00\x01", 1, 1, "not YAML: control characters are not allowed"},
		{"a colour", "a: ü\r\nb:\n  c: \x1b[31mred\n", 3, 3, "not YAML: control characters are not allowed"},
		{"not UTF-8", "a: ü\nb: caf\xe9\n", 2, 1, "not YAML: incomplete UTF-8 octet sequence"},
		{"too large", strings.Repeat("#", 1<<20+1), 0, 0, "the file is larger than 1 MiB"},
	} {
		t.Run(test.name, func(t *testing.T) {
			root, mistake := document.Parse("a.code", "f", []byte(test.text), 1<<20)
			switch {
			case mistake == nil && test.message != "":
				t.Errorf("no mistake, want %s", test.message)
			case mistake != nil && (root != nil || mistake.Line != test.line || mistake.Column != test.column || mistake.Message != test.message || mistake.Code != "a.code" || mistake.File != "f"):
				t.Errorf("got %+v, want %d:%d: %s", mistake, test.line, test.column, test.message)
			case mistake != nil && strings.Contains(fmt.Sprint(mistake), "hunter2"):
				t.Errorf("got %+v, with content", mistake)
			}
		})
	}
}

func TestProblems(t *testing.T) {
	var p document.Problems
	if err := p.Err(); err != nil {
		t.Errorf("got %v, want none", err)
	}
	first := &document.Error{Code: "a.code", File: "f", Line: 1, Message: "bad", Hint: "do better"}
	p.Add(first)
	if err := p.Err(); err != error(first) {
		t.Errorf("got %v, want the only one", err)
	}
	p.Add(&document.Error{Message: "nowhere"})
	p.Add(&document.Error{File: "f", Message: "as a whole"})
	for range 9 {
		p.Add(&document.Error{File: "f", Line: 2, Column: 3, Message: "worse"})
	}
	err, ok := errors.AsType[*document.Error](p.Err())
	want := "f:1: bad: do better\nnowhere\nf: as a whole\n" + strings.Repeat("f:2:3: worse\n", 7) + "and 2 more"
	if !ok || err.Error() != want || err.ErrorCode() != "a.code" || !errors.Is(err, first) || p.Len() != 10 || !p.Full() {
		t.Errorf("got %v, want ten and two more", err)
	}
}
