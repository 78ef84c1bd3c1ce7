package rounds

import (
	"math"
	"slices"
)

// A Summary is what a row of a table says about many values.
type Summary struct {
	N      int     `json:"n"`
	Median float64 `json:"median"`
	// Q1 and Q3 are the quartiles: half of the values are between them.
	Q1  float64 `json:"q1"`
	Q3  float64 `json:"q3"`
	P99 float64 `json:"p99"`
	Min float64 `json:"min"`
	Max float64 `json:"max"`
}

// Summarise sorts the values, which stay the caller's. Of none it is zero.
func Summarise(values []float64) Summary {
	if len(values) == 0 {
		return Summary{}
	}
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	return Summary{
		N:      len(sorted),
		Median: quantile(sorted, 0.5),
		Q1:     quantile(sorted, 0.25),
		Q3:     quantile(sorted, 0.75),
		P99:    quantile(sorted, 0.99),
		Min:    sorted[0],
		Max:    sorted[len(sorted)-1],
	}
}

// quantile interpolates between the two nearest ranks.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	low := int(math.Floor(at))
	high := min(low+1, len(sorted)-1)
	return sorted[low] + (at-float64(low))*(sorted[high]-sorted[low])
}
