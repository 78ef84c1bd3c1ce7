package fleet

import (
	"fmt"
	"strconv"
	"strings"

	"gateway/transport"
)

// DefaultForks is how many hosts are worked on at the same time where a [Plan]
// does not say.
const DefaultForks = 20

// A Plan says how many hosts are worked on at the same time, and what keeps
// further ones from being tried. The zero value tries all.
type Plan struct {
	// Forks is how many at the same time; 0 means [DefaultForks].
	Forks int
	// Batches are worked on one after the other.
	Batches Batches
	// MaxFail: once more hosts than that have failed, no further one is tried;
	// nil means that they may all fail.
	MaxFail *Amount
	// FailFast: the first failure also ends what still runs elsewhere.
	FailFast bool
	// GiveUp: once it is closed, nobody waits any more for hosts that still run.
	// Their outcome is unknown.
	GiveUp <-chan struct{}
}

// An Amount is a number of hosts, or a percentage of all of them.
type Amount struct {
	N       int
	Percent bool
}

// ParseAmount parses "3" or "10%".
func ParseAmount(s string) (Amount, error) {
	digits, percent := strings.CutSuffix(s, "%")
	n, err := strconv.Atoi(digits)
	switch {
	case err != nil || n < 0 || digits[0] == '+':
		return Amount{}, usage("%q is neither a number of hosts nor a percentage such as 10%%", s)
	case percent && n > 100:
		return Amount{}, usage("%q is more than all", s)
	}
	return Amount{n, percent}, nil
}

func (a Amount) String() string {
	if a.Percent {
		return strconv.Itoa(a.N) + "%"
	}
	return strconv.Itoa(a.N)
}

// of returns how many of total hosts that is, rounded up.
func (a Amount) of(total int) int {
	if a.Percent {
		return (a.N*total + 99) / 100
	}
	return a.N
}

// exceeded reports whether n of total hosts are more.
func (a Amount) exceeded(n, total int) bool {
	if a.Percent {
		return n*100 > a.N*total
	}
	return n > a.N
}

// Batches are the sizes of consecutive batches, of one host at least. The last one
// repeats. None means one batch of all.
type Batches []Amount

// rest is a batch of all that is left.
var rest = Amount{N: 100, Percent: true}

// ParseBatches parses a list such as "1,10%,rest".
func ParseBatches(s string) (Batches, error) {
	var batches Batches
	for word := range strings.SplitSeq(s, ",") {
		if len(batches) > 0 && batches[len(batches)-1] == rest {
			return nil, usage("no host is left for a batch of %q: rest and 100%% stand last", strings.TrimSpace(word))
		}
		if word = strings.TrimSpace(word); word == "rest" {
			batches = append(batches, rest)
			continue
		}
		a, err := ParseAmount(word)
		if err != nil {
			return nil, usage("%q is no size of a batch: a number, a percentage or rest", word)
		}
		if a.N == 0 {
			return nil, usage("a batch of %s has no host", word)
		}
		batches = append(batches, a)
	}
	return batches, nil
}

// ends returns where each batch of total hosts ends.
func (b Batches) ends(total int) []int {
	if len(b) == 0 {
		b = Batches{rest}
	}
	var ends []int
	for end := 0; end < total; {
		end += min(max(b[min(len(ends), len(b)-1)].of(total), 1), total-end)
		ends = append(ends, end)
	}
	return ends
}

func usage(format string, args ...any) error {
	return &transport.Error{Code: "usage", Message: fmt.Sprintf(format, args...)}
}
