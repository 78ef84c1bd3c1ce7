package session

import (
	"sync"

	"gateway/internal/screen"
	"gateway/transport"
)

// Screen is what a person would see of a command on the terminal.
type Screen = screen.Snapshot

// display keeps the screen of the last command with TTY.
type display struct {
	mu     sync.Mutex // guards screen
	screen *screen.Screen
}

// clear begins with an empty screen.
func (d *display) clear(size transport.Size) {
	d.mu.Lock()
	defer d.mu.Unlock()
	size = size.OrDefault()
	d.screen = screen.New(size.Rows, size.Cols)
}

func (d *display) write(b []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.screen != nil {
		_, _ = d.screen.Write(b) // never fails
	}
}

func (d *display) resize(size transport.Size) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.screen != nil {
		size = size.OrDefault()
		d.screen.Resize(size.Rows, size.Cols)
	}
}

func (d *display) alternate() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.screen != nil && d.screen.Snapshot().Alternate
}

// Screen returns what the command with TTY that runs, or ran last, shows. It is
// empty where there was none.
func (s *Session) Screen() Screen {
	s.display.mu.Lock()
	defer s.display.mu.Unlock()
	if s.display.screen == nil {
		return Screen{}
	}
	return s.display.screen.Snapshot()
}

// Press presses named keys, as the program on the terminal wants them: an arrow
// key has two forms. See [Keys] for the names.
func (s *Session) Press(names ...string) error {
	b, err := KeysIn(s.Screen().ApplicationCursor, names...)
	if err != nil {
		return err
	}
	_, err = s.Write(b)
	return err
}
