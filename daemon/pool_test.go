package daemon

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"gateway/daemon/api"
	"gateway/gateway"
)

// A mistake while one caller connects is not the end of those who wait for the same
// connection, nor does it keep a place.
func TestPanicWhileConnecting(t *testing.T) {
	p := newPool(time.Minute)
	begun, waits := make(chan struct{}), make(chan struct{})
	who := &asker{questions: newQuestions(), send: func(api.OpenEvent) error {
		close(begun)
		<-waits
		panic("a mistake")
	}}
	target := gateway.Target{Name: "web1", Addr: "127.0.0.1", Port: 1, Identities: []gateway.Identity{{Key: "env:KEY"}}}
	var all sync.WaitGroup
	all.Go(func() {
		defer func() {
			if recover() == nil {
				t.Error("it did not panic")
			}
		}()
		ctx := context.WithValue(t.Context(), askerKey{}, who)
		_, _, _ = p.get(ctx, target)
	})
	<-begun
	ctx := waiting{t.Context(), sync.OnceFunc(func() { close(waits) })}
	if _, _, err := p.get(ctx, target); gateway.Code(err) != "internal" || gateway.Hint(err) == "" {
		t.Errorf("who waited gets %v", err)
	}
	all.Wait()
	unused, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	p.unused(unused)
	if n := p.count(); n > 0 || unused.Err() != nil {
		t.Errorf("%d connections are left, %v", n, unused.Err())
	}
}

// Who has nobody to ask does not wait for what a person is asked.
func TestConnectBesideAQuestion(t *testing.T) {
	p := newPool(time.Minute)
	target := gateway.Target{Name: "web1", Addr: "127.0.0.1", Port: 1, Identities: []gateway.Identity{{Key: "env:KEY"}}}
	get := func(ctx context.Context, who *asker) error {
		_, _, err := p.get(context.WithValue(ctx, askerKey{}, who), target)
		return err
	}
	asked, answered := make(chan struct{}), make(chan error)
	person := &asker{interactive: true, questions: newQuestions(), send: func(api.OpenEvent) error {
		close(asked)
		return nil
	}}
	leaves, leave := context.WithCancel(t.Context())
	defer leave()
	go func() { answered <- get(leaves, person) }()
	<-asked
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := get(ctx, &asker{}); err == nil || ctx.Err() != nil {
		t.Errorf("who has nobody to ask gets %v, %v", err, ctx.Err())
	}
	leave()
	if err := <-answered; err == nil {
		t.Error("connected without an answer")
	}
	if n := p.count(); n > 0 {
		t.Errorf("%d connections are left", n)
	}
}

// Who waits for another one's connection does not fail for what that one alone lacks.
func TestConnectBehindOneWhoFails(t *testing.T) {
	for name, fail := range map[string]func(*questions, api.OpenEvent) error{
		"is gone": func(*questions, api.OpenEvent) error { return errors.New("broken pipe") },
		"lacks the variable": func(q *questions, e api.OpenEvent) error {
			q.answer(e.Question.ID, api.Answer{Error: &gateway.JSONError{Code: "secret.unreadable", Message: "it is not set"}})
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPool(time.Minute)
			target := gateway.Target{Name: "web1", Addr: "127.0.0.1", Port: 1, User: "deploy", Identities: []gateway.Identity{{Key: "env:KEY"}}}
			get := func(ctx context.Context, who *asker) error {
				_, _, err := p.get(context.WithValue(ctx, askerKey{}, who), target)
				return err
			}
			asked, joined, failed := make(chan struct{}), make(chan struct{}), make(chan error)
			first := &asker{questions: newQuestions()}
			first.send = func(e api.OpenEvent) error {
				close(asked)
				<-joined
				return fail(first.questions, e)
			}
			second := &asker{questions: newQuestions()}
			second.send = func(e api.OpenEvent) error {
				second.questions.answer(e.Question.ID, api.Answer{Text: "a key"})
				return nil
			}
			go func() { failed <- get(t.Context(), first) }()
			<-asked
			waits := waiting{t.Context(), sync.OnceFunc(func() { close(joined) })}
			if err := get(waits, second); gateway.Code(err) != "tcp.refused" {
				t.Errorf("who waited gets %v, want what its own try comes to", err)
			}
			if err := <-failed; err == nil {
				t.Error("connected without a key")
			}
		})
	}
}
