package conformance

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"gateway/session"
)

// compare returns in which ways a result is not what was wanted.
func (s Step) compare(r session.Result, err error, dir string) (wrong []string) {
	complain := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	verdict := s.Verdict
	if verdict == "" {
		verdict = session.Exited
	}
	if s.Either && r.Verdict == session.Exited {
		verdict, s.Error = session.Exited, ""
	}
	codes := s.Codes
	if codes == nil {
		codes = []int{s.Code}
	}
	if r.Verdict != verdict || r.Signal != s.Signal || r.Ended != s.Ended ||
		!slices.Contains(codes, r.ExitCode) && (!slices.Contains(codes, Failure) || r.ExitCode <= 0) {
		complain("%s %d %s, ended %v; want %s %d %s, ended %v; stderr %.300q, terminal %.300q, %v",
			r.Verdict, r.ExitCode, r.Signal, r.Ended, verdict, codes, s.Signal, s.Ended, r.Stderr, r.Terminal, err)
	}
	stream := func(name string, got []byte, want string, like *Pattern) {
		if what := unlike(string(got), strings.ReplaceAll(want, "$T", dir), like); what != "" {
			complain("%s %s", name, what)
		}
	}
	stream("stdout", r.Stdout, s.Stdout, s.StdoutLike)
	stream("stderr", r.Stderr, s.Stderr, s.StderrLike)
	if s.TerminalLike != nil || s.Terminal != "" || !notices.match(string(r.Terminal)) {
		stream("terminal", r.Terminal, s.Terminal, s.TerminalLike)
	}
	if got := code(err); got != s.Error {
		complain("error %q (%v), want %q", got, err, s.Error)
	}
	if r.Prompt != s.Prompt && len(s.Answers) == 0 {
		complain("prompt %q, want %q", r.Prompt, s.Prompt)
	}
	if want := strings.ReplaceAll(s.Cwd, "$T", dir); want != "" && r.Cwd != want {
		complain("directory %q, want %q", r.Cwd, want)
	}
	if r.Truncated != s.Truncated || s.StdoutBytes != 0 && r.StdoutBytes != s.StdoutBytes {
		complain("%d bytes in all, truncated %v; want %d, %v", r.StdoutBytes, r.Truncated, s.StdoutBytes, s.Truncated)
	}
	if r.Duration < s.Least || s.Most > 0 && r.Duration > s.Most {
		complain("it took %v, want %v to %v", r.Duration, s.Least, s.Most)
	}
	return wrong
}

// unlike says what a stream has, if that is not what was wanted: the text, or in its
// place the pattern.
func unlike(got, want string, like *Pattern) string {
	switch {
	case like != nil && !like.match(got):
		return fmt.Sprintf("%.600q, want it %s", got, like.name)
	case like == nil && got != want:
		at := 0
		for at < min(len(got), len(want)) && got[at] == want[at] {
			at++
		}
		return fmt.Sprintf("of %d bytes %.600q, want %d bytes %.600q (they part at %d)", len(got), got, len(want), want, at)
	}
	return ""
}

// notices are what a shell says on the terminal of its jobs, when it pleases.
var notices = Like(`\A\n?(\[\d+\][^\n]*(\n|\z))*\z`)

func code(err error) string {
	var coded interface{ ErrorCode() string }
	switch {
	case err == nil:
		return ""
	case errors.As(err, &coded):
		return coded.ErrorCode()
	}
	return err.Error()
}
