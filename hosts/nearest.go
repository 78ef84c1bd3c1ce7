package hosts

import (
	"slices"
	"strings"
)

// nearest returns the up to three words of candidates that word most likely
// stands for, the best first.
func nearest(word string, candidates []string) []string {
	type match struct {
		word     string
		distance int
	}
	var found []match
	lower := strings.ToLower(word)
	limit := max(1, min(len(word)/3, 4))
	for _, candidate := range candidates {
		if d, ok := distance(lower, strings.ToLower(candidate), limit); ok {
			found = append(found, match{candidate, d})
		}
	}
	slices.SortStableFunc(found, func(a, b match) int { return a.distance - b.distance })
	var words []string
	for _, m := range found {
		if len(words) < 3 && !slices.Contains(words, m.word) {
			words = append(words, m.word)
		}
	}
	return words
}

// DidYouMean phrases the candidates nearest to a word as a hint, with prefix
// before each. It is empty where nothing is near.
func DidYouMean(word, prefix string, candidates []string) string {
	words := nearest(word, candidates)
	if len(words) == 0 {
		return ""
	}
	for i := range words {
		words[i] = prefix + words[i]
	}
	last := len(words) - 1
	if last == 0 {
		return "did you mean " + words[0] + "?"
	}
	return "did you mean " + strings.Join(words[:last], ", ") + " or " + words[last] + "?"
}

// distance counts the bytes to insert, delete, replace or swap with their
// neighbour to get from a to b (optimal string alignment). It gives up beyond
// limit, which keeps the search through a large inventory cheap.
func distance(a, b string, limit int) (int, bool) {
	if gap := len(a) - len(b); gap > limit || -gap > limit {
		return 0, false
	}
	var before []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next := make([]int, len(b)+1)
		next[0] = i
		best := i
		for j := 1; j <= len(b); j++ {
			replace := row[j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			next[j] = min(replace, row[j]+1, next[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], before[j-2]+1)
			}
			best = min(best, next[j])
		}
		if best > limit {
			return 0, false
		}
		before, row = row, next
	}
	return row[len(b)], row[len(b)] <= limit
}
