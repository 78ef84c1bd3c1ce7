// Package rounds measures contenders in turns, so that a machine's noise meets
// all of them alike, and says what came out in a few robust figures.
package rounds

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// A Contender is measured by doing one thing again and again.
type Contender struct {
	Name string
	Do   func(context.Context) error
	// After, if there is one, cleans up behind Do. Its time does not count.
	After func()
}

// A Plan says how much is measured.
type Plan struct {
	// Rounds is how often it is each contender's turn, Block how often it does its
	// thing in a turn.
	Rounds, Block int
	// Budget is the time after which a contender is not measured further; 0 means
	// that there is none. It is measured once in any case.
	Budget time.Duration
	// Warm is how often each does its thing before, and Lead at the beginning of each
	// turn, unmeasured: what another one has left in the caches is not its own.
	Warm, Lead int
	// Limit ends what takes longer, and with it the contender; 0 means a minute.
	Limit time.Duration
}

// A Series is what a contender took each time, in milliseconds.
type Series struct {
	Name   string
	Values []float64
	// Err is why there are no more of them.
	Err error
}

// Run measures the contenders. One that fails is left out from then on, and its
// series says why. Whose turn it is in a round is drawn, in every run alike, so that
// nobody always comes behind the same one.
func Run(ctx context.Context, plan Plan, contenders []Contender) []Series {
	if plan.Limit == 0 {
		plan.Limit = time.Minute
	}
	series := make([]Series, len(contenders))
	spent := make([]time.Duration, len(contenders))
	for i, c := range contenders {
		series[i].Name = c.Name
		for range plan.Warm {
			if series[i].Err == nil {
				_, series[i].Err = once(ctx, plan.Limit, c)
			}
		}
	}
	draw := rand.New(rand.NewPCG(0, 0))
	for range plan.Rounds {
		for _, i := range draw.Perm(len(contenders)) {
			for n := range plan.Lead + plan.Block {
				if series[i].Err != nil || plan.Budget > 0 && spent[i] > plan.Budget {
					break
				}
				took, err := once(ctx, plan.Limit, contenders[i])
				spent[i] += took
				if series[i].Err = err; err == nil && n >= plan.Lead {
					series[i].Values = append(series[i].Values, float64(took)/float64(time.Millisecond))
				}
			}
		}
	}
	return series
}

func once(ctx context.Context, limit time.Duration, c Contender) (time.Duration, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not done within %v", limit))
	defer cancel()
	begun := time.Now()
	err := c.Do(ctx)
	took := time.Since(begun)
	if c.After != nil {
		c.After()
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return took, err
}
