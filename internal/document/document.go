// Package document reads files that are one YAML document each, and collects
// what is wrong with them, to tell it all at once.
package document

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"gateway/internal/phrase"
	"gateway/internal/regular"
)

// Read reads a file, as [regular.Read] does, but no more than a byte beyond most:
// that tells one that is too large for [Parse] from one that just fits.
func Read(path string, most int) ([]byte, error) {
	return regular.Read(context.Background(), path, int64(most)+1)
}

// Unreadable is the error of a file that [Read] could not read.
func Unreadable(code, path string, err error) *Error {
	return &Error{Code: code, File: path, Message: phrase.WithoutPath(err).Error(), Err: err}
}

// syntaxForm takes the line out of a syntax error: yaml/v3 has no type for it.
var syntaxForm = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// Parse returns the root of the one document in data, which is a file's; nil if it is
// empty. Most is how many bytes data may have. The error has the code.
func Parse(code, file string, data []byte, most int) (*yaml.Node, *Error) {
	wrong := &Error{Code: code, File: file}
	if len(data) > most {
		wrong.Message = fmt.Sprintf("the file is larger than %d MiB", most>>20)
		return nil, wrong
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document, second yaml.Node
	err := decoder.Decode(&document)
	if err == nil {
		if err = decoder.Decode(&second); err == nil {
			wrong.Line, wrong.Column, wrong.Message = second.Line, second.Column, "a second document in the file"
			return nil, wrong
		}
	}
	switch {
	case !errors.Is(err, io.EOF):
		wrong.say(data, err)
		return nil, wrong
	case len(document.Content) == 0:
		return nil, nil
	}
	return document.Content[0], nil
}

// say says what the YAML parser has said of data. That is the cause, unless it is
// content, or repeats some.
func (e *Error) say(data []byte, err error) {
	e.Hint, e.Err = "indent with blanks, and close brackets and quotes", err
	text := err.Error()
	if form := syntaxForm.FindStringSubmatch(text); form != nil {
		text = text[len(form[0]):]
		if line, _ := strconv.Atoi(form[1]); line > 0 {
			// Of what its parser finds, and not its scanner, yaml/v3 counts lines from 0.
			if strings.HasPrefix(text, "did not find expected") {
				line++
			}
			e.Line, e.Column = place(data, line)
		}
	}
	// Of what is no text, yaml/v3 does not say where.
	if strings.HasPrefix(text, "control characters") || strings.Contains(text, "UTF-8") {
		e.Hint = "save the file as UTF-8, without control characters"
		at := bytes.IndexFunc(data, func(r rune) bool {
			return r == utf8.RuneError || unicode.IsControl(r) && !strings.ContainsRune("\t\n\r\u0085", r)
		})
		e.Line, e.Column = place(data, 1+bytes.Count(data[:max(at, 0)], []byte("\n")))
	}
	// What stands behind the * is the rest of a value, such as a password.
	if strings.HasPrefix(text, "unknown anchor ") {
		text, e.Hint, e.Err = "an alias (*) without its anchor", "put a value that begins with * in quotes", nil
	}
	e.Message = "not YAML: " + text
}

// place returns where the text of a line begins. The end of the file is in its
// last line.
func place(data []byte, line int) (int, int) {
	lines := bytes.Split(bytes.TrimRight(data, "\n"), []byte("\n"))
	line = min(line, len(lines))
	text := lines[line-1]
	return line, len(text) - len(bytes.TrimLeft(text, " \t")) + 1
}

// Tagged reports whether a node's tag says that its value is another than its text.
func Tagged(n *yaml.Node) bool {
	return strings.HasPrefix(n.Tag, "!") && !strings.HasPrefix(n.Tag, "!!") || n.ShortTag() == "!!binary"
}

// oldBoolean matches what was true or false in YAML 1.1, and still is to those who write it.
var oldBoolean = regexp.MustCompile(`(?i)^(yes|no|on|off)$`)

// Boolean reports whether a node is a boolean, or a word without quotes that YAML 1.1 took
// for one.
func Boolean(n *yaml.Node) bool {
	return n.ShortTag() == "!!bool" || n.Style == 0 && oldBoolean.MatchString(n.Value)
}

// Instead tells what a node is, where something else was wanted; quote puts a
// text into a message.
func Instead(n *yaml.Node, quote func(string) string) string {
	switch {
	case Tagged(n):
		return ", not something tagged " + quote(n.Tag)
	case n.Kind == yaml.MappingNode:
		return ", not a mapping"
	case n.Kind == yaml.SequenceNode:
		return ", not a list"
	case n.ShortTag() == "!!null":
		return ": it has no value"
	}
	return ", not text"
}
