package main

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/spf13/cobra"

	"gateway/gateway"
	"gateway/transport"
)

func (a *app) shellCommand() *cobra.Command {
	var user string
	cmd := &cobra.Command{
		Use:   "shell HOST",
		Short: "Open a terminal in the account's login shell",
		Long: `Open a terminal in the account's login shell. At the beginning of a line ~.
leaves at once, also when nothing answers any more, and ~~ is one ~.

Status: that of the shell, 125 did not start, 122 left with ~., or the link was
lost, or stdout could not be written to.`,
		Example: `  gateway shell web1
  gateway shell -u postgres db1`,
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     a.completeHost,
		RunE: func(cmd *cobra.Command, args []string) error {
			host, rest, err := a.selection(cmd, args, "HOST")
			switch {
			case err != nil || host == "":
				return err
			case !a.oneHost:
				return tooMany(cmd, host)
			case len(rest) > 0:
				return usage(cmd, "to run a command there is gateway exec", "unexpected argument %q", rest[0])
			}
			return a.shell(cmd, host, user)
		},
	}
	cmd.SetFlagErrorFunc(a.oneHostFlagError)
	cmd.Flags().SetInterspersed(false)
	cmd.Flags().StringVarP(&user, "user", "u", "", "enter the host as `USER`")
	return cmd
}

// shell connects the person's terminal with a shell on a host, until either of
// them goes.
func (a *app) shell(cmd *cobra.Command, host, user string) error {
	if !isTerminal(os.Stdin) || !isTerminal(os.Stdout) {
		return usage(cmd, "to run a command there is gateway exec", "a shell needs a terminal on stdin and stdout")
	}
	if err := a.load(); err != nil {
		return err
	}
	g, err := a.open(a.asker(), policyAsk)
	if err != nil {
		return err
	}
	defer g.Close()
	ctx := cmd.Context()
	size := a.console.size()
	t, err := g.Shell(ctx, host, gateway.ShellOptions{Size: size, Term: os.Getenv("TERM"), User: user})
	if err != nil {
		return err
	}
	defer t.Close()
	a.ran = true
	return a.converse(ctx, t, size)
}

// errLeft: the person typed ~. .
var errLeft = errors.New("left")

// converse passes bytes both ways until the shell ends. size is what it was told of the
// terminal's.
func (a *app) converse(ctx context.Context, t transport.Terminal, size transport.Size) error {
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	at := newAttachment(a.console)
	if err := a.console.makeRaw(); err != nil {
		return err
	}
	defer at.stop()
	at.follow(size, t.Resize)
	go forward(&leavable{pass: func(b []byte) { _, _ = t.Write(b) }, leave: func() { leave(errLeft) }})
	defer context.AfterFunc(ctx, func() { t.Close() })()
	_, err := io.Copy(a.out, t)
	if a.out.failed() != nil || ctx.Err() != nil {
		t.Close()
	}
	exit, lost := t.Wait()
	at.stop()
	switch {
	case errors.Is(context.Cause(ctx), errLeft):
		a.out.say("gateway: left")
		return exitStatus(statusUnknown) // how the shell ends is not known
	case a.out.failed() != nil: // it was hung up on
		return exitStatus(statusUnknown)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case lost != nil:
		a.out.fail(lost)
		return exitStatus(statusUnknown)
	case err != nil:
		return err
	}
	return ended(exit.Code)
}

// escapes finds ~. and ~~ at the beginning of a line, as ssh does. The zero
// value stands at one.
type escapes struct {
	inLine bool
	tilde  bool // one is held back
}

// filter returns what is to be passed on, and whether the person wants to leave.
func (e *escapes) filter(b []byte) (typed []byte, leave bool) {
	for _, c := range b {
		switch {
		case e.tilde && c == '.':
			return typed, true
		case e.tilde && c != '~':
			typed = append(typed, '~', c)
		case !e.tilde && !e.inLine && c == '~':
			e.tilde = true
			continue
		default:
			typed = append(typed, c)
		}
		e.tilde, e.inLine = false, c != '\r' && c != '\n'
	}
	return typed, false
}
