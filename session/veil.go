package session

import (
	"bytes"
	"slices"
	"strings"
	"sync"
)

// minSecret is the length below which a secret is not looked for: every second
// line has a "y".
const minSecret = 4

// mask stands in the place of a secret.
const mask = "********"

// A veil takes secrets out of what a command says, from when they were typed on,
// and the engine's own words out of what the terminal shows.
type veil struct {
	mu      sync.Mutex
	echo    echo
	secrets []string
	answers []string  // hidden on the terminal only
	held    [3][]byte // what may be the beginning of one, by stream
}

// hide adds a secret.
func (v *veil) hide(secret string) {
	if secret = strings.Trim(secret, "\r\n"); len(secret) < minSecret {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.secrets = append(v.secrets, secret)
}

// hideEcho adds a secret that the terminal is not to show. What a command says of
// it on its other streams is its output.
func (v *veil) hideEcho(secret string) {
	if len(secret) < minSecret {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.answers = append(v.answers, secret)
}

// over returns what may be shown of b and of what was held before it.
func (v *veil) over(from Stream, b []byte) []byte {
	v.mu.Lock()
	defer v.mu.Unlock()
	if from == Terminal {
		b = v.echo.without(b)
	}
	secrets := v.hidden(from)
	if len(secrets) == 0 {
		return b
	}
	b = append(v.held[from], b...)
	cut := settled(b, secrets)
	v.held[from] = bytes.Clone(b[cut:])
	return masked(b[:cut], secrets)
}

// hidden returns what is not to be seen on a stream, the longest first: one may
// begin another, of which nothing must be left then.
func (v *veil) hidden(from Stream) []string {
	secrets := slices.Clone(v.secrets)
	if from == Terminal {
		secrets = append(secrets, v.answers...)
	}
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	return secrets
}

// settled returns how much of b no secret can reach into any more, whatever comes.
func settled(b []byte, secrets []string) int {
	cut := len(b)
	for _, secret := range secrets {
		cut = min(cut, len(b)-overlap(b, secret))
	}
	for moved := true; moved; {
		moved = false
		for _, secret := range secrets { // none is cut in two
			from := max(0, cut-len(secret)+1)
			if at := bytes.Index(b[from:], []byte(secret)); at >= 0 && from+at < cut && from+at+len(secret) > cut {
				cut, moved = from+at, true
			}
		}
	}
	return cut
}

func masked(b []byte, secrets []string) []byte {
	for _, secret := range secrets {
		b = bytes.ReplaceAll(b, []byte(secret), []byte(mask))
	}
	return b
}

// rest returns what was held of a stream that has ended.
func (v *veil) rest(from Stream) []byte {
	v.mu.Lock()
	defer v.mu.Unlock()
	held := v.held[from]
	v.held[from] = nil
	if from == Terminal {
		held = append(held, v.echo.held...)
		v.echo.held = nil
	}
	return masked(held, v.hidden(from))
}

// echoed reports whether the terminal has shown the frame.
func (v *veil) echoed() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.echo.seen
}

// overlap returns how many bytes at the end of b begin the secret.
func overlap(b []byte, secret string) int {
	for n := min(len(b), len(secret)-1); n > 0; n-- {
		if secret[:n] == string(b[len(b)-n:]) {
			return n
		}
	}
	return 0
}
