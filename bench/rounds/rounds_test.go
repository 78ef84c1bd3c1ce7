package rounds_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gateway/bench/rounds"
)

func TestSummarise(t *testing.T) {
	for _, c := range []struct {
		name   string
		values []float64
		want   rounds.Summary
	}{
		{"none", nil, rounds.Summary{}},
		{"one", []float64{3}, rounds.Summary{N: 1, Median: 3, Q1: 3, Q3: 3, P99: 3, Min: 3, Max: 3}},
		{"unsorted", []float64{5, 1, 3, 2, 4}, rounds.Summary{N: 5, Median: 3, Q1: 2, Q3: 4, P99: 4.96, Min: 1, Max: 5}},
		{"between", []float64{1, 2}, rounds.Summary{N: 2, Median: 1.5, Q1: 1.25, Q3: 1.75, P99: 1.99, Min: 1, Max: 2}},
	} {
		if got := rounds.Summarise(c.values); got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
}

// Contenders take turns; one that fails or has spent its time is left out, and
// the others go on.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order strings.Builder
		do := func(letter string, takes time.Duration, fails int) rounds.Contender {
			n := 0
			return rounds.Contender{Name: letter, Do: func(ctx context.Context) error {
				order.WriteString(letter)
				select {
				case <-time.After(takes):
				case <-ctx.Done():
					return ctx.Err()
				}
				if n++; n == fails {
					return errors.New("broken")
				}
				return nil
			}}
		}
		plan := rounds.Plan{Rounds: 3, Lead: 1, Block: 2, Budget: 20 * time.Second, Limit: time.Minute}
		got := rounds.Run(t.Context(), plan, []rounds.Contender{
			do("a", time.Millisecond, 0), do("b", 10*time.Second, 0), do("c", time.Second, 5), do("d", time.Hour, 0),
		})
		turns := order.String()
		for _, letter := range "abcd" {
			if want := map[rune]int{'a': 9, 'b': 3, 'c': 5, 'd': 1}[letter]; strings.Count(turns, string(letter)) != want {
				t.Errorf("order %s: want %d times %c", turns, want, letter)
			}
		}
		if !strings.Contains(turns, "bbb") || !strings.Contains(turns, "ccc") {
			t.Errorf("order %s: a turn is not in one piece", turns)
		}
		for i, want := range []struct {
			n   int
			err string
		}{{6, ""}, {2, ""}, {2, "broken"}, {0, "not done within 1m0s"}} {
			err := ""
			if got[i].Err != nil {
				err = got[i].Err.Error()
			}
			if len(got[i].Values) != want.n || err != want.err {
				t.Errorf("%s: %d values, error %q; want %d, %q", got[i].Name, len(got[i].Values), err, want.n, want.err)
			}
		}
		if took := got[0].Values[0]; took != 1 {
			t.Errorf("a took %v ms, want 1", took)
		}
	})
}
