package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// ^C does not wait behind what the program does not take; behind what it takes, it
// is a key like any other.
func TestKeyboardBreaksIn(t *testing.T) {
	for _, test := range []struct {
		name string
		keys []string // what is pressed, one after the other
		left string   // what the program gets after the interrupt
	}{
		{"behind a paste", []string{"paste", "more", "\x03", "x"}, "x"},
		{"in the middle of one", []string{"paste\x03tail"}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				interrupted := make(chan struct{})
				var sent []string
				k := newKeyboard(func(b []byte) error {
					sent = append(sent, string(b))
					<-interrupted
					return nil
				})
				k.interrupt = func() { close(interrupted) } // panics if it comes twice
				go k.run(ctx)
				begun := time.Now()
				for _, keys := range test.keys {
					k.press([]byte(keys))
					synctest.Wait()
				}
				<-interrupted
				if took := time.Since(begun); took != stuckAfter {
					t.Errorf("interrupted after %v, want %v", took, stuckAfter)
				}
				synctest.Wait()
				want := test.keys[:1:1]
				if test.left != "" {
					want = append(want, test.left)
				}
				if got := strings.Join(sent, "|"); got != strings.Join(want, "|") {
					t.Errorf("sent %q, want %q", got, want)
				}
				time.Sleep(time.Minute)
				synctest.Wait()
			})
		})
	}
	for _, silent := range []bool{true, false} {
		t.Run(fmt.Sprintf("in a terminal that is full, %v", silent), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				k := newKeyboard(func([]byte) error { return nil })
				interrupts := 0
				k.interrupt = func() { interrupts++ }
				go k.run(ctx)
				for _, keys := range []string{strings.Repeat("x\r", ttyRoom), "\x03"} {
					k.press([]byte(keys))
					synctest.Wait()
				}
				if !silent {
					k.hear() // the terminal shows the key, or the program says something
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if interrupts != map[bool]int{true: 1}[silent] {
					t.Errorf("%d interrupts", interrupts)
				}
				k.next() // it has ended; the key is for another program now
				k.press([]byte("\x03"))
				synctest.Wait()
				time.Sleep(time.Minute)
				synctest.Wait()
				if interrupts != map[bool]int{true: 1}[silent] {
					t.Errorf("%d interrupts, one of a program that nothing was typed to", interrupts)
				}
			})
		})
	}
	t.Run("a program that reads", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var sent []string
			k := newKeyboard(func(b []byte) error {
				time.Sleep(stuckAfter - time.Millisecond) // slowly
				sent = append(sent, string(b))
				return nil
			})
			k.interrupt = func() { t.Error("interrupted") }
			go k.run(ctx)
			k.press([]byte("a"))
			synctest.Wait()
			k.press([]byte("b\x03"))
			time.Sleep(time.Minute)
			synctest.Wait()
			if got := strings.Join(sent, "|"); got != "a|b\x03" {
				t.Errorf("sent %q", got)
			}
		})
	})
}

// A paste into a program that does not read, and the ^C behind it.
func TestAttachInterruptsBehindPaste(t *testing.T) {
	t.Parallel()
	home := daemonHome(t)
	for _, kib := range []int{6, 12, 40} { // what fits the terminal, and what does not
		for _, how := range [][]string{{"attach", "work"}, {"exec", "--tty", "work", "echo re''ady; sleep 600"}} {
			p := atHome(t, home, append([]string{"session"}, how...)...)
			if how[0] == "attach" {
				p.expect("work:")
				p.press("echo re''ady; sleep 600\r")
			}
			p.expect("ready\r\n")
			for range kib {
				p.press(strings.Repeat("0123456789abcde\r", 64))
			}
			gatewayIn(t, home, "session", "wait", "work", "--until", "idle=300ms", "--timeout", "20s") // the terminal shows what it takes
			p.press("\x03")
			if how[0] == "attach" {
				p.expect("work:")
				p.press("\x04")
				p.leaves(0)
			} else {
				p.leaves(130)
			}
			if out := gatewayIn(t, home, "session", "exec", "work", "echo still here"); out != "still here\n" {
				t.Errorf("afterwards: %q", out)
			}
		}
	}
}
