package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"gateway/hosts"
	"gateway/session"
)

// sudoTimeout bounds the opening of a session under sudo: a person may have to
// find the password first.
const sudoTimeout = 2 * time.Minute

// SudoUser returns whom a session on a host becomes under Options.Sudo, with this
// Options.SudoUser.
func SudoUser(host hosts.Host, user string) string { return cmp.Or(user, host.Sudo.User, "root") }

// SudoUser returns whom a session beside it becomes by Options.Sudo alone.
func (s *Session) SudoUser() string { return SudoUser(s.host, "") }

// sudo returns how a session on the host becomes another user's.
func (g *Gateway) sudo(host hosts.Host, options Options) *session.Sudo {
	user := cmp.Or(options.SudoUser, host.Sudo.User)
	return &session.Sudo{
		User: user, Flags: host.Sudo.Flags,
		Password: func(ctx context.Context, attempt int) (string, error) {
			switch {
			case host.Sudo.Password != "" && attempt > 1:
				return "", errors.New("sudo.password is wrong") // asking again would lock the account
			case host.Sudo.Password != "":
				return options.secret(ctx, host.Sudo.Password)
			case options.Password != nil && attempt > 1:
				return "", errors.New("the password given for it is wrong")
			case options.Password != nil:
				return options.Password(ctx)
			case g.config.Ask != nil:
				return g.config.Ask(ctx, SudoQuestion(Login(host), host.Name, attempt))
			}
			return "", errNobody
		},
	}
}

// SudoQuestion asks for the password that sudo wants of an account on a host, for
// the first time or after a wrong one.
func SudoQuestion(login, host string, attempt int) Question {
	q := Question{Kind: AskPassword, Host: host, User: login, Prompt: fmt.Sprintf("sudo password for %s on %s: ", login, host)}
	if attempt > 1 {
		q.Instruction = "Sorry, try again."
	}
	return q
}

// secret resolves a reference of the inventory that is about to be typed.
func (o Options) secret(ctx context.Context, reference string) (string, error) {
	value, err := Secret(ctx, reference)
	if err == nil && o.Typed != nil {
		o.Typed(value)
	}
	return value, err
}
