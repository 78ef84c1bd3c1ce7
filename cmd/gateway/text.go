package main

import (
	"fmt"
	"strings"
	"time"

	"gateway/daemon/api"
	"gateway/fleet"
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
