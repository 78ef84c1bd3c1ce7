package main

import (
	"context"
	"fmt"
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
	counts, err := count.Take(ctx, l, self)
	if err != nil {
		return err
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
	if worse := counts.Compare(os.Stdout, baseline); worse > 0 {
		return fmt.Errorf("%d counts of a command are worse than in %s; if that is meant, make bench-check RENEW=1 and say why in the commit", worse, o.check)
	}
	return nil
}
