package ssh

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	gossh "golang.org/x/crypto/ssh"
)

// The contract's codes for credentials.
const (
	codeNoKey         = "auth.no_key"
	codeKeyUnreadable = "auth.key_unreadable"
	codePassphrase    = "auth.passphrase"
	codeCertExpired   = "auth.cert_expired"
	codeRejected      = "auth.rejected"
	codeTooMany       = "auth.too_many"
	codeInteraction   = "auth.needs_interaction"
	codeSecret        = "secret.unreadable"
)

// The methods of RFC 4252 and RFC 4256 that this client has.
const (
	methodKey       = "publickey"
	methodPassword  = "password"
	methodChallenge = "keyboard-interactive"
)

// An authenticator chooses what to show to one machine, and remembers why it
// was not enough. One connection attempt has one; it shows nothing twice.
// x/crypto calls it from one goroutine.
type authenticator struct {
	ctx    context.Context
	config *Config
	clock  *clock
	wire   *wire
	keys   keyring

	allowed   []string // methods that the server accepts next
	passed    []string // methods that it accepted, and wants another one
	offered   []string // what was refused so far, for the message
	withheld  []string // keys that were not shown, since no signature of theirs would be taken
	latest    string   // the key whose turn it was last
	troubled  int      // problems with keys up to then
	gathered  bool     // keys were looked for
	password  bool     // Config.Password was shown
	typed     bool     // a person has typed a password, and was told nothing of it
	said      string   // by the server, with no question, once something was shown to it
	notice    string   // by the server before that, as to everyone
	methods   map[string]bool
	abandoned error // a secret could not be had, or a question went unanswered
}

func newAuthenticator(ctx context.Context, config *Config, clock *clock, w *wire) *authenticator {
	return &authenticator{
		ctx: ctx, config: config, clock: clock, wire: w, methods: map[string]bool{},
		keys: keyring{ctx: ctx, config: config, clock: clock},
	}
}

// hear is x/crypto's BannerCallback. sshd says so, too, what PAM has against an account.
func (a *authenticator) hear(text string) error {
	switch text = cut(text); {
	case text == "":
	case len(a.offered) == 0:
		a.notice = text
	default:
		a.said = text
	}
	return nil
}

// close ends the connection to the agent.
func (a *authenticator) close() { a.keys.close() }

// settle tells about keys that could not be used although others did.
func (a *authenticator) settle() {
	for _, problem := range a.keys.problems {
		a.config.warn(problem.Message)
	}
}

// next is x/crypto's AuthCallback. Each key is a method of its own, so that
// one that can't sign does not keep the others from being tried.
func (a *authenticator) next(server *gossh.ClientAuthContext) (gossh.AuthMethod, error) {
	if a.wire.broken.Load() || a.wire.unsent.Load() {
		return nil, io.ErrUnexpectedEOF // x/crypto takes a lost link for a refusal and goes on
	}
	if a.abandoned != nil {
		return nil, a.abandoned
	}
	switch isLatest := func(label string) bool { return label == a.latest }; {
	case a.latest == "":
	case !slices.ContainsFunc(a.offered, isLatest):
		a.withheld = append(a.withheld, a.latest)
	case len(a.keys.problems) > a.troubled: // the machine wanted this key, which could not sign
		a.offered = slices.DeleteFunc(a.offered, isLatest)
	}
	a.latest = ""
	a.allowed, a.passed = server.AllowedMethods, server.PartialSuccessMethods
	c := a.config
	if slices.Contains(a.allowed, methodKey) {
		if !a.gathered {
			a.gathered = true
			a.keys.gather()
		}
		if signer, label := a.keys.next(); signer != nil {
			a.latest, a.troubled = label, len(a.keys.problems)
			return gossh.PublicKeys(shown{signer, sync.OnceFunc(func() {
				a.offered = append(a.offered, label)
				c.trace("auth", "offered %s", label)
			})}), nil
		}
	}
	if a.may(methodPassword, c.Password != nil || c.Ask != nil) {
		return gossh.PasswordCallback(a.answerPassword), nil
	}
	if a.may(methodChallenge, c.Ask != nil || c.Password != nil && !a.password) {
		return gossh.KeyboardInteractive(a.answerChallenge), nil
	}
	return nil, a.failure()
}

// may reports whether a method is worth trying, which is so once.
func (a *authenticator) may(method string, able bool) bool {
	if !able || !slices.Contains(a.allowed, method) || a.methods[method] {
		return false
	}
	a.methods[method] = true
	a.config.trace("auth", "offered %s", method)
	a.offered = append(a.offered, method)
	return true
}

func (a *authenticator) answerPassword() (string, error) {
	if a.config.Password != nil {
		return a.configured()
	}
	a.typed = true
	return a.ask(Question{Kind: AskPassword, Prompt: fmt.Sprintf("%s@%s's password: ", a.config.User, a.config.Name)})
}

// answerChallenge answers a round of keyboard-interactive. The configured
// password is the answer to a lone question for a password, once: a second
// one means that it was wrong, and a hidden question may be for a one-time
// code.
func (a *authenticator) answerChallenge(_, instruction string, questions []string, echos []bool) ([]string, error) {
	// What comes without a question is about the next one: "your password has expired".
	instruction, a.said = strings.TrimSpace(a.said+"\n"+instruction), ""
	if len(questions) == 0 {
		a.said = cut(instruction) // there may be any number of them
	} else if a.typed {
		a.typed = false
		if !slices.Contains(a.passed, methodPassword) {
			instruction = strings.TrimSpace("Permission denied, please try again.\n" + instruction)
		}
	}
	answers := make([]string, len(questions))
	for i, prompt := range questions {
		var err error
		if a.config.Password != nil && !a.password && len(questions) == 1 && !echos[i] &&
			strings.Contains(strings.ToLower(prompt), "password") {
			answers[i], err = a.configured()
		} else {
			answers[i], err = a.ask(Question{Kind: AskChallenge, Prompt: prompt, Instruction: instruction, Echo: echos[i]})
		}
		if err != nil {
			return nil, err
		}
	}
	return answers, nil
}

// configured returns the account's password.
func (a *authenticator) configured() (string, error) {
	a.password = true
	defer a.clock.pause()()
	secret, err := a.config.Password(a.ctx)
	if err != nil {
		a.abandoned = a.config.failure(codeSecret, err, "check the reference under password", "the password could not be read: %v", err)
	}
	return secret, err
}

// ask puts a question to a person.
func (a *authenticator) ask(q Question) (string, error) {
	if a.config.Ask == nil {
		a.abandoned = a.unanswered(q)
		return "", a.abandoned
	}
	answer, err := a.keys.ask(q)
	if err != nil {
		a.abandoned = a.config.failure(codeInteraction, err, "", "a question was not answered: %v", err)
	}
	return answer, err
}

func (a *authenticator) interaction() error {
	return a.config.failure(codeInteraction, nil, "use exec on this host alone at a terminal, or give the account a key or a password by reference",
		"the server wants %s, and nobody is there to answer%s", list(a.allowed, " or "), itSaid(a.said))
}

// unanswered is the error for a round of questions that nobody is there to answer. It
// has what the server says, which is the reason where a password was accepted and has
// expired, or where a code is wanted, too.
func (a *authenticator) unanswered(q Question) error {
	asked := quoted(q.Prompt)
	if q.Instruction != "" {
		asked += ", saying " + quoted(q.Instruction) + ","
	}
	hint := "use exec on this host alone at a terminal, or give the account a key or a password by reference"
	if a.password {
		hint = "the configured password was given before: it may be wrong or have expired, or the server wants more than that; use exec on this host alone at a terminal, or give the account a key"
	}
	return a.config.failure(codeInteraction, nil, hint, "the server asks %s and nobody is there to answer", asked)
}

// failure says why there is nothing left to try. What was wrong with a key
// comes first: it is why the others had to be tried.
func (a *authenticator) failure() error {
	if problem := a.keys.worst(); problem != nil {
		if len(a.offered) > 0 {
			problem.Message += "; refused: " + strings.Join(a.offered, ", ")
		}
		return problem
	}
	c := a.config
	takesKeys := slices.Contains(a.allowed, methodKey)
	asks := slices.Contains(a.allowed, methodPassword) || slices.Contains(a.allowed, methodChallenge)
	answered := slices.ContainsFunc(a.allowed, func(method string) bool { return a.methods[method] }) // and refused
	switch {
	case len(a.passed) > 0 && asks && !answered && c.Ask == nil:
		return a.interaction()
	case len(a.offered) == 0 && !takesKeys && asks:
		return a.interaction()
	case len(a.offered)+len(a.withheld) == 0 && takesKeys:
		return c.failure(codeNoKey, nil, "set identity for this host, start an agent, or give a password by reference",
			"no key to show: looked in %s; the server accepts %s", a.keys.looked(), list(a.allowed, ", "))
	}
	hint := "check user, and whether the key stands in the account's authorized_keys; the server's log has the reason"
	switch {
	case len(a.withheld) > 0: // other types of keys have no choice of signatures
		hint = "use a key of another type, such as ed25519, or have the server accept rsa-sha2-512"
	case answered && slices.Contains(a.passed, methodKey), len(a.methods) > 0 && len(a.methods) == len(a.offered): // no key was refused
		hint = "check user and password; the server's log has the reason"
	}
	return c.failure(codeRejected, nil, hint,
		"authentication as %s refused: tried %s; the server accepts %s%s", c.User, a.tried(), list(a.allowed, ", "), itSaid(a.said))
}

// tried says what was shown to the machine, and what not.
func (a *authenticator) tried() string {
	tried := strings.Join(a.offered, ", ")
	switch {
	case tried == "" && len(a.withheld) > 0:
		tried = "nothing"
	case tried == "":
		tried = "nothing, for it has none of these methods"
	}
	if len(a.passed) > 0 {
		tried += "; accepted " + list(a.passed, ", ") + ", which is not enough"
	}
	if len(a.withheld) > 0 {
		tried += "; did not show " + strings.Join(a.withheld, ", ") + ", since the server takes no RSA signatures with SHA-2"
	}
	return tried
}

// tooMany reports whether the server ended the connection over refused
// credentials. x/crypto has no type for its disconnect message.
func tooMany(err error) bool {
	return strings.Contains(err.Error(), "Too many authentication failures")
}

func (a *authenticator) tooManyError(cause error) error {
	return a.config.failure(codeTooMany, cause, "set identity for this host so that the right key comes first, or agent: false",
		"too many keys for the server's MaxAuthTries: refused %s", strings.Join(a.offered, ", "))
}
