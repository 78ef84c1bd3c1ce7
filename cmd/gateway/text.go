package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"

	"gateway/daemon/api"
	"gateway/fleet"
	"gateway/gateway"
	"gateway/internal/phrase"
)

// indent sets the further lines of a message apart from the next message.
func indent(message string) string { return strings.ReplaceAll(message, "\n", "\n  ") }

// oneLine makes a text fit into a table.
func oneLine(s string, most int) string {
	return phrase.Brief(strings.Join(strings.Fields(visible(s)), " "), most)
}

// cell returns a value as people read it.
func cell(value any) string {
	switch v := value.(type) {
	case []string:
		return strings.Join(v, ", ")
	case string:
		return v
	}
	return fmt.Sprint(value)
}

// plural counts things in words.
func plural(n int64, thing string) string {
	if n != 1 {
		noun, rest, _ := strings.Cut(thing, " ")
		if stem, ok := strings.CutSuffix(noun, "y"); ok && noun != "key" {
			noun = stem + "ie"
		}
		thing = strings.TrimSuffix(noun+"s "+rest, " ")
	}
	return fmt.Sprintf("%d %s", n, thing)
}

// size is a number of bytes for people.
func size(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	value, unit := float64(n), 0
	for value >= 1023.95 && unit < len(units)-1 {
		value, unit = value/1024, unit+1
	}
	if unit == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", value, units[unit])
}

// lasted is how long something took, as people read it.
func lasted(d time.Duration) string { return d.Round(10 * time.Millisecond).String() }

// ago says how long something has lasted, as exactly as a person wants it.
func ago(t time.Time) string {
	d := api.Since(t)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd", int(d.Hours())/24)
}

// spelled is an outcome for people.
func spelled(outcome fleet.Outcome) string { return strings.ReplaceAll(string(outcome), "_", " ") }

// complaint is an error for people: one line with its code, and one with the remedy if
// there is one.
func complaint(err error, hint string) []string {
	lines := []string{"gateway: " + gateway.Code(err) + ": " + indent(visible(err.Error()))}
	if hint != "" {
		lines = append(lines, "hint: "+indent(visible(hint)))
	}
	return lines
}

// table writes rows for people, with the columns aligned. What they show need not be
// visible.
func (o *output) table(rows [][]string) error {
	var widths []int
	for _, row := range rows {
		widths = append(widths, make([]int, max(0, len(row)-len(widths)))...)
		for i := range row {
			row[i] = visible(row[i])
			widths[i] = max(widths[i], runewidth.StringWidth(row[i]))
		}
	}
	var text strings.Builder
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString(cell + strings.Repeat(" ", widths[i]-runewidth.StringWidth(cell)+2))
		}
		text.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	_, err := io.WriteString(o, text.String())
	return err
}

// The colours of what went well and what did not.
const (
	green = "32"
	red   = "31"
)

// paint colours text, where colours are wanted.
func (o *output) paint(color, text string) string {
	if !o.color {
		return text
	}
	return painted(color, text)
}

// paintHead is paint for the first line of what stderr says of a run.
func (o *output) paintHead(well bool, line string) string {
	switch {
	case !o.errColor:
		return line
	case well:
		return painted(green, line)
	}
	return painted(red, line)
}

func painted(color, text string) string { return "\x1b[" + color + "m" + text + "\x1b[0m" }
