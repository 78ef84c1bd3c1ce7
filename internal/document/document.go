// Package document reads files that are one YAML document each, and collects
// what is wrong with them, to tell it all at once.
package document

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A Mistake is why a file is no document.
type Mistake struct {
	// Line and Column say where; zero for the file as a whole.
	Line, Column  int
	Message, Hint string
	Err           error // what the YAML parser said; nil if it was content, or repeats some
}

// syntaxForm takes the line out of a syntax error: yaml/v3 has no type for it.
var syntaxForm = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// Parse returns the root of the one document in data; nil if it is empty. Most is
// how many bytes data may have.
func Parse(data []byte, most int) (*yaml.Node, *Mistake) {
	if len(data) > most {
		return nil, &Mistake{Message: fmt.Sprintf("the file is larger than %d MiB", most>>20)}
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document, second yaml.Node
	err := decoder.Decode(&document)
	if err == nil {
		if err = decoder.Decode(&second); err == nil {
			return nil, &Mistake{Line: second.Line, Column: second.Column, Message: "a second document in the file"}
		}
	}
	switch {
	case !errors.Is(err, io.EOF):
		return nil, syntaxMistake(data, err)
	case len(document.Content) == 0:
		return nil, nil
	}
	return document.Content[0], nil
}

func syntaxMistake(data []byte, err error) *Mistake {
	m := &Mistake{Hint: "indent with blanks, and close brackets and quotes", Err: err}
	text := err.Error()
	if form := syntaxForm.FindStringSubmatch(text); form != nil {
		text = text[len(form[0]):]
		if line, _ := strconv.Atoi(form[1]); line > 0 {
			// Of what its parser finds, and not its scanner, yaml/v3 counts lines from 0.
			if strings.HasPrefix(text, "did not find expected") {
				line++
			}
			m.Line, m.Column = place(data, line)
		}
	}
	// What stands behind the * is the rest of a value, such as a password.
	if strings.HasPrefix(text, "unknown anchor ") {
		text, m.Hint, m.Err = "an alias (*) without its anchor", "put a value that begins with * in quotes", nil
	}
	m.Message = "not YAML: " + text
	return m
}

// place returns where the text of a line begins. The end of the file is in its
// last line.
func place(data []byte, line int) (int, int) {
	lines := bytes.Split(bytes.TrimRight(data, "\n"), []byte("\n"))
	line = min(line, len(lines))
	text := lines[line-1]
	return line, len(text) - len(bytes.TrimLeft(text, " \t")) + 1
}

// Instead tells what a node is, where something else was wanted; quote puts a
// text into a message.
func Instead(n *yaml.Node, quote func(string) string) string {
	switch {
	case strings.HasPrefix(n.Tag, "!") && !strings.HasPrefix(n.Tag, "!!"):
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
