// Package statements splits the text of a shell script into its top-level
// statements, so that each can be run on its own in one session.
package statements

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// A Statement is one top-level statement of a text: a command line, a whole
// if, a function's definition. What follows it up to the next one, a comment
// say, is part of it.
type Statement struct {
	Text string
	// Line is where it begins in the whole text, counted from 1.
	Line int
}

// An Error says why a text can't be split, or no further.
type Error struct {
	// Line and Column are where, counted from 1; 0: about no one place.
	Line, Column int
	// Message is the rest of it.
	Message string
}

// Error implements error.
func (e *Error) Error() string {
	switch {
	case e.Line == 0:
		return e.Message
	case e.Column == 0:
		return fmt.Sprintf("line %d: %s", e.Line, e.Message)
	}
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Message)
}

// What is not given to the parser, which recurses with its input and would end
// the process where the stack does.
const (
	maxText    = 128 << 10
	maxOpeners = 5_000
)

// Split splits a text as shell reads it, which is a name or a path; empty means
// bash. Run one after the other in one shell, the statements do what the text does.
// One that asks what the one before was like ($PIPESTATUS, $_) is not parted from
// that.
//
// A text that can't be split is returned whole, as one statement, with an error
// that says why, an *[Error]. So is the rest of a text, from where it turns its own streams
// elsewhere: the statements before that are on their own. A text without a statement
// gives none.
func Split(text, shell string) ([]Statement, error) {
	whole := []Statement{{Text: text, Line: 1}}
	if err := measure(text); err != nil {
		return whole, err
	}
	file, err := parse(text, shell)
	if err != nil {
		return whole, parseError(text, err)
	}
	bodies := hereDocuments(text, file)
	pieces := make([]Statement, 0, len(file.Stmts))
	line, at := 1, 0
	for i, stmt := range file.Stmts {
		// Not Pos.Line: it has room for 2¹⁸ lines only.
		start, end := offset(stmt), len(text)
		if i+1 < len(file.Stmts) {
			end = offset(file.Stmts[i+1])
		}
		line += strings.Count(text[at:start], "\n")
		at = start
		own, tangled := untangle(text, start, end, bodies)
		if tangled && !same(stmt, own, shell) {
			return whole, &Error{Line: line, Message: "a statement can't be told from the here-documents around it"}
		}
		if i > 0 && (err != nil || asksBack.MatchString(own)) {
			pieces[len(pieces)-1].Text += own
			continue
		}
		pieces = append(pieces, Statement{own, line})
		if redirects(stmt) && i+1 < len(file.Stmts) {
			err = &Error{Line: line, Message: "exec redirects what follows"}
		}
	}
	return pieces, err
}

// Check returns why shell, which is that of [Split], can't read a text, an *[Error];
// nil if it can.
func Check(text, shell string) error {
	if err := measure(text); err != nil {
		return err
	}
	if _, err := parse(text, shell); err != nil {
		return parseError(text, err)
	}
	return nil
}

// Incomplete reports whether a text is the beginning of one: with more lines behind
// it, it could be read by shell, which is that of [Split]. A text that is wrong
// whatever follows is not, nor is one that is not given to the parser.
func Incomplete(text, shell string) bool {
	if measure(text) != nil {
		return false
	}
	// Without the end of its line, a here-document counts as wrong, and a lone "for" as
	// a beginning.
	_, err := parse(text+"\n", shell)
	// That of a quoted word, as in <<'X', is told without the mark of a beginning.
	wrong, ok := errors.AsType[syntax.ParseError](err)
	return ok && (wrong.Incomplete || strings.HasPrefix(wrong.Text, "unclosed here-document"))
}

// asksBack matches what a shell sets anew with each command: between two statements
// stand others.
var asksBack = regexp.MustCompile(`PIPESTATUS|pipestatus|\$(?:_(?:\W|$)|\{_\W)`)

// redirects reports whether a statement turns the shell's own stdin, stdout or stderr
// elsewhere.
func redirects(stmt *syntax.Stmt) (found bool) {
	syntax.Walk(stmt, func(node syntax.Node) bool {
		switch n := node.(type) {
		case *syntax.Subshell, *syntax.CmdSubst, *syntax.ProcSubst:
			return false
		case *syntax.Stmt:
			call, ok := n.Cmd.(*syntax.CallExpr)
			found = found || ok && len(call.Args) == 1 && call.Args[0].Lit() == "exec" && slices.ContainsFunc(n.Redirs, standard)
		}
		return !found
	})
	return found
}

// standard reports whether a redirection is of one of the three streams: the other
// descriptors are a session's own.
func standard(r *syntax.Redirect) bool {
	return r.N == nil || slices.Contains([]string{"0", "1", "2"}, r.N.Value)
}

func offset(node syntax.Node) int { return int(node.Pos().Offset()) }

// parse tells where the statements stand. The parser takes UTF-8 only and shells take
// any bytes, as in a comment of ISO 8859-1: those that are no character become a letter
// of a shell's words that nobody writes.
func parse(text, shell string) (*syntax.File, error) {
	if !utf8.ValidString(text) {
		text = asUTF8(text)
	}
	return syntax.NewParser(syntax.Variant(variant(shell))).Parse(strings.NewReader(text), "")
}

// asUTF8 returns text of the same length that is UTF-8.
func asUTF8(text string) string {
	b := []byte(text)
	for at := 0; at < len(b); {
		char, size := utf8.DecodeRune(b[at:])
		if char == utf8.RuneError && size == 1 {
			b[at] = 1
		}
		at += size
	}
	return string(b)
}

func parseError(text string, err error) error {
	var (
		wrong   syntax.ParseError
		foreign syntax.LangError
	)
	at := func(pos syntax.Pos, what string) error {
		before := text[:min(int(pos.Offset()), len(text))]
		return &Error{strings.Count(before, "\n") + 1, len(before) - strings.LastIndexByte(before, '\n'), what}
	}
	switch {
	case errors.As(err, &wrong):
		return at(wrong.Pos, wrong.Text)
	case errors.As(err, &foreign):
		return at(foreign.Pos, fmt.Sprintf("%s: not a feature of %v", foreign.Feature, foreign.LangUsed))
	}
	return &Error{Message: err.Error()}
}

func variant(shell string) syntax.LangVariant {
	switch path.Base(cmp.Or(shell, "bash")) {
	case "bash", "ash", "busybox": // which reads most of what bash does
		return syntax.LangBash
	case "zsh":
		return syntax.LangZsh
	case "ksh", "ksh93", "mksh":
		return syntax.LangMirBSDKorn
	}
	return syntax.LangPOSIX
}

// openers are what makes the parser call itself. They are counted wherever they
// stand: what closes them again may be in a comment.
var openers = []string{"(", "{", "[", "`", "!", "?", "if", "while", "until", "for", "case", "select", "time", "function", "coproc"}

// measure refuses a text that could be too much for the parser's stack.
func measure(text string) error {
	if len(text) > maxText {
		return &Error{Message: fmt.Sprintf("%d bytes: at most %d are split into statements", len(text), maxText)}
	}
	count := 0
	for _, opener := range openers {
		count += strings.Count(text, opener)
	}
	if count > maxOpeners {
		return &Error{Message: fmt.Sprintf("%d brackets and keywords: with at most %d a text is split into statements", count, maxOpeners)}
	}
	return nil
}
