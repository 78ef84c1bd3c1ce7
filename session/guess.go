package session

import (
	"regexp"
	"slices"
	"strings"
)

// mentions reports whether a text matches, which has one of the words if it
// does. Texts may have megabytes, and words are found fifty times as fast.
func mentions(text string, matches *regexp.Regexp, words ...string) bool {
	has := func(word string) bool { return strings.Contains(text, word) }
	return slices.ContainsFunc(words, has) && matches.MatchString(text)
}

// traces matches what makes a shell show what it runs, or run nothing.
var traces = regexp.MustCompile(`\bset(?:\s+[-+](?:[A-Za-z]*o\s+[a-z]+|[A-Za-z]+))*\s+-[A-Za-z]*[nxv]|(?:set(?:opt)?|shopt)\s[^\n;&|]*(?:xtrace|verbose|noexec)|options\[(?:xtrace|verbose|exec)|(?s:trap\s.*DEBUG)|TRAPDEBUG`)

// isTraced reports whether the shell may show what it runs, for this command
// or because of an earlier one.
func (s *Session) isTraced(text string) bool {
	s.traced = s.traced || mentions(text, traces, "set", "xtrace", "verbose", "noexec", "DEBUG", "options[exec")
	return s.traced
}

// isNoisy reports whether the shell will speak of its own while it runs a
// frame. Its first words may come when the next command is on its way already,
// hence the look at the text; a wrong guess costs nothing but time.
func (s *Session) isNoisy(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noisy = s.noisy || strings.Contains(text, "set -") || strings.Contains(text, "trap ")
	return s.noisy
}

// limits matches what may leave the shell too few descriptors for a frame file, or no room
// for its exports.
var limits = regexp.MustCompile(`\bu?limit\b`)

// isLimited reports whether the shell may have few descriptors, or write no large files,
// because of this command or an earlier one.
func (s *Session) isLimited(text string) bool {
	s.limited = s.limited || mentions(text, limits, "limit")
	return s.limited
}

// modes matches what changes the modes of the terminal.
var modes = regexp.MustCompile(`\b(stty|reset|tset)\b`)

func changesModes(text string) bool { return mentions(text, modes, "stty", "reset", "tset") }

// inputs matches what may take away what the shell reads commands from. It then leaves at
// once, and what is typed meanwhile never runs.
var inputs = regexp.MustCompile(`\bexec\b.*(<|&-)`)

func takesInput(text string) bool { return mentions(text, inputs, "exec") }

// replaces matches what may put a program in place of the shell: exec where a command begins.
var replaces = regexp.MustCompile(`(?m)(?:^|[;&|({!]|=\S*\s|\b(?:then|do|else|command|builtin)\s)\s*\\?exec\s`)

func replacesShell(text string) bool { return mentions(text, replaces, "exec") }

// mentionsTerminal reports whether a text is likely to write to the terminal.
func mentionsTerminal(text string) bool {
	return strings.Contains(text, "tty") || strings.Contains(text, "/dev/pts")
}

// silent matches the texts that start no program and write to no terminal, if
// their words mean what they mean in a fresh shell. They are quick enough for a
// prompt behind them to be felt.
var silent = regexp.MustCompile("^(?:(?:true|false|:|cd|pwd|echo|export|test|umask)(?: [^\n()`|&;<>]*)?|[A-Za-z_][A-Za-z0-9_]*=[^ \t\n()`|&;<>]*)$")
