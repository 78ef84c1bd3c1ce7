package ends_test

import (
	"bytes"
	"strings"
	"testing"

	"gateway/internal/ends"
)

// memory is a spool that counts.
type memory struct {
	bytes.Buffer
	closed int
}

func (m *memory) Close() error { m.closed++; return nil }
func (m *memory) Name() string { return "memory" }

func TestSpooled(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		data       string
		spooled    bool
	}{
		{"nothing", "", "", false},
		{"as much as the limit", "0123456789", "0123456789", false},
		{"a byte more", "0123456789a", "012346789a", true},
		{"much more", strings.Repeat("x", 995) + "01234", "xxxxx01234", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, size := range []int{1, 3, 1000} {
				var spool memory
				opened := 0
				s := ends.NewSpooled(10, func() ends.Spool { opened++; return &spool })
				for at := 0; at < len(tt.text); at += size {
					if !s.Add([]byte(tt.text[at:min(at+size, len(tt.text))])) {
						t.Error("bytes are refused")
					}
				}
				if got := string(s.Bytes()); got != tt.data || s.Total() != int64(len(tt.text)) || s.Unfinished() != (tt.text != "") {
					t.Errorf("in pieces of %d: %q of %d, unfinished %v", size, got, s.Total(), s.Unfinished())
				}
				s.Finish()
				if s.Add([]byte("late")) {
					t.Error("what comes late is taken")
				}
				end, want := s.Finish(), ends.Stream{Total: int64(len(tt.text)), Truncated: tt.spooled}
				if tt.spooled {
					want.Spool = "memory"
				}
				if string(end.Data) != tt.data || end.Total != want.Total || end.Truncated != want.Truncated || end.Spool != want.Spool {
					t.Errorf("in pieces of %d: %+v, want %q and %+v", size, end, tt.data, want)
				}
				if whole := spool.String(); tt.spooled && (opened != 1 || spool.closed != 1 || whole != tt.text) || !tt.spooled && opened != 0 {
					t.Errorf("in pieces of %d: the spool was opened %d times, closed %d times, and has %d bytes", size, opened, spool.closed, len(whole))
				}
			}
		})
	}
}

// TestSpooledWithout: nobody has a spool, or it can't be had.
func TestSpooledWithout(t *testing.T) {
	for name, open := range map[string]func() ends.Spool{"none": nil, "refused": func() ends.Spool { return nil }} {
		s := ends.NewSpooled(4, open)
		s.Add([]byte("0123456789"))
		if end := s.Finish(); string(end.Data) != "0189" || !end.Truncated || end.Spool != "" {
			t.Errorf("%s: %+v", name, end)
		}
	}
}
