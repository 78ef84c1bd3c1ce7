package ends_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gateway/internal/ends"
)

func TestEnds(t *testing.T) {
	for _, tt := range []struct {
		name       string
		head, tail int
		text       string
		first      string
		last       string
		whole      bool
	}{
		{"nothing", 3, 3, "", "", "", true},
		{"less than both", 3, 3, "abcd", "abcd", "", true},
		{"as much as both", 3, 3, "abcdef", "abcdef", "", true},
		{"a byte more", 3, 3, "abcdefg", "abc", "efg", false},
		{"much more", 3, 2, strings.Repeat("x", 1000) + "yz", "xxx", "yz", false},
		{"a head alone", 3, 0, "abcdefghijkl", "abc", "", false},
		{"a tail alone", 0, 3, "abcdefghijkl", "", "jkl", false},
		{"cuts in characters", 3, 3, "aäö...äöz", "aä", "öz", false},
		{"bytes that are none", 3, 3, "a\xff\xff....\xff\xffz", "a\xff\xff", "\xff\xffz", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for size := 1; size <= len(tt.text)+1; size++ {
				e := ends.Ends{Head: tt.head, Tail: tt.tail}
				for piece := range slices.Chunk([]byte(tt.text), size) {
					e.Add(piece)
				}
				first, last := e.Parts()
				if string(first) != tt.first || string(last) != tt.last || e.Whole() != tt.whole || e.Total() != int64(len(tt.text)) {
					t.Errorf("in pieces of %d: %q, %q, whole %v, total %d", size, first, last, e.Whole(), e.Total())
				}
				if all := e.Bytes(); string(all) != tt.first+tt.last {
					t.Errorf("in pieces of %d: Bytes = %q", size, all)
				}
			}
		})
	}
}

// TestAddAfterBytes reads what there is between any two pieces: that is a copy, and
// takes nothing away.
func TestAddAfterBytes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		e := ends.Ends{Head: random.IntN(20), Tail: random.IntN(20)}
		var whole []byte
		for range 10 {
			piece := make([]byte, random.IntN(30))
			for i := range piece {
				piece[i] = byte('a' + random.IntN(26))
			}
			e.Add(piece)
			whole = append(whole, piece...)
			want := whole
			if len(whole) > e.Head+e.Tail {
				want = slices.Concat(whole[:e.Head], whole[len(whole)-e.Tail:])
			}
			got := e.Bytes()
			if !bytes.Equal(got, want) {
				t.Fatalf("head %d, tail %d of %q: %q, want %q", e.Head, e.Tail, whole, got, want)
			}
			clear(got)
		}
	}
}

func TestMemoryIsBounded(t *testing.T) {
	e := ends.Ends{Head: 1000, Tail: 1000}
	piece := make([]byte, 333)
	for range 10 { // grown by now
		e.Add(piece)
	}
	if n := testing.AllocsPerRun(1000, func() { e.Add(piece) }); n != 0 {
		t.Errorf("%v allocations for a piece", n)
	}
}
