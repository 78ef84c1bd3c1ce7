package main

import (
	"bytes"
	"context"
	"os"

	"github.com/spf13/cobra"

	"gateway/daemon/api"
	"gateway/gateway"
)

// maxAnswer is more than a terminal takes as a line.
const maxAnswer = 64 << 10

func (a *app) sessionAnswerCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "answer NAME | ID",
		Short: "Answer what a session's command asks, such as a password",
		Long: `Answer what a session's command asks. The answer is read from the terminal
without being shown, or from stdin if that is a pipe or a file; it is never an
argument. In the command's output stars take its place. An empty stdin is an
error; a newline alone is the empty answer.`,
		Example: `  gateway session answer work
  pass show staging/sudo | gateway session answer work`,
		Args:              exactly("NAME"),
		ValidArgsFunction: a.completeSessions(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.daemon(cmd)
			if err != nil {
				return err
			}
			ctx := cmd.Context()
			name, id := sessionOf(args[0])
			s, err := c.Session(ctx, name)
			switch {
			case err != nil:
				return err
			case id != "" && (s.Command == nil || s.Command.ID != id):
				return usage(cmd, "gateway session list -o json says what does", "command %s does not run in session %s", id, s.Name)
			case s.State != api.WaitingInput || s.Command == nil || s.Command.Prompt == nil:
				return usage(cmd, "to type to a program there is gateway session send", "session %s does not wait for input: it is %s", s.Name, s.State)
			}
			text, err := a.readAnswer(ctx, cmd, s)
			if err != nil {
				return err
			}
			return c.Send(ctx, s.ID, api.Input{Text: text, Enter: true, Secret: true, Command: s.Command.ID})
		},
	}
}

// readAnswer reads what is to be typed: from who sits here, or from stdin.
func (a *app) readAnswer(ctx context.Context, cmd *cobra.Command, s api.Session) (string, error) {
	if isTerminal(os.Stdin) {
		ask := a.asker()
		if ask == nil {
			return "", usage(cmd, "pass the answer on stdin", "nobody can be asked here")
		}
		// Not a command's question: its text is not on this terminal yet.
		return ask(ctx, gateway.Question{Kind: gateway.AskChallenge, Host: s.Host, User: s.User, Prompt: question(s.Command.Prompt)})
	}
	data, err := readAll(ctx, "-", maxAnswer+1)
	if err != nil {
		return "", err
	}
	if len(data) == 0 { // what was to say it has most likely failed
		return "", usage(cmd, "an empty answer is a newline alone: echo | "+cmd.CommandPath()+" "+s.Name, "stdin has no answer: it ends at once")
	}
	data = bytes.TrimSuffix(bytes.TrimSuffix(data, []byte("\n")), []byte("\r"))
	if len(data) > maxAnswer || bytes.ContainsAny(data, "\n\r\x00") {
		return "", usage(cmd, "", "an answer is one line of at most %d KiB", maxAnswer>>10)
	}
	return string(data), nil
}
