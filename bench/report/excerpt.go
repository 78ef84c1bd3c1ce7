package report

import (
	"fmt"
	"os"
	"strings"

	"gateway/bench/peer"
	"gateway/bench/work"
)

// The marks between which a page shows the excerpt.
const (
	begins = "<!-- bench begins -->"
	ends   = "<!-- bench ends -->"
)

// excerpted are the tables of which the excerpt has a column.
var excerpted = []struct {
	title, head string
}{
	{work.Builtin, "warm, ms"},
	{work.RoundTrips(work.Trips[1]), "warm, round trips"},
	{work.ColdNear, "cold, ms"},
	{work.FanTitle(500, false), "500 hosts, cold, s"},
}

// Excerpt is the short table, without the marks.
func (r Report) Excerpt() string {
	tables := map[string]work.Table{}
	for _, result := range r.Results {
		for _, t := range result.Tables {
			tables[t.Title] = t
		}
	}
	var b strings.Builder
	b.WriteString("| `echo hi` |")
	for _, e := range excerpted {
		b.WriteString(" " + e.head + " |")
	}
	b.WriteString(" × F |\n|---" + strings.Repeat("|---", len(excerpted)+1) + "|\n")
	floor := median(tables[work.Builtin], peer.FloorName)
	for _, c := range r.Contenders {
		var line strings.Builder
		shown := false
		for _, e := range excerpted {
			value := median(tables[e.title], c.Name)
			if value == 0 {
				line.WriteString(" – |")
				continue
			}
			shown = true
			line.WriteString(" " + number(value) + " |")
		}
		ratio := "–"
		if value := median(tables[work.Builtin], c.Name); value > 0 && floor > 0 {
			ratio = number(value / floor)
		}
		if shown {
			fmt.Fprintf(&b, "| %s |%s %s |\n", r.name(c.Name), line.String(), ratio)
		}
	}
	met, all := 0, 0
	for _, v := range Judge(r.Results) {
		if v.Verdict == "not measured" {
			continue
		}
		if all++; v.Verdict == "met" {
			met++
		}
	}
	fmt.Fprintf(&b, "\n%s, %s. Of %d targets %d are met. [All tables](bench/results/latest.md), with spread, versions and commands.\n", r.Date, r.Machine, all, met)
	return b.String()
}

// Insert puts the excerpt between the marks of a page.
func (r Report) Insert(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(text), begins)
	_, after, found := strings.Cut(rest, ends)
	if !ok || !found {
		return fmt.Errorf("%s has no %s and %s", file, begins, ends)
	}
	return os.WriteFile(file, []byte(before+begins+"\n"+r.Excerpt()+ends+after), 0o644)
}
