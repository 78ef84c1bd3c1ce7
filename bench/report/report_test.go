package report

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gateway/bench/peer"
	"gateway/bench/rounds"
	"gateway/bench/work"
)

// titles are those of all tables that targets speak of.
var titles = []string{
	work.Builtin, work.Program, work.LocalBuiltin, work.LocalProgram, work.RoundTrips(work.Trips[0]), work.RoundTrips(work.Trips[1]),
	work.ColdNear, work.FirstByte, work.ColdFar, work.ReadyNear, work.ReadyFar, work.FirstNear, work.FirstFar,
	work.FloodBytes, work.FloodLines, work.FloodMemory, work.Crowd, work.FanTitle(500, false), work.FanTitle(500, true), work.Refused,
	work.IdleFirst, work.IdleMore, work.IdleAll, work.FanMemory,
	work.PutBig, work.GetBig, work.PutSmall, work.GetSmall,
	work.PutBig + work.Slow(work.Trips[0]), work.GetBig + work.Slow(work.Trips[0]), work.PutSmall + work.Slow(work.Trips[0]), work.GetSmall + work.Slow(work.Trips[0]),
	work.PutBig + work.Slow(work.Trips[1]), work.GetBig + work.Slow(work.Trips[1]), work.PutSmall + work.Slow(work.Trips[1]), work.GetSmall + work.Slow(work.Trips[1]),
}

// complete is a report in which everybody took v for everything.
func complete(v float64) Report {
	r := Report{Date: "2026-01-02", Machine: "a machine", Results: []work.Result{{Letter: "a", Title: "all <of> it"}}}
	for _, p := range peer.All() {
		r.Contenders = append(r.Contenders, Contender{Name: p.Name, How: p.How, Ours: p.Ours})
	}
	for _, title := range titles {
		t := work.Table{Title: title, Unit: "ms", Floor: peer.FloorName}
		for _, p := range peer.All() {
			t.Rows = append(t.Rows, work.Row{Peer: p.Name, Summary: rounds.Summarise([]float64{v})})
		}
		r.Results[0].Tables = append(r.Results[0].Tables, t)
	}
	return r
}

// Every target speaks of tables and contenders that there are.
func TestTargetsAreMeasured(t *testing.T) {
	for _, v := range Judge(complete(1).Results) {
		if v.Got == "–" {
			t.Errorf("%s: a table or a contender that does not exist", v.What)
		}
	}
	for _, v := range Judge(nil) {
		if v.Verdict != "not measured" {
			t.Errorf("%s: %s of nothing", v.What, v.Verdict)
		}
	}
}

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		name        string
		ours, floor float64
		want        string
	}{{"at the limit", 1.25, 1, "met"}, {"above", 1.26, 1, "**not met**"}, {"below", 1, 1, "met"}} {
		table := work.Table{Title: work.Builtin, Rows: []work.Row{
			{Peer: peer.EngineName, Summary: rounds.Summarise([]float64{c.ours})},
			{Peer: peer.FloorName, Summary: rounds.Summarise([]float64{c.floor})},
		}}
		if got := Judge([]work.Result{{Tables: []work.Table{table}}})[0].Verdict; got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

// Whoever could not be measured stands in the page with the reason.
func TestPage(t *testing.T) {
	r := complete(2)
	r.Contenders = append(r.Contenders, Contender{Name: "absent", Missing: "no absent here"})
	r.Results[0].Tables[0].Rows = append(r.Results[0].Tables[0].Rows, work.Row{Peer: "absent", Err: "no absent | here"})
	page := r.page()
	for _, want := range []string{"| absent | – | – | – | – | 0 | no absent \\| here |", "| absent |  | not measured: no absent here |", "| **gateway cp** | 2.00 | 2.00–2.00 | 2.00 | 1.00 | 1 |"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in the page", want)
		}
	}
	d := xml.NewDecoder(strings.NewReader(r.chart(r.Results[0])))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("the chart is not XML: %v", err)
		}
	}
}

func TestInsert(t *testing.T) {
	file := filepath.Join(t.TempDir(), "README.md")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("before\n" + begins + "\nold\n" + ends + "\nafter\n")
	r := complete(1)
	for range 2 { // a second time nothing changes
		if err := r.Insert(file); err != nil {
			t.Fatal(err)
		}
		text, _ := os.ReadFile(file)
		if want := "before\n" + begins + "\n" + r.Excerpt() + ends + "\nafter\n"; string(text) != want {
			t.Errorf("got %q, want %q", text, want)
		}
	}
	write("no marks")
	if r.Insert(file) == nil {
		t.Error("a page without marks is no error")
	}
}
