package config

import (
	"fmt"
	"slices"
	"strings"
)

// Error is what is wrong with a setting. Its code is config.invalid.
type Error struct {
	// File and Line say where; zero for the environment.
	File string
	Line int
	// Message is what is wrong, in lower case.
	Message string
	// Hint says what a person can do about it. It may be empty.
	Hint string
	// Err is the cause, if the system or the YAML parser said something.
	Err error
}

// Error implements error: the place, if there is one, and the message.
func (e *Error) Error() string {
	switch {
	case e.File == "":
		return e.Message
	case e.Line == 0:
		return e.File + ": " + e.Message
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Message)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ErrorCode returns the error code of the contract.
func (e *Error) ErrorCode() string { return "config.invalid" }

// ErrorHint returns the remedy, or the empty string.
func (e *Error) ErrorHint() string { return e.Hint }

// DidYouMean phrases the candidate nearest to a word as a hint. It is empty
// where nothing is near.
func DidYouMean(word string, candidates []string) string {
	best, least := "", max(1, min(len(word)/3, 4))+1
	for _, candidate := range candidates {
		if d := distance(strings.ToLower(word), candidate); d < least {
			best, least = candidate, d
		}
	}
	if best == "" {
		return ""
	}
	return "did you mean " + best + "?"
}

// distance counts the bytes to insert, delete, replace or swap with their
// neighbour to get from a to b.
func distance(a, b string) int {
	var before []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next := slices.Repeat([]int{i}, len(b)+1)
		for j := 1; j <= len(b); j++ {
			replace := row[j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			next[j] = min(replace, row[j]+1, next[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], before[j-2]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}
