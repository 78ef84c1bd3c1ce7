package script

import (
	"context"
	"slices"
	"time"
)

// Check finds out whether the script could begin on a host: it connects, sets
// the variables, and becomes each user that a step needs, but for those that a
// step finds out. It gives the warnings about the steps' texts, and is an error
// where the shell can't read a test. No step runs.
func (r *Runner) Check(ctx context.Context, host string) (result Result) {
	h := r.newRun(host)
	defer func() { result.Duration = time.Since(result.Started) }()
	defer h.close()
	err := h.open(ctx)
	for _, step := range slices.Concat(r.Script.Steps, r.Script.Always) {
		if err == nil {
			err = h.check(ctx, &step)
		}
	}
	if err != nil {
		h.unbegun(ctx, err)
	}
	return h.result
}

// check becomes the user that a step needs, and warns of its text.
func (h *hostRun) check(ctx context.Context, s *Step) (err error) {
	shell := h.main
	if s.Sudo.On && !h.registered(s.Sudo.User) {
		shell, err = h.shell(ctx, s)
	}
	if err == nil && !s.KeepGoing {
		shell.CheckScript(h.Script.command(s, h.called(s)))
	}
	for _, c := range s.conditions() {
		if err != nil {
			return err
		}
		var why string
		if why, err = shell.readable(ctx, c.text); why != "" {
			err = h.Script.unread(h.called(s), c, why)
		}
	}
	return err
}
