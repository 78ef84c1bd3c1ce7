package hosts

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Selector is a parsed expression that picks hosts, such as
// "@staging,&tag:web,!web03". The zero value picks nothing.
//
// Its grammar:
//
//	selector = term { "," term }
//	term     = [ "!" | "&" ] pattern
//	pattern  = "all" | "@" group | "tag:" tag | run | word
//	run      = "run:" id [ "/" outcome { "," outcome } ]
//	word     = a host name, which may have ranges [01-20,30], and * and ?
//
// Terms work from left to right: a plain one adds hosts, "!" removes them, "&"
// keeps only them. The first one has to add.
//
// A comma inside the brackets of a range belongs to the range. After a run
// with an outcome, further outcomes belong to the run: a host that is called
// "failed" has to stand before it. The outcomes are ok, failed, timed_out,
// interrupted, not_started, unknown and skipped; which hosts they stand for is
// for [Lookup] to say.
type Selector struct{ terms []term }

// outcomes are the words that may follow the slash of a run term.
var outcomes = []string{"ok", "failed", "timed_out", "interrupted", "not_started", "unknown", "skipped"}

type kind int

const (
	kindAll kind = iota
	kindGroup
	kindTag
	kindRun
	kindName  // one host
	kindRange // ranges without wildcards: names spelled the short way
	kindGlob  // wildcards, perhaps with ranges
)

type term struct {
	op       byte // 0, '!' or '&'
	kind     kind
	text     string    // what it is about: a name, pattern, group, tag or run
	spelled  nameRange // what a range or a pattern stands for
	outcomes []string  // of a run; none for all its hosts
}

// maxSelector bounds a selector's text.
const maxSelector = 1 << 20

// ParseSelector parses a selector. It knows the grammar only: whether the
// names exist turns out in [Inventory.Select]. The error is an *[Error] with
// the code selector.invalid.
func ParseSelector(s string) (Selector, error) {
	if len(s) > maxSelector {
		return Selector{}, invalidSelector("", "selector longer than %d bytes", maxSelector)
	}
	var sel Selector
	for _, word := range splitTerms(s) {
		word = strings.Trim(word, " \t")
		if word == "" {
			return Selector{}, invalidSelector("quote the selector: & and ! mean something to the shell", "empty term in selector %s", brief(s))
		}
		if last := len(sel.terms) - 1; last >= 0 && sel.terms[last].outcomes != nil && slices.Contains(outcomes, word) {
			sel.terms[last].outcomes = append(sel.terms[last].outcomes, word)
			continue
		}
		t, err := parseTerm(word)
		if err != nil {
			if wrong, ok := errors.AsType[*Error](err); ok && strings.ContainsAny(word[1:], " \t&!") {
				wrong.Hint = "terms are separated by commas: @web,&tag:eu,!web03"
			}
			return Selector{}, err
		}
		if len(sel.terms) == 0 && t.op != 0 {
			return Selector{}, invalidSelector("start with what to choose from: all,"+brief(word), "selector starts with %c", t.op)
		}
		sel.terms = append(sel.terms, t)
	}
	return sel, nil
}

func invalidSelector(hint, format string, args ...any) *Error {
	return &Error{Code: codeSelector, Message: fmt.Sprintf(format, args...), Hint: hint}
}

// splitTerms splits at the commas outside brackets.
func splitTerms(s string) []string {
	var words []string
	start, inside := 0, false
	for i := range len(s) {
		switch s[i] {
		case '[':
			inside = true
		case ']':
			inside = false
		case ',':
			if !inside {
				words = append(words, s[start:i])
				start = i + 1
			}
		}
	}
	return append(words, s[start:])
}

func parseTerm(word string) (term, error) {
	var t term
	rest := word
	if rest[0] == '!' || rest[0] == '&' {
		t.op, rest = rest[0], strings.TrimLeft(rest[1:], " \t")
		if rest == "" {
			return t, invalidSelector("quote the selector: & and ! mean something to the shell", "nothing after %c", t.op)
		}
	}
	prefix, after, hasColon := strings.Cut(rest, ":")
	switch {
	case rest == "all":
		t.kind = kindAll
		return t, nil
	case rest[0] == '@':
		t.kind, t.text = kindGroup, rest[1:]
		if !nameForm.MatchString(t.text) {
			return t, invalidSelector("", "%s is not a group's name", brief(rest))
		}
		return t, nil
	case hasColon && prefix == "tag":
		t.kind, t.text = kindTag, after
		if !tagForm.MatchString(after) {
			return t, invalidSelector("", "%s is not a tag", brief(after))
		}
		return t, nil
	case hasColon && prefix == "run":
		return parseRun(t, after)
	case hasColon:
		return t, invalidSelector("only tag: and run: have a colon", "%s is not a host, a pattern or a tag", brief(rest))
	case strings.Contains(rest, "@"):
		return t, invalidSelector("the user has a flag of its own: --user", "%s is not a host name", brief(rest))
	}
	return parseWord(t, rest)
}

func parseRun(t term, s string) (term, error) {
	id, outcome, hasOutcome := strings.Cut(s, "/")
	t.kind, t.text = kindRun, id
	if !nameForm.MatchString(id) {
		return t, invalidSelector("run:last/failed, for instance", "%s is not the id of a run", brief(id))
	}
	if !hasOutcome {
		return t, nil
	}
	if !slices.Contains(outcomes, outcome) {
		hint := cmp.Or(DidYouMean(outcome, "", outcomes), "one of "+strings.Join(outcomes, ", "))
		return t, invalidSelector(hint, "%s is not an outcome", brief(outcome))
	}
	t.outcomes = []string{outcome}
	return t, nil
}

// parseWord parses a host name, a range or a glob.
func parseWord(t term, s string) (term, error) {
	pattern, err := parseRange(s)
	if err != nil {
		return t, invalidSelector("", "%s: %v", brief(s), err)
	}
	t.text, t.spelled = s, pattern
	switch {
	case strings.ContainsAny(s, "*?"):
		t.kind = kindGlob
	case len(pattern.brackets) == 0:
		t.kind = kindName
	default:
		t.kind = kindRange
	}
	// The names of a range differ in digits only, so that one stands for all.
	for name := range pattern.names() {
		example := strings.NewReplacer("*", "x", "?", "x").Replace(name)
		if !nameForm.MatchString(example) {
			return t, invalidSelector("letters, digits and . _ -, starting with a letter or digit", "%s is not a host name", brief(s))
		}
		break
	}
	return t, nil
}

// Host returns the name if the selector is one plain host name and nothing
// else. The form decides, not how many hosts match today.
func (s Selector) Host() (name string, ok bool) {
	if len(s.terms) != 1 || s.terms[0].kind != kindName {
		return "", false
	}
	return s.terms[0].text, true
}

// String returns the selector in a form that [ParseSelector] parses to the
// same.
func (s Selector) String() string {
	var words []string
	for _, t := range s.terms {
		words = append(words, t.String())
	}
	return strings.Join(words, ",")
}

func (t term) String() string {
	op := ""
	if t.op != 0 {
		op = string(t.op)
	}
	return op + t.pattern()
}

// pattern is the term without its operator.
func (t term) pattern() string {
	switch t.kind {
	case kindAll:
		return "all"
	case kindGroup:
		return "@" + t.text
	case kindTag:
		return "tag:" + t.text
	case kindRun:
		if t.outcomes == nil {
			return "run:" + t.text
		}
		return "run:" + t.text + "/" + strings.Join(t.outcomes, ",")
	}
	return t.text
}
