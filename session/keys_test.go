package session_test

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"gateway/internal/sshdtest"
	"gateway/session"
	"gateway/transport"
)

func TestKeys(t *testing.T) {
	want := map[string]string{
		"enter": "\r", "Return": "\r", "CR": "\r", "tab": "\t", "shift-tab": "\x1b[Z", "S-Tab": "\x1b[Z", "backtab": "\x1b[Z", "BTab": "\x1b[Z",
		"esc": "\x1b", "Escape": "\x1b", "space": " ", "backspace": "\x7f", "bs": "\x7f", "delete": "\x1b[3~", "del": "\x1b[3~",
		"insert": "\x1b[2~", "ins": "\x1b[2~", "up": "\x1b[A", "down": "\x1b[B", "right": "\x1b[C", "left": "\x1b[D",
		"ArrowUp": "\x1b[A", "arrow-down": "\x1b[B", "right_arrow": "\x1b[C", "home": "\x1b[H", "end": "\x1b[F",
		"pageup": "\x1b[5~", "PgUp": "\x1b[5~", "page-up": "\x1b[5~", "pagedown": "\x1b[6~", "pgdn": "\x1b[6~", "Page Down": "\x1b[6~",
		"f1": "\x1bOP", "F2": "\x1bOQ", "f3": "\x1bOR", "f4": "\x1bOS", "f5": "\x1b[15~", "f6": "\x1b[17~", "f7": "\x1b[18~",
		"f8": "\x1b[19~", "f9": "\x1b[20~", "f10": "\x1b[21~", "F11": "\x1b[23~", "f12": "\x1b[24~",

		"ctrl-space": "\x00", "ctrl-@": "\x00", "ctrl-[": "\x1b", "ctrl-\\": "\x1c", "ctrl-]": "\x1d", "ctrl-^": "\x1e", "ctrl-_": "\x1f", "ctrl-/": "\x1f", "ctrl-?": "\x7f",
		"c-c": "\x03", "C-C": "\x03", "^c": "\x03", "^C": "\x03", "CTRL-C": "\x03", "Control-c": "\x03", "ctrl+c": "\x03", "^[": "\x1b", "^^": "\x1e", "^?": "\x7f", "^@": "\x00",

		"alt-b": "\x1bb", "alt-B": "\x1bB", "ALT-b": "\x1bb", "m-b": "\x1bb", "meta-b": "\x1bb", "a-b": "\x1bb", "alt-.": "\x1b.", "alt--": "\x1b-", "alt-1": "\x1b1", "alt-ä": "\x1bä",
		"alt-enter": "\x1b\r", "alt-backspace": "\x1b\x7f", "alt-shift-b": "\x1bB", "alt-ctrl-h": "\x1b\x08", "ctrl-alt-h": "\x1b\x08", "M-C-h": "\x1b\x08", "alt-shift-tab": "\x1b\x1b[Z",

		"ctrl-right": "\x1b[1;5C", "shift-up": "\x1b[1;2A", "alt-left": "\x1b[1;3D", "ctrl-shift-end": "\x1b[1;6F", "shift-f1": "\x1b[1;2P", "shift-f5": "\x1b[15;2~", "ctrl-delete": "\x1b[3;5~", "s-pgup": "\x1b[5;2~",

		"q": "q", "Q": "Q", "shift-q": "Q", "^": "^", "-": "-", "+": "+", "漢": "漢",
	}
	for c := 'a'; c <= 'z'; c++ {
		want["ctrl-"+string(c)] = string(c - 'a' + 1)
	}
	for name, want := range want {
		got, err := session.Keys(name)
		if err != nil || string(got) != want {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, want)
		}
	}
}

func TestKeysInOrder(t *testing.T) {
	got, err := session.Keys("esc", ":", "q", "!", "enter", "up", "ctrl-c")
	if want := "\x1b:q!\r\x1b[A\x03"; err != nil || string(got) != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	if got, err := session.Keys(); err != nil || len(got) != 0 {
		t.Errorf("no keys: got %q, %v", got, err)
	}
}

