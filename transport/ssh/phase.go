package ssh

import "errors"

// A phase is one of a handshake.
type phase struct {
	layer  string // as a [Step] has it
	name   string // in messages
	late   string // what to do where it takes too long
	closed string // what else ends a connection in it than the server's log may say
}

const closedEarly = "TCP wrappers, a firewall or a full process table also end connections like this"

var (
	phaseBanner = &phase{
		"banner", "banner exchange",
		"the machine accepts connections but does not answer: it is overloaded, or this is no SSH port", closedEarly,
	}
	phaseKex = &phase{
		"kex", "key exchange",
		"the machine is overloaded, or long packets are lost on the way: compare the MTU of a VPN or a tunnel there", closedEarly,
	}
	phaseAuth = &phase{
		"auth", "authentication",
		"the machine is overloaded, or waits for what it asks about the account; long packets may be lost on the way, too",
		"an account that may not log in ends like this, and a login that takes longer than LoginGraceTime",
	}
)

// A phaseError is the cause of a failure in one phase of a handshake.
type phaseError struct {
	phase *phase
	error
}

func (e *phaseError) Unwrap() error { return e.error }

// FailedPhase returns the layer, as a [Step] has it, in which a handshake failed; empty
// if err is about something else.
func FailedPhase(err error) (layer string) {
	if failed, ok := errors.AsType[*phaseError](err); ok {
		return failed.phase.layer
	}
	return ""
}
