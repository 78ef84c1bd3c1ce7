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
	mu      sync.Mutex // guards what follows
	echo    echo
	secrets []string
	answers []string // hidden on the terminal only
	sights  [3]sight // by stream
}

// hide adds a secret, of which each line is one.
func (v *veil) hide(secret string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for line := range strings.FieldsFuncSeq(secret, func(c rune) bool { return c == '\r' || c == '\n' }) {
		if len(line) >= minSecret {
			v.secrets = append(v.secrets, line)
		}
	}
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
	return v.sights[from].over(b, secrets, false)
}

// hidden returns what is not to be seen on a stream.
func (v *veil) hidden(from Stream) []string {
	secrets := slices.Clone(v.secrets)
	if from == Terminal {
		secrets = append(secrets, v.answers...)
	}
	return secrets
}

// A sight is one stream on its way through a veil. Every byte of every occurrence
// of a secret is hidden, also where they overlap, and one mask stands for all that
// are together; so it does not matter in what pieces they come.
type sight struct {
	held    []byte // may be the beginning of a secret; shorter than the longest
	covered int    // how much of it is hidden whatever comes
	within  bool   // the byte in front of it was hidden
}

// over returns what may be shown of b and of what was held before it. all: nothing
// comes behind it.
func (s *sight) over(b []byte, secrets []string, all bool) []byte {
	b = append(s.held, b...)
	safe := len(b) // how much no secret can reach into any more
	hidden := make([]bool, len(b))
	hide := func(from, to int) {
		for i := from; i < to; i++ {
			hidden[i] = true
		}
	}
	hide(0, s.covered)
	for _, secret := range secrets {
		if !all {
			safe = min(safe, len(b)-overlap(b, secret))
		}
		for at := bytes.Index(b, []byte(secret)); at >= 0; {
			hide(at, at+len(secret))
			next := bytes.Index(b[at+1:], []byte(secret))
			if next < 0 {
				break
			}
			at += 1 + next
		}
	}
	shown := make([]byte, 0, safe)
	for i, c := range b[:safe] {
		switch {
		case !hidden[i]:
			shown = append(shown, c)
		case !s.within:
			shown = append(shown, mask...)
		}
		s.within = hidden[i]
	}
	s.held, s.covered = bytes.Clone(b[safe:]), 0
	for s.covered < len(s.held) && hidden[safe+s.covered] {
		s.covered++
	}
	return shown
}

// rest returns what was held of a stream that has ended.
func (v *veil) rest(from Stream) []byte {
	v.mu.Lock()
	defer v.mu.Unlock()
	var b []byte
	if from == Terminal {
		b = v.echo.rest()
	}
	return v.sights[from].over(b, v.hidden(from), true)
}

// echoed reports whether the terminal has shown the frame.
func (v *veil) echoed() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.echo.seen || v.echo.drawn
}

// traces reports whether the terminal has shown what the shell runs of a frame.
func (v *veil) traces() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.echo.traces
}

// due returns the echo of which the end is yet to come.
func (v *veil) due() echo {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.echo.seen {
		return echo{}
	}
	return echo{typed: v.echo.typed}
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
