package document

import (
	"errors"
	"fmt"
	"strings"
)

// most is how many problems are told at once.
const most = 10

// Problems collects what is wrong with one or more documents.
type Problems struct {
	list    []*Error
	dropped int
}

// Add notes a problem.
func (p *Problems) Add(e *Error) {
	if p.Full() {
		p.dropped++
		return
	}
	p.list = append(p.list, e)
}

// Len returns how many there are, of those that will be told.
func (p *Problems) Len() int { return len(p.list) }

// Full reports whether more would only be counted.
func (p *Problems) Full() bool { return len(p.list) == most }

// Err returns nil, the only problem, or an [Error] with the code of the first and
// a line for each.
func (p *Problems) Err() error {
	switch len(p.list) {
	case 0:
		return nil
	case 1:
		return p.list[0]
	}
	var (
		lines []string
		all   []error
	)
	for _, e := range p.list {
		line := e.Error()
		if e.Hint != "" {
			line += ": " + e.Hint
		}
		lines = append(lines, line)
		all = append(all, e)
	}
	if p.dropped > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", p.dropped))
	}
	return &Error{Code: p.list[0].Code, Message: strings.Join(lines, "\n"), Err: errors.Join(all...)}
}
