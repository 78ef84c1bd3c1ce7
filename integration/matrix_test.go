package integration

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"gateway/session/conformance"
)

// A spot is one case in one shell on one machine.
type spot struct{ id, shell, machine string }

// A matrix is what came of each of them. The zero value is ready.
type matrix struct {
	mu    sync.Mutex
	cells map[spot]string
	// The deadline that was missed by most, and where.
	late   time.Duration
	lateAt spot
}

// What stands in a cell, if it is no reason.
const (
	passed = "ok"
	failed = "FAILED"
)

func (m *matrix) note(at spot, what string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cells == nil {
		m.cells = map[spot]string{}
	}
	m.cells[at] = what
}

func (m *matrix) noteLate(at spot, late time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if late > m.late {
		m.late, m.lateAt = late, at
	}
}

// summary counts all spots, and says how late a deadline was answered.
func (m *matrix) summary() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	counts := map[string]int{}
	for _, what := range m.cells {
		if what != passed && what != failed {
			what = "n.a."
		}
		counts[what]++
	}
	return fmt.Sprintf("%d cells: %d ok, %d n.a., %d %s. The latest answer to a deadline came %.2f s behind it (%s, %s, %s).",
		len(m.cells), counts[passed], counts["n.a."], counts[failed], failed, m.late.Seconds(), m.lateAt.id, m.lateAt.shell, m.lateAt.machine)
}

// markdown returns the matrix: the groups by shell and machine, then the cases
// by shell, and why a case is not to be had.
func (m *matrix) markdown(shells []string, all []machine) string {
	var b strings.Builder
	groups := conformance.Groups()
	b.WriteString("# Conformance\n\nWritten by `make conformance`. Every case of [session/conformance](../session/conformance) runs in every shell on every way to a machine.\n" +
		"A number is how many cases came out as they must; *n.a.* are those that a shell or a machine can't have by its nature.\n\n" +
		m.summary() + "\n\n")
	b.WriteString("| shell | machine |")
	for _, g := range groups {
		b.WriteString(" " + g.Letter + " |")
	}
	b.WriteString("\n|---|---|" + strings.Repeat("---|", len(groups)) + "\n")
	for _, shell := range shells {
		for _, machine := range all {
			fmt.Fprintf(&b, "| %s | %s |", shell, machine.name)
			for _, g := range groups {
				b.WriteString(" " + m.count(g, shell, machine.name) + " |")
			}
			b.WriteString("\n")
		}
	}
	b.WriteString("\n")
	for _, g := range groups {
		fmt.Fprintf(&b, "- %s: %s\n", g.Letter, g.Title)
	}
	b.WriteString("\n## Cases\n\n| case | |" + strings.Join(each(shells, " %s |"), "") + "\n|---|---|" + strings.Repeat("---|", len(shells)) + "\n")
	var notes []string
	for _, g := range groups {
		for _, c := range g.Cases {
			fmt.Fprintf(&b, "| %s | %s |", c.ID, strings.ReplaceAll(c.Name, "|", `\|`))
			for _, shell := range shells {
				b.WriteString(" " + m.cell(c.ID, shell, all, &notes) + " |")
			}
			b.WriteString("\n")
		}
	}
	b.WriteString("\n")
	for i, note := range notes {
		fmt.Fprintf(&b, "%d. %s\n", i+1, note)
	}
	return b.String()
}

func each(words []string, format string) (texts []string) {
	for _, w := range words {
		texts = append(texts, fmt.Sprintf(format, w))
	}
	return texts
}

// count sums a group up.
func (m *matrix) count(g conformance.Group, shell, machine string) string {
	var good, bad, other int
	for _, c := range g.Cases {
		switch what := m.cells[spot{c.ID, shell, machine}]; {
		case what == passed:
			good++
		case what == failed, what == "":
			bad++
		default:
			other++
		}
	}
	text := fmt.Sprintf("%d ok", good)
	if other > 0 {
		text += fmt.Sprintf(", %d n.a.", other)
	}
	if bad > 0 {
		text += fmt.Sprintf(", %d %s", bad, failed)
	}
	return text
}

// cell is what a case came to in a shell on all machines. A reason is a note.
func (m *matrix) cell(id, shell string, all []machine, notes *[]string) string {
	var good bool
	var bad, marks []string
	for _, machine := range all {
		switch what := m.cells[spot{id, shell, machine.name}]; {
		case what == passed:
			good = true
		case what == failed, what == "":
			bad = append(bad, failed+" ("+machine.name+")")
		default:
			i := slices.Index(*notes, what)
			if i < 0 {
				i = len(*notes)
				*notes = append(*notes, what)
			}
			if mark := fmt.Sprintf("[%d]", i+1); !slices.Contains(marks, mark) {
				marks = append(marks, mark)
			}
		}
	}
	text := strings.Join(bad, ", ")
	switch {
	case text != "":
	case good:
		text = passed
	default:
		text = "n.a."
	}
	return strings.Join(append([]string{text}, marks...), " ")
}
