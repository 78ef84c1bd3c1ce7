package session_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gateway/session"
	"gateway/transport/local"
)

// A session is one live shell: what a command changes is there for the next one.
func Example() {
	ctx := context.Background()
	machine := local.New(local.Config{}) // ssh.Dial returns another one
	defer machine.Close()
	shell, err := session.Open(ctx, machine, session.Config{Shell: "sh", Cwd: "/"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer shell.Close()
	for _, text := range []string{"cd usr && color=blue", `echo "$color in $PWD"; (exit 3)`} {
		result, err := shell.Run(ctx, session.Command{Text: text})
		if err != nil {
			fmt.Println(result.Verdict, err)
			return
		}
		fmt.Printf("%s %d %q\n", result.Verdict, result.ExitCode, result.Stdout)
	}
	// Output:
	// exited 0 ""
	// exited 3 "blue in /usr\n"
}

// A deadline ends the command, and neither the session nor what had come by then.
func ExampleSession_Run_timeout() {
	ctx := context.Background()
	machine := local.New(local.Config{})
	defer machine.Close()
	shell, err := session.Open(ctx, machine, session.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer shell.Close()
	result, err := shell.Run(ctx, session.Command{Text: "echo part; sleep 60", Timeout: time.Second})
	fmt.Printf("%s %q, ended: %v, %v\n", result.Verdict, result.Stdout, result.Ended, errors.Is(err, context.DeadlineExceeded))
	// Output: timed_out "part\n", ended: false, true
}
