package hosts

import (
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
)

// maxNames is how many names one range, and one inventory, may stand for. It
// bounds what a typo like web[1-10000000] costs.
const maxNames = 1 << 16

// maxBrackets is how many ranges one word may hold.
const maxBrackets = 8

// A nameRange stands for the names that a word with ranges spells out, such as
// rack[1-2]-web[01-20,30]. It alternates literal text and spans.
type nameRange struct {
	literals []string // one more than brackets
	brackets [][]span
}

// A span is from–to of one bracket, padded with zeros to width.
type span struct{ from, to, width int }

func (s span) count() int { return s.to - s.from + 1 }

// parseRange parses a word with or without ranges; it does not look at the
// text outside the brackets.
func parseRange(word string) (nameRange, error) {
	var r nameRange
	total := 1
	for {
		before, rest, ok := strings.Cut(word, "[")
		if strings.Contains(before, "]") {
			return r, errors.New("a ] without [")
		}
		r.literals = append(r.literals, before)
		if !ok {
			return r, nil
		}
		if len(r.brackets) == maxBrackets {
			return r, fmt.Errorf("more than %d ranges in one word", maxBrackets)
		}
		inside, after, ok := strings.Cut(rest, "]")
		if !ok {
			return r, errors.New("a [ without ]")
		}
		spans, count, err := parseBracket(inside)
		if err != nil {
			return r, err
		}
		// Both factors are at most maxNames: the product does not overflow.
		if total *= count; total > maxNames {
			return r, fmt.Errorf("the range is too large: more than %d names", maxNames)
		}
		r.brackets = append(r.brackets, spans)
		word = after
	}
}

func parseBracket(inside string) (spans []span, count int, err error) {
	for item := range strings.SplitSeq(inside, ",") {
		s, err := parseSpan(item)
		if err != nil {
			return nil, 0, err
		}
		if s.count() > maxNames || count+s.count() > maxNames {
			return nil, 0, fmt.Errorf("the range is too large: more than %d names", maxNames)
		}
		count += s.count()
		spans = append(spans, s)
	}
	return spans, count, nil
}

// maxDigits keeps the numbers of a range well inside an int64.
const maxDigits = 17

func parseSpan(item string) (span, error) {
	low, high, isSpan := strings.Cut(item, "-")
	if !isSpan {
		high = low
	}
	from, ok1 := parseDigits(low)
	to, ok2 := parseDigits(high)
	switch {
	case !ok1 || !ok2:
		return span{}, fmt.Errorf("[%s] is not a range of numbers such as [1-12] or [01-03,07]", brief(item))
	case from > to:
		return span{}, fmt.Errorf("[%s] counts downwards", item)
	}
	s := span{from: from, to: to}
	if padded(low) {
		s.width = len(low)
	}
	if padded(high) && len(high) != s.width {
		return span{}, fmt.Errorf("[%s] pads its two ends differently", item)
	}
	return s, nil
}

func parseDigits(s string) (int, bool) {
	if s == "" || len(s) > maxDigits || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	return n, err == nil
}

// padded reports whether a number is written with leading zeros.
func padded(digits string) bool { return len(digits) > 1 && digits[0] == '0' }

// count is how many names there are.
func (r nameRange) count() int {
	total := 1
	for _, spans := range r.brackets {
		sum := 0
		for _, s := range spans {
			sum += s.count()
		}
		total *= sum
	}
	return total
}

// names yields the names in order, the last bracket counting fastest.
func (r nameRange) names() iter.Seq[string] {
	return func(yield func(string) bool) { r.spell("", 0, yield) }
}

func (r nameRange) spell(prefix string, at int, yield func(string) bool) bool {
	prefix += r.literals[at]
	if at == len(r.brackets) {
		return yield(prefix)
	}
	for _, s := range r.brackets[at] {
		for n := s.from; n <= s.to; n++ {
			if !r.spell(prefix+fmt.Sprintf("%0*d", s.width, n), at+1, yield) {
				return false
			}
		}
	}
	return true
}
