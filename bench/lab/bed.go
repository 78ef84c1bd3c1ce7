package lab

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
)

// A bed is the test that sshdtest and netsim want to belong to, where there is
// none. What is fatal to it is the error of make.
type bed struct {
	testing.TB // nil: its private method is all that is wanted of it
	dir        string
	mu         sync.Mutex // guards what follows
	cleanups   []func()
	failed     bool
}

type fatal string

// try runs what may be fatal to a test.
func try[T any](f func() T) (value T, err error) {
	defer func() {
		if r := recover(); r != nil {
			text, ok := r.(fatal)
			if !ok {
				panic(r)
			}
			err = fmt.Errorf("lab: %s", string(text))
		}
	}()
	return f(), nil
}

func (b *bed) Helper()      {}
func (b *bed) Failed() bool { return b.failed }

func (b *bed) Fatal(args ...any) {
	b.failed = true
	panic(fatal(fmt.Sprint(args...)))
}

func (b *bed) Fatalf(format string, args ...any) { b.Fatal(fmt.Sprintf(format, args...)) }
func (b *bed) Skipf(format string, args ...any)  { b.Fatal(fmt.Sprintf(format, args...)) }

func (b *bed) Logf(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

func (b *bed) TempDir() string {
	dir, err := os.MkdirTemp(b.dir, "")
	if err != nil {
		b.Fatal(err)
	}
	return dir
}

func (b *bed) Cleanup(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cleanups = append(b.cleanups, f)
}

// close does what a test's end does.
func (b *bed) close() {
	b.mu.Lock()
	all := b.cleanups
	b.cleanups = nil
	b.mu.Unlock()
	for _, f := range slices.Backward(all) {
		f()
	}
}
