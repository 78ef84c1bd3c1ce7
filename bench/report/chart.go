package report

import (
	"fmt"
	"html"
	"math"
	"strings"

	"gateway/bench/work"
)

// The measures of a chart, in pixels.
const (
	width    = 860
	labels   = 290
	barHigh  = 14
	rowHigh  = 19
	headHigh = 34
	margin   = 12
)

// chart draws a work's tables as bars. The scale is logarithmic, as contenders are
// up to ten thousand times apart; the thin line is from quartile to quartile.
func (r Report) chart(result work.Result) string {
	var b strings.Builder
	y := margin
	for _, t := range result.Tables {
		y = r.panel(&b, t, y)
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" font-family="system-ui, sans-serif" font-size="12">
<title>(%s) %s</title>
<rect width="100%%" height="100%%" fill="#fff"/>
%s</svg>
`, width, y+margin, width, result.Letter, html.EscapeString(result.Title), b.String())
}

// panel draws one table from y on and returns where the next one begins.
func (r Report) panel(b *strings.Builder, t work.Table, y int) int {
	low, high := bounds(t)
	if low == 0 {
		return y // nothing was measured
	}
	better := "less is better"
	if t.More {
		better = "more is better"
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" font-weight="bold">%s</text><text x="%d" y="%d" text-anchor="end" fill="#666">%s, %s, logarithmic</text>`+"\n",
		margin, y+16, html.EscapeString(upper(strings.ReplaceAll(t.Title, "`", ""))), width-margin, y+16, html.EscapeString(t.Unit), better)
	y += headHigh - 8
	at := func(v float64) int {
		const room = width - labels - 90
		return labels + int(room*math.Log(math.Max(v, low)/low)/math.Log(high/low))
	}
	for _, row := range t.Rows {
		if row.N == 0 {
			continue
		}
		color := "#b0b7c3"
		switch {
		case r.ours(row.Peer):
			color = "#2563eb"
		case row.Peer == t.Floor:
			color = "#4b5563"
		}
		end := at(row.Median)
		fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end">%s</text><rect x="%d" y="%d" width="%d" height="%d" fill="%s"/>`,
			labels-6, y+barHigh-3, html.EscapeString(row.Peer), labels, y, max(end-labels, 1), barHigh, color)
		if row.Q3 > row.Q1 {
			fmt.Fprintf(b, `<path d="M%d %dH%d" stroke="#111" stroke-width="1.5"/>`, at(row.Q1), y+barHigh/2, at(row.Q3))
		}
		fmt.Fprintf(b, `<text x="%d" y="%d">%s</text>`+"\n", max(end, at(row.Q3))+5, y+barHigh-3, number(row.Median))
		y += rowHigh
	}
	return y + margin
}

// bounds are those of the scale: a bar of the least value can still be seen. They
// are 0 if there is nothing to show.
func bounds(t work.Table) (low, high float64) {
	for _, row := range t.Rows {
		if row.N == 0 || row.Median <= 0 {
			continue
		}
		if low == 0 || row.Median < low {
			low = row.Median
		}
		high = max(high, row.Median, row.Q3)
	}
	return low / 2, math.Max(high, low*1.01)
}
