package main

import (
	"bytes"
	"io"
	"regexp"

	"gateway/internal/phrase"
)

// json writes a value as one line.
func (o *output) json(value any) error { return writeJSON(o, value) }

// writeJSON writes a value as one line, all at once.
func writeJSON(w io.Writer, value any) error {
	line, err := phrase.JSON(value)
	if err == nil {
		_, err = w.Write(append(disobeyed(line), '\n'))
	}
	return err
}

// orders begin what agents obey wherever it stands in a line: ##[COMMAND] GitHub's
// runner, ##vso[ that of Azure Pipelines, ##teamcity[ that of TeamCity.
var orders = regexp.MustCompile(`##([a-z]*\[)`)

// disobeyed writes a text of JSON so that none of its strings is an order: with an escape
// for the second #, which decodes to the same.
func disobeyed(text []byte) []byte {
	if !bytes.Contains(text, []byte("##")) {
		return text
	}
	return orders.ReplaceAll(text, []byte(`#\u0023$1`))
}

// list writes values as programs want them: an array, or one a line.
func list[T any](o *output, values []T) error {
	if o.format == "json" {
		return o.json(append([]T{}, values...)) // [] where there are none
	}
	for _, value := range values {
		if err := o.json(value); err != nil {
			return err
		}
	}
	return nil
}

// listOrTable writes values to a program, and rows to people.
func listOrTable[T any](o *output, values []T, rows [][]string) error {
	if o.format != "text" {
		return list(o, values)
	}
	return o.table(rows)
}
