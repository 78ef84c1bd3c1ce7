package count

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
)

// Load reads a baseline.
func Load(file string) (Counts, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var c Counts
	if err := json.Unmarshal(text, &c); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return c, nil
}

// Save writes a baseline: two digits behind the point say all that is stable.
func (c Counts) Save(file string) error {
	rounded := Counts{}
	for name, value := range c {
		rounded[name] = math.Round(value*100) / 100
	}
	text, err := json.MarshalIndent(rounded, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

// Compare shows the counts beside a baseline, and returns how many are worse or
// are missing on either side.
func (c Counts) Compare(w io.Writer, baseline Counts) (worse int) {
	fmt.Fprintf(w, "%-58s %10s %10s %10s\n", "", "is", "was", "at most")
	for _, t := range tolerances {
		is, counted := c[t.name]
		was, known := baseline[t.name]
		limit := was*(1+t.part) + t.more
		verdict := ""
		switch {
		case !counted:
			verdict = "NOT COUNTED"
		case !known:
			verdict = "NOT IN THE BASELINE"
		case is > limit:
			verdict = "WORSE"
		case is < was*(1-t.part)-t.more:
			verdict = "better"
		}
		if verdict != "" && verdict != "better" {
			worse++
		}
		fmt.Fprintf(w, "%-58s %10.2f %10.2f %10.2f  %s\n", t.name, is, was, limit, verdict)
	}
	return worse
}
