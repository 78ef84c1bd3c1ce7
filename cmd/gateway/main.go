// Gateway runs commands on machines, over SSH or on this one.
package main

import (
	"context"
	"os"
)

func main() { os.Exit(run(os.Args[1:])) }

// run is one call of gateway, from its arguments to its exit status.
func run(args []string) int {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	a := newApp(cancel)
	// A terminal that is left raw is useless to whoever sits there, so it comes
	// back whatever happens, also after a panic.
	defer a.console.restore()
	defer a.watchSignals()()
	status := a.run(ctx, args)
	if left := a.left.Load(); left != 0 {
		return int(left)
	}
	return status
}
