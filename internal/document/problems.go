package document

import (
	"errors"
	"fmt"
	"strings"
)

// most is how many problems are told at once.
const most = 10

// Problems collects what is wrong with one or more documents. E is the error of
// the package that reads them.
type Problems[E interface {
	error
	ErrorHint() string
}] struct {
	list    []E
	dropped int
}

// Add notes a problem.
func (p *Problems[E]) Add(e E) {
	if p.Full() {
		p.dropped++
		return
	}
	p.list = append(p.list, e)
}

// Len returns how many there are, of those that will be told.
func (p *Problems[E]) Len() int { return len(p.list) }

// Full reports whether more would only be counted.
func (p *Problems[E]) Full() bool { return len(p.list) == most }

// Err returns nil, the only problem, or what several makes of a message with a
// line for each and of all of them joined.
func (p *Problems[E]) Err(several func(message string, all error) error) error {
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
		if hint := e.ErrorHint(); hint != "" {
			line += ": " + hint
		}
		lines = append(lines, line)
		all = append(all, e)
	}
	if p.dropped > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", p.dropped))
	}
	return several(strings.Join(lines, "\n"), errors.Join(all...))
}
