package imports_test

import (
	"go/scanner"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// codeForm is what an error code looks like, by its family. Some settings and
// files look the same.
var (
	codeForm  = regexp.MustCompile(`^(?:config|inventory|selector|dns|tcp|proxy|ssh|hostkey|auth|session|shell|cmd|sudo|link|daemon|script|secret|file|input|output|transcript)\.[a-z_]+$`)
	otherForm = regexp.MustCompile(`\.(?:json|jsonl|yaml|log|lock)$|^sudo\.(?:user|password|flags)$|^ssh\.channel$`)
)

// Programs branch on the codes of errors, so each one is in the tables of docs, and
// none that is there is gone from the program.
func TestErrorCodes(t *testing.T) {
	told := make(map[string]bool) // whether the sources have it
	for _, file := range []string{"docs/json.md", "docs/files.md"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			row, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " |")
			for _, word := range strings.Split(row, ", ") {
				if code := strings.Trim(word, "`"); strings.HasPrefix(line, "| `") && codeForm.MatchString(code) {
					told[code] = false
				}
			}
		}
	}
	for _, file := range sources(t) {
		if file.test() || slices.Contains([]string{"bench", "compare"}, strings.SplitN(file.pkg, "/", 2)[0]) {
			continue
		}
		for _, text := range stringsOf(file.text) {
			if !codeForm.MatchString(text) || otherForm.MatchString(text) {
				continue
			}
			if _, ok := told[text]; !ok {
				t.Errorf("%s has the error code %s, which no table in docs has", file.path, text)
			}
			told[text] = true
		}
	}
	for code, there := range told {
		if !there {
			t.Errorf("docs have the error code %s, which the program does not", code)
		}
	}
}

// stringsOf returns the string literals of a Go file.
func stringsOf(text []byte) (list []string) {
	var s scanner.Scanner
	s.Init(token.NewFileSet().AddFile("", -1, len(text)), text, nil, 0)
	for {
		switch _, tok, literal := s.Scan(); tok {
		case token.EOF:
			return list
		case token.STRING:
			if text, err := strconv.Unquote(literal); err == nil {
				list = append(list, text)
			}
		}
	}
}
