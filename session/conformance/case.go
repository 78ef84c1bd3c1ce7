// Package conformance says, as plain data, what a session must do with any
// command in any shell, and runs it. The table knows nothing of machines: who
// opens sessions on one brings it to them.
//
// A case that a shell or a machine can't have by nature is reported with the
// reason. After each case a probe shows that the session still answers exactly,
// with the variable and the directory that it had.
package conformance

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"gateway/session"
)

// A Case is what is run in one session, and what must come of it.
type Case struct {
	// ID is a letter for the group and a number; see README.md.
	ID, Name string
	Needs    Need
	// Except says, by shell, why it can't have the case by its nature.
	Except map[string]string
	// Config, if there is one, is that of a session of its own.
	Config *session.Config
	Steps  []Step
}

// announces are the shells that say "[1] 4711" on stderr, whatever their
// options, for a job that they start.
var announces = []string{"ksh", "mksh"}

// Need says on which machines a case makes sense.
type Need int

// The needs of a case.
const (
	Nothing Need = iota
	// Terminal: the account gets one.
	Terminal
	// NoTerminal: it gets none.
	NoTerminal
)

// A Step is one command. "$T" stands for the scratch directory, in the text as
// a variable of the shell and in what is wanted as a placeholder.
type Step struct {
	Text string
	// With is the rest of the command. Its Text, Stdin, Output, Started and
	// Answer are made of what stands beside it here.
	With  session.Command
	Stdin *string
	// Canceled: the context has ended before the session is asked.
	Canceled bool
	// React is done in turn, each after its words have come.
	React []Reaction
	// Answers are given one by one when the command waits for input. Asked is
	// what it must have said, if that is known; one answer too many is wrong.
	Answers []string
	Asked   string
	Secret  bool
	// Unasked: the command must not be taken for one that waits.
	Unasked bool

	Stdout, Stderr, Terminal             string
	StdoutLike, StderrLike, TerminalLike *Pattern // instead of those, if set
	Verdict                              session.Verdict
	Code                                 int
	Codes                                []int // instead of Code, if set
	Signal                               string
	Error                                string // its code; empty: there is none
	Prompt                               string
	Cwd                                  string // if set
	Least, Most                          time.Duration
	Ended                                bool
	Reopens                              bool // it has ended, and is opened again
	Truncated                            bool
	StdoutBytes                          int64 // if set
	// Either: it may also have ended by itself before that.
	Either bool
	// Job: it starts jobs, which some shells announce on stderr.
	Job bool
	// Moves: the directory is another one afterwards.
	Moves bool
}

// A Reaction is what is done while a command runs.
type Reaction struct {
	After     string   // has come on any stream; empty: the start
	Shows     *Pattern // what the rows of the screen must look like by then, if set
	Type      string
	Press     string // a key
	Cancel    bool
	Interrupt session.Level // again and again, for one may be lost
}

// Failure is any status but 0.
const Failure = -1000

// A Pattern is what a stream must look like where shells differ.
type Pattern struct {
	name  string
	match func(string) bool
}

// Like wants a match of a regular expression, in which a dot is any byte.
func Like(expression string) *Pattern {
	re := regexp.MustCompile("(?s)" + expression)
	return &Pattern{"like " + expression, re.MatchString}
}

// Without wants none of the words.
func Without(words ...string) *Pattern {
	return &Pattern{fmt.Sprintf("without %q", words), func(s string) bool {
		return !slices.ContainsFunc(words, func(w string) bool { return strings.Contains(s, w) })
	}}
}

// Groups returns all cases, by group.
func Groups() []Group {
	return []Group{
		{"A", "plain commands, output and status", plain},
		{"B", "shapes of the text", text},
		{"C", "state of the session", state},
		{"D", "deadlines", deadlines},
		{"E", "interrupts and what is left behind", interrupts},
		{"F", "input", input},
		{"G", "volume and raw bytes", volume},
		{"W", "what wedges a session", wedges},
	}
}

// A Group is the cases of one letter.
type Group struct {
	Letter, Title string
	Cases         []Case
}

// Reason says why a case can't be had by a shell, or on a machine; it is empty
// where it can.
func (c Case) Reason(shell string, terminal bool) string {
	switch {
	case c.Needs == Terminal && !terminal:
		return "the account gets no terminal"
	case c.Needs == NoTerminal && terminal:
		return "the account gets a terminal"
	}
	return c.Except[shell]
}

// on makes reasons for several shells.
func on(shells, reason string) map[string]string {
	except := map[string]string{}
	for shell := range strings.SplitSeq(shells, ", ") {
		except[shell] = reason
	}
	return except
}

// ms is milliseconds, which read better in a table.
func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }
