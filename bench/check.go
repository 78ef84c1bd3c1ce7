package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"gateway/bench/count"
	"gateway/bench/lab"
)

// check compares counts with a baseline.
func check(ctx context.Context, o options) error {
	l, err := lab.Start(lab.Options{})
	if err != nil {
		return err
	}
	defer l.Close()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	counts := count.Counts{}
	for range count.Rounds {
		if err := counts.Take(ctx, l, self); err != nil {
			return err
		}
	}
	if o.renew {
		if err := counts.Save(o.check); err != nil {
			return err
		}
	}
	baseline, err := count.Load(o.check)
	if err != nil {
		return err
	}
	for round := count.Rounds; round < count.MostRounds && counts.Compare(io.Discard, baseline) > 0; round++ {
		if err := counts.Take(ctx, l, self); err != nil {
			return err
		}
	}
	if worse := counts.Compare(os.Stdout, baseline); worse > 0 {
		return fmt.Errorf("%d counts of a command are worse than in %s; if that is meant, make bench-check RENEW=1 and say why in the commit", worse, o.check)
	}
	return nil
}
