package ssh

import (
	"context"
	"maps"
	"sync"
)

// A memory has what a person has typed to get into a machine on which each program needs a
// connection of its own; see [conn.apart]. It lives as long as the transport, and in its
// memory alone. A one-time code is never kept.
type memory struct {
	ask func(context.Context, Question) (string, error)

	mu      sync.Mutex
	answers map[Question]string // guarded by mu: what has opened a connection
	typed   map[Question]string // guarded by mu: the same for the one that is being opened
	asks    bool                // guarded by mu: a question came whose answer is not kept
}

// answer is [Config.Ask]. Each answer is used once a connection: a wrong one is asked for.
func (m *memory) answer(ctx context.Context, q Question) (string, error) {
	keeps := q.Kind == AskPassword || q.Kind == AskPassphrase
	m.mu.Lock()
	answer, known := m.answers[q]
	delete(m.answers, q)
	m.asks = m.asks || !keeps
	m.mu.Unlock()
	if !known {
		var err error
		if answer, err = m.ask(ctx, q); err != nil {
			return "", err
		}
	}
	if keeps {
		m.mu.Lock()
		m.typed[q] = answer
		m.mu.Unlock()
	}
	return answer, nil
}

// settle keeps what has opened a connection, or else forgets all. It reports whether the next
// connection asks nobody.
func (m *memory) settle(keep bool) (silent bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if silent = keep && !m.asks; silent {
		maps.Copy(m.answers, m.typed)
	} else {
		clear(m.answers)
	}
	clear(m.typed)
	m.asks = false
	return silent
}
