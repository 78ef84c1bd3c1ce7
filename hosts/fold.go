package hosts

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"gateway/internal/phrase"
)

// FoldNames writes names the short way, such as "web[01-03,07],db1". It is the
// inverse of range expansion: as a [Selector] the text stands for the same set
// of hosts. What folds together stands where its first name stood, in order of
// its numbers; a name that comes twice is written once.
func FoldNames(names []string) string { return strings.Join(Fold(names), ",") }

// Fold returns the terms of [FoldNames].
func Fold(names []string) []string {
	names = phrase.Unique(names)
	shared := make(map[frame]int)
	for _, name := range names {
		for f := range framesOf(name) {
			shared[f]++
		}
	}
	var order []frame
	numbers := make(map[frame][]string)
	for _, name := range names {
		f, number := bestFrame(name, shared)
		if numbers[f] == nil {
			order = append(order, f)
		}
		numbers[f] = append(numbers[f], number)
	}
	var words []string
	for _, f := range order {
		for part := range slices.Chunk(numbers[f], maxNames) {
			words = append(words, f.before+foldNumbers(part)+f.after)
		}
	}
	return words
}

// A frame is a name without one of its numbers, or a whole one: web is not what
// is left of web1.
type frame struct {
	before, after string
	whole         bool
}

// framesOf yields every frame of a name with the number that it leaves out,
// from left to right.
func framesOf(name string) iter.Seq2[frame, string] {
	return func(yield func(frame, string) bool) {
		for end := 0; end < len(name); end++ {
			start := end
			for end < len(name) && '0' <= name[end] && name[end] <= '9' {
				end++
			}
			if end == start || end-start > maxDigits {
				continue
			}
			if !yield(frame{before: name[:start], after: name[end:]}, name[start:end]) {
				return
			}
		}
	}
}

// bestFrame returns the frame that name shares with most others, so that of
// web01.eu1.example.com the number that varies is folded; the last one of
// equals. A name that shares none is a frame of its own.
func bestFrame(name string, shared map[frame]int) (best frame, number string) {
	best, most := frame{before: name, whole: true}, 2
	for f, digits := range framesOf(name) {
		if shared[f] >= most {
			best, number, most = f, digits, shared[f]
		}
	}
	return best, number
}

// foldNumbers writes numbers as one bracket, or as what it is if there is just
// one.
func foldNumbers(numbers []string) string {
	if len(numbers) == 1 {
		return numbers[0]
	}
	type number struct {
		digits string
		value  int
	}
	sorted := make([]number, len(numbers))
	for i, digits := range numbers {
		value, _ := strconv.Atoi(digits) // at most maxDigits digits
		sorted[i] = number{digits, value}
	}
	slices.SortFunc(sorted, func(a, b number) int {
		return cmp.Or(cmp.Compare(a.value, b.value), cmp.Compare(len(a.digits), len(b.digits)))
	})
	var items []string
	for i := 0; i < len(sorted); {
		from, width := sorted[i], 0
		if padded(from.digits) {
			width = len(from.digits)
		}
		last := i
		for last+1 < len(sorted) && sorted[last+1].digits == fmt.Sprintf("%0*d", width, sorted[last].value+1) {
			last++
		}
		items = append(items, foldSpan(from.digits, sorted[last].digits))
		i = last + 1
	}
	return "[" + strings.Join(items, ",") + "]"
}

func foldSpan(from, to string) string {
	if from == to {
		return from
	}
	return from + "-" + to
}
