package gateway_test

import (
	"context"
	"fmt"
	"time"

	"gateway/gateway"
)

// One command in a session of its own. hosts.Load reads an inventory for the
// Config; without one there is localhost alone.
func Example() {
	g := gateway.New(gateway.Config{})
	defer g.Close()
	r := g.Exec(context.Background(), "localhost", gateway.Command{Text: "echo out; echo err >&2; exit 3", Timeout: time.Minute})
	if r.Err != nil { // the verdict says whether it ran: not_started, or timed_out, interrupted, unknown
		fmt.Println(r.Verdict, gateway.Code(r.Err), r.Err)
		return
	}
	fmt.Printf("%s %d %q %q\n", r.Verdict, r.ExitCode, r.Stdout, r.Stderr)
	// Output: exited 3 "out\n" "err\n"
}

// Commands in one shell find what those before them have left.
func ExampleGateway_Open() {
	g := gateway.New(gateway.Config{})
	defer g.Close()
	ctx := context.Background()
	s, err := g.Open(ctx, "localhost", gateway.Options{Cwd: "/"})
	if err != nil {
		fmt.Println(gateway.Code(err), err)
		return
	}
	defer s.Close()
	for _, text := range []string{"x=1; cd /usr", "echo $x $PWD"} {
		r := s.Run(ctx, gateway.Command{Text: text})
		fmt.Printf("%s %d %q\n", r.Verdict, r.ExitCode, r.Stdout)
	}
	// Output:
	// exited 0 ""
	// exited 0 "1 /usr\n"
}