func TestApplicationKeys(t *testing.T) {
	got, err := session.KeysIn(true, "up", "down", "right", "left", "home", "end")
	if want := "\x1bOA\x1bOB\x1bOC\x1bOD\x1bOH\x1bOF"; err != nil || string(got) != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	// With modifiers, and for the other keys, the mode makes no difference.
	got, err = session.KeysIn(true, "ctrl-up", "pgup", "f1", "f5", "enter", "ctrl-a")
	if want := "\x1b[1;5A\x1b[5~\x1bOP\x1b[15~\r\x01"; err != nil || string(got) != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestUnknownKeys(t *testing.T) {
	for name, nearest := range map[string]string{
		"entr": "enter", "Entre": "enter", "excape": "escape", "pgupp": "pgup", "crtl-c": "ctrl-c", "ctl-c": "ctrl-c", "alt-entr": "alt-enter",
		"shift-tap": "shift-tab", "backspce": "backspace", "f13": "f1", "ctrl-rihgt": "ctrl-right", "C-spac": "C-space",
		"": "", "foo": "", "hello": "", "ls -la": "", ":wq": "", "\x03": "", "\n": "", "\xff": "", "ctrl-": "ctrl-a", strings.Repeat("x", 1<<20): "",
		"ctrl-1": "-", "ctrl-ä": "-", "ctrl-enter": "-", "shift-1": "-", "ctrl-shift-c": "-", "shift-enter": "-", "ctrl-漢": "-",
	} {
		got, err := session.Keys("enter", name)
		var usage *transport.Error
		if !errors.As(err, &usage) || usage.Code != "usage" || usage.Hint == "" || got != nil {
			t.Errorf("%.40q: got %q, %v, want a usage error", name, got, err)
			continue
		}
		if len(usage.Message) > 300 {
			t.Errorf("%.40q: the message has %d bytes", name, len(usage.Message))
		}
		_, hint, found := strings.Cut(usage.Message, "did you mean ")
		switch {
		case nearest == "-": // whatever is near
		case found != (nearest != ""), found && hint != nearest+"?":
			t.Errorf("%q: got %q, want %q", name, usage.Message, nearest)
		}
		if found {
			if _, err := session.Keys(strings.TrimSuffix(hint, "?")); err != nil {
				t.Errorf("%q: %q is no key either: %v", name, hint, err)
			}
		}
	}
}

// The terminfo entry that programs consult knows the keys by the same bytes.
func TestKeysOfTerminfo(t *testing.T) {
	if _, err := exec.LookPath("tput"); err != nil {
		sshdtest.Skip(t, "no tput here: install the package ncurses-bin")
	}
	for name, capability := range map[string]string{
		"up": "kcuu1", "down": "kcud1", "left": "kcub1", "right": "kcuf1", "home": "khome", "end": "kend",
		"pgup": "kpp", "pgdn": "knp", "insert": "kich1", "delete": "kdch1", "shift-tab": "kcbt",
		"shift-left": "kLFT", "shift-right": "kRIT", "shift-home": "kHOM", "shift-end": "kEND", "shift-delete": "kDC",
	} {
		compareTerminfo(t, name, capability)
	}
	for i := 1; i <= 12; i++ {
		compareTerminfo(t, fmt.Sprintf("f%d", i), fmt.Sprintf("kf%d", i))
		compareTerminfo(t, fmt.Sprintf("shift-f%d", i), fmt.Sprintf("kf%d", i+12))
		compareTerminfo(t, fmt.Sprintf("ctrl-f%d", i), fmt.Sprintf("kf%d", i+24))
	}
}

func compareTerminfo(t *testing.T, name, capability string) {
	t.Helper()
	want, err := exec.Command("tput", "-T", "xterm-256color", capability).Output()
	if err != nil {
		t.Fatalf("tput %s: %v", capability, err)
	}
	got, err := session.KeysIn(true, name) // curses programs ask for it (smkx)
	if err != nil || string(got) != string(want) {
		t.Errorf("%s: got %q, %v, want %q", name, got, err, want)
	}
}
