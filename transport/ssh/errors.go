package ssh

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"

	gossh "golang.org/x/crypto/ssh"

	"gateway/internal/phrase"
	"gateway/transport"
)

// The contract's codes that this package uses; those for credentials are in auth.go.
const (
	codeConfig         = "config.invalid"
	codeNotFound       = "dns.not_found"
	codeNoLookup       = "dns.failed"
	codeRefused        = "tcp.refused"
	codeTimeout        = "tcp.timeout"
	codeUnreachable    = "tcp.unreachable"
	codeProxy          = "proxy.failed"
	codeHandshake      = "ssh.handshake"
	codeClosed         = "ssh.closed"
	codeThrottled      = "ssh.throttled"
	codeNoCommon       = "ssh.no_common_algorithm"
	codeHostKeyUnknown = "hostkey.unknown"
	codeHostKeyChanged = "hostkey.changed"
	codeHostKeyRevoked = "hostkey.revoked"
	codeLimit          = "session.limit"
	codePTYRefused     = "session.pty_refused"
	codeForcedCommand  = "session.forced_command"
	codeNoSubsystem    = "file.no_subsystem"
	codeLost           = "link.lost"
)

// errTimeout is the cause of a context that the hop's own clock ended.
var errTimeout = errors.New("connect timeout")

// failure makes the error that says what happened to this hop.
func (c *Config) failure(code string, cause error, hint, format string, args ...any) *transport.Error {
	return &transport.Error{
		Code:    code,
		Message: "ssh: " + c.where() + ": " + fmt.Sprintf(format, args...),
		Hint:    hint,
		Err:     cause,
	}
}

// code returns the error code of err; empty if it is no transport.Error.
func code(err error) string {
	if typed, ok := errors.AsType[*transport.Error](err); ok {
		return typed.Code
	}
	return ""
}

// given returns the error for an opening that the caller gave up, or nil if
// ctx ended for another reason or not at all.
func (c *Config) given(ctx context.Context, doing string) error {
	if !errors.Is(ctx.Err(), context.Canceled) || errors.Is(context.Cause(ctx), errTimeout) {
		return nil
	}
	return fmt.Errorf("ssh: %s: %s: %w", c.where(), doing, transport.Cause(ctx))
}

// unconnected is the error of an opening that had no connection when ctx ended.
func (c *Config) unconnected(ctx context.Context) error {
	if given := c.given(ctx, "opening"); given != nil {
		return given
	}
	return c.failure(codeClosed, context.DeadlineExceeded, hintSilent, "no connection %s", c.inTime(ctx))
}

// hintSilent is for what was neither done nor refused in time.
const hintSilent = "the link may be down without anyone having been told"

// closed is what remains of a connection or program for who has closed it.
func (c *Config) closed() error { return fmt.Errorf("ssh: %s: %w", c.where(), transport.ErrClosed) }

// dialError says why no TCP connection came about.
func (c *Config) dialError(ctx context.Context, err error) error {
	if given := c.given(ctx, "connecting"); given != nil {
		return given
	}
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return c.failure(codeNotFound, err, "check the spelling of addr, or whether the name resolves only inside another network (VPN, jump)",
			"name %s does not resolve", c.Addr)
	case errors.As(err, &dns):
		return c.lookupError(ctx, dns)
	case ctx.Err() != nil, isTimeout(err):
		return c.failure(codeTimeout, context.DeadlineExceeded, "check addr and port, and whether a firewall drops the packets; connect_timeout sets how long to wait",
			"no TCP connection %s", c.inTime(ctx))
	case errors.Is(err, syscall.ECONNREFUSED):
		return c.failure(codeRefused, err, "nothing listens on this port: check the port, and whether sshd runs",
			"connection refused")
	case exhausted(err):
		return c.failure(codeLimit, err, "this machine or its limits (ulimit -n) let no more connections be opened", "%s", reason(err))
	}
	return c.failure(codeUnreachable, err, "check the network: route, VPN, jump", "%s", reason(err))
}

// hintNoFile is for a file that no descriptor was left for.
const hintNoFile = "this machine or its limits (ulimit -n) let no more files be opened"

