// Package script runs a scripted session: the steps of a YAML file, in order, in
// one live shell per host, with a result for each of them that a machine and a
// person can read.
package script

import (
	"regexp"
	"time"
)

// A Script is what a file says. It does not change once it is parsed, and holds
// no secret: only references.
type Script struct {
	// File is the name that errors and reports have for it.
	File string
	Name string
	Vars []Var
	// Secrets are references; see [hosts.ParseReference].
	Secrets []Secret
	// Steps run in order. Always runs after them, also if one failed.
	Steps, Always []Step
	// Warnings tell what is allowed and hardly meant.
	Warnings []string

	dir string // where relative paths begin
}

// A Var is a variable and its value, in which variables that stand before it may
// be named.
type Var struct {
	Name  string
	Value string
	// Wanted: it has no value of its own, and has to be given one.
	Wanted bool
	Place
}

// A Secret is a variable whose value is nowhere shown.
type Secret struct {
	Name      string
	Reference string
	Place
}

// A Place is where something stands in the file, counted from 1.
type Place struct{ Line, Column int }

// A Step is one text for the shell, or files to copy, and what is expected of
// it. In Name, Cwd, Env, Sudo.User, the expected texts and what is sent,
// ${{ NAME }} stands for a variable.
type Step struct {
	Place
	Name string
	Run  string
	// RunLine is the line of the file that Run begins at. Folded: the further
	// lines of Run are not those of the file.
	RunLine int
	Folded  bool
	// Copy is what the step copies in place of running a text; nil: nothing.
	Copy *Copy

	Timeout    time.Duration
	Expect     Expect
	Register   string
	When       string
	Until      string
	Retry      Retry
	Idempotent bool
	// Continue: a failure does not end the script.
	Continue  bool
	KeepGoing bool
	Answers   []Answer
	Sudo      Sudo
	Cwd       string
	Env       map[string]string

	whenAt, untilAt Place
	unnamed         bool // Name is the first line of Run, where ${{ NAME }} stands for nothing
}

// Expect is what a step has to leave. The zero value wants exit status 0.
type Expect struct {
	Exit           []int
	Stdout, Stderr Match
}

// A Match is what is expected of a stream. The zero value accepts anything.
type Match struct {
	Contains string  `json:"contains,omitempty"`
	Matches  string  `json:"matches,omitempty"`
	Equals   *string `json:"equals,omitempty"`
}

// Retry says how often a step is tried again, and how long after the last time.
type Retry struct {
	Times int
	Delay time.Duration
}

// An Answer is typed when a command waits behind a prompt.
type Answer struct {
	Prompt *regexp.Regexp
	Text   string
	Secret string // the name of one, instead of Text
}

// Sudo says as whom a step runs. An empty User is what the inventory says, else
// root.
type Sudo struct {
	On   bool
	User string
}

// LineOf returns the line of the file for a line of Run.
func (s *Step) LineOf(line int) int {
	if s.Folded {
		return s.RunLine
	}
	return s.RunLine + line - 1
}
