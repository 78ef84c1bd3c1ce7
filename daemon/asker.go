package daemon

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"

	"gateway/daemon/api"
	"gateway/gateway"
)

// An asker is the caller of a request, as it can be asked while the request
// lasts.
type asker struct {
	interactive bool
	questions   *questions
	send        func(api.OpenEvent) error // may be called concurrently
}

type askerKey struct{}

var errNobody = errors.New("nobody to ask: the request that opened the session is over")

// askerOf returns who waits for what ctx belongs to. Where no request waits that is
// nobody to ask.
func askerOf(ctx context.Context) *asker {
	if who, ok := ctx.Value(askerKey{}).(*asker); ok {
		return who
	}
	return &asker{}
}

// ask puts a question to the person at the caller's side.
func (a *asker) ask(ctx context.Context, q gateway.Question) (string, error) {
	return a.put(ctx, api.Question{Question: q})
}

// secret has the caller resolve a reference.
func (a *asker) secret(ctx context.Context, reference string) (string, error) {
	return a.put(ctx, api.Question{Secret: reference})
}

func (a *asker) warn(message string) {
	if a.send != nil {
		_ = a.send(api.OpenEvent{Warning: message}) // a caller that is gone needs none
	}
}

// put sends a question and waits for the answer.
func (a *asker) put(ctx context.Context, q api.Question) (string, error) {
	if a.send == nil {
		return "", errNobody
	}
	id, answers := a.questions.add()
	defer a.questions.remove(id)
	q.ID = id
	if err := a.send(api.OpenEvent{Question: &q}); err != nil {
		return "", errNobody
	}
	select {
	case answer := <-answers:
		return answer.Text, answer.Error.Err()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// questions are those that wait for an answer.
type questions struct {
	mu   sync.Mutex
	open map[string]chan api.Answer
}

func newQuestions() *questions { return &questions{open: map[string]chan api.Answer{}} }

// add returns an id that nobody can guess.
func (q *questions) add() (id string, answers <-chan api.Answer) {
	id = rand.Text()
	channel := make(chan api.Answer, 1)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.open[id] = channel
	return id, channel
}

func (q *questions) remove(id string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.open, id)
}

// answer reports whether the question was still open. It is answered once.
func (q *questions) answer(id string, answer api.Answer) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	channel, ok := q.open[id]
	if ok {
		delete(q.open, id)
		channel <- answer
	}
	return ok
}