// exhausted reports whether err is that this process, or this machine, has no descriptor left.
func exhausted(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// lookupError says why nobody knows whether this machine's name resolves.
func (c *Config) lookupError(ctx context.Context, dns *net.DNSError) error {
	var cause error = dns
	why := cut(dns.Err)
	if ctx.Err() != nil || dns.IsTimeout {
		cause, why = context.DeadlineExceeded, "no answer "+c.inTime(ctx)
	}
	server := ""
	if dns.Server != "" {
		server = " " + dns.Server
	}
	return c.failure(codeNoLookup, cause, "check the network, and the name server in /etc/resolv.conf; an IP address as addr needs none",
		"the name server%s could not tell the address of %s: %s", server, c.Addr, why)
}

// inTime is the time that was not enough.
func (c *Config) inTime(ctx context.Context) string {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) && !errors.Is(context.Cause(ctx), errTimeout) {
		return "before the caller's deadline"
	}
	return "within " + c.ConnectTimeout.String()
}

func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}

// reason is the innermost text of a network error: "no route to host" instead
// of "dial tcp 10.0.0.7:22: connect: no route to host".
func reason(err error) string {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno.Error()
	}
	return phrase.WithoutPath(err).Error()
}

// hangup reports whether err says that the peer went away.
func hangup(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// failure says why the key exchange or the authentication came to
// nothing.
func (h *handshake) failure(ctx context.Context, err error) error {
	c := h.config
	if given := c.given(ctx, "connecting"); given != nil {
		return given
	}
	if typed, ok := errors.AsType[*transport.Error](err); ok {
		return typed // host key and authentication know best themselves
	}
	phase := h.phase()
	said := itSaid(h.wire.preamble())
	if phase == phaseAuth {
		said = itSaid(cmp.Or(h.auth.said, h.auth.notice))
	}
	var common *gossh.AlgorithmNegotiationError
	switch {
	case ctx.Err() != nil:
		return c.failure(codeHandshake, &phaseError{phase, context.DeadlineExceeded}, phase.late,
			"%s not finished %s%s", phase.name, c.inTime(ctx), said)
	case errors.As(err, &common):
		return c.failure(codeNoCommon, &phaseError{phase, err}, "the server offers only algorithms that are no longer safe, or a newer kind than this client knows: update it",
			"no common algorithm for %s: it offers %s", common.What, quoted(strings.Join(common.RequestedAlgorithms, ", ")))
	case phase == phaseBanner && h.wire.throttled() != "":
		return c.failure(codeThrottled, err, h.wire.throttled(), "the server turns connections away%s", said)
	case phase == phaseAuth && tooMany(err):
		return h.auth.tooManyError(err)
	case hangup(err):
		return c.failure(codeClosed, &phaseError{phase, err}, "look into the server's log; "+phase.closed,
			"connection closed by the server during %s%s", phase.name, said)
	case phase == phaseAuth:
		return c.failure(codeClosed, &phaseError{phase, err}, "look into the server's log", "%s: %s", phase.name, cut(trimmed(err)))
	}
	return c.failure(codeHandshake, &phaseError{phase, err}, "is this an SSH server?", "%s: %s%s", phase.name, cut(trimmed(err)), said)
}

// itSaid is the end of a message, about what a server has said.
func itSaid(text string) string {
	if text == "" {
		return ""
	}
	return fmt.Sprintf("; it said %q", text)
}

// trimmed is the text of an error of x/crypto without the words that the
// message around it says already.
func trimmed(err error) string {
	var typed *transport.Error
	if inner := errors.Unwrap(err); inner != nil && !errors.As(err, &typed) {
		err = inner
	}
	return strings.TrimPrefix(err.Error(), "ssh: ")
}

// maxTheirs bounds what a server says in a message.
const maxTheirs = 200

// quoted is a server's text as part of a message. It may be as long as a packet
// and look like anything.
func quoted(text string) string { return fmt.Sprintf("%.*q", maxTheirs, text) }

// cut is the text of an error of x/crypto, in which a server's may stand.
func cut(text string) string { return fmt.Sprintf("%.*s", maxTheirs, printable([]byte(text))) }

// list is what a server calls its methods. Names as RFC 4250 section 4.6.1 has
// them need no quotes, as long as they are few.
func list(methods []string, separator string) string {
	text := strings.Join(methods, separator)
	odd := func(method string) bool {
		return strings.ContainsFunc(method, func(r rune) bool { return r <= ' ' || r > '~' })
	}
	if len(text) > maxTheirs || slices.ContainsFunc(methods, odd) {
		return quoted(text)
	}
	return text
}
