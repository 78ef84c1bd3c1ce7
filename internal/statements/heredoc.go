package statements

import (
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A body is the lines of one here-document, with the one that ends it, and
// where the redirection stands that it belongs to.
type body struct{ operator, start, end int }

// hereDocuments finds the bodies in a text, in the order of their operators.
func hereDocuments(text string, file *syntax.File) []body {
	var operators []*syntax.Redirect
	syntax.Walk(file, func(node syntax.Node) bool {
		if r, ok := node.(*syntax.Redirect); ok && (r.Op == syntax.Hdoc || r.Op == syntax.DashHdoc) {
			operators = append(operators, r)
		}
		return true
	})
	slices.SortFunc(operators, func(a, b *syntax.Redirect) int { return offset(a) - offset(b) })
	bodies := make([]body, len(operators))
	for i, r := range operators {
		b := body{operator: offset(r)}
		switch {
		case r.Hdoc != nil:
			b.start = strings.LastIndexByte(text[:offset(r.Hdoc)], '\n') + 1
			b.end = lineAfter(text, int(r.Hdoc.End().Offset()))
		case i > 0 && bodies[i-1].start > b.operator:
			b.start = bodies[i-1].end // it is empty, and behind that of the same line
			b.end = lineAfter(text, b.start)
		default:
			b.start = lineAfter(text, int(r.Word.End().Offset()))
			b.end = lineAfter(text, b.start)
		}
		bodies[i] = b
	}
	return bodies
}

// lineAfter returns where the line behind the one at an offset begins.
func lineAfter(text string, at int) int {
	if i := strings.IndexByte(text[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(text)
}

// untangle returns what stands between start and end without the bodies of
// other statements, and with its own that stand behind it. tangled says that there
// are any: where an empty one begins is a guess, as the parser does not tell.
func untangle(text string, start, end int, bodies []body) (own string, tangled bool) {
	var within, behind strings.Builder
	at := start
	for _, b := range bodies {
		mine := start <= b.operator && b.operator < end
		tangled = tangled || mine
		switch {
		case mine && b.start >= end:
			behind.WriteString(text[b.start:b.end])
		case !mine && at <= b.start && b.end <= end:
			within.WriteString(text[at:b.start])
			at = b.end
			tangled = true
		}
	}
	within.WriteString(text[at:end])
	if behind.Len() > 0 {
		within.WriteString("\n")
	}
	return within.String() + behind.String(), tangled
}

// same reports whether text is stmt and nothing else.
func same(stmt *syntax.Stmt, text, shell string) bool {
	file, err := parse(text, shell)
	return err == nil && len(file.Stmts) == 1 && shape(file.Stmts[0]) == shape(stmt)
}

// shape writes down what a statement is made of, wherever it stands.
func shape(node syntax.Node) string {
	var b strings.Builder
	syntax.Walk(node, func(node syntax.Node) bool {
		switch n := node.(type) {
		case nil:
			b.WriteString(")")
		case *syntax.Comment:
			return false
		case *syntax.Stmt:
			fmt.Fprintf(&b, "(stmt %v %v %v", n.Negated, n.Background, n.Coprocess)
		case *syntax.Lit:
			fmt.Fprintf(&b, "(%q", n.Value)
		case *syntax.SglQuoted:
			fmt.Fprintf(&b, "('%v %q", n.Dollar, n.Value)
		case *syntax.Redirect:
			fmt.Fprintf(&b, "(redirect %v", n.Op)
		case *syntax.BinaryCmd:
			fmt.Fprintf(&b, "(binary %v", n.Op)
		default:
			fmt.Fprintf(&b, "(%T", node)
		}
		return true
	})
	return b.String()
}
