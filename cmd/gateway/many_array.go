package main

import (
	"slices"
	"sync"

	"gateway/gateway"
	"gateway/session"
)

// resultsInMemory is how much is kept in memory of results that wait for their
// turn; the rest goes to a file.
const resultsInMemory = 8 << 20

// arrayView writes one array of results, in the order of the hosts.
type arrayView struct {
	out *output

	mu      sync.Mutex
	next    int                   // the host whose result is written next
	waiting map[int]waitingResult // those that wait for their turn
	kept    overflow              // their texts
	failed  error                 // the first failure of kept
}

// A waitingResult is a result and where its text is.
type waitingResult struct {
	bare     gateway.Result // without output
	at, size int64          // in kept
	text     []byte         // nil, unless it could not be kept there
}

func newArrayView(out *output) *arrayView {
	return &arrayView{out: out, waiting: make(map[int]waitingResult), kept: overflow{room: resultsInMemory, name: "results"}}
}

func (v *arrayView) started(int) {}

func (v *arrayView) output(int, session.Stream, []byte) {}

func (v *arrayView) done(host int, r gateway.Result) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if host != v.next {
		v.waiting[host] = v.keep(r)
		return
	}
	v.write(encoded(r))
	for {
		w, ok := v.waiting[v.next]
		if !ok {
			break
		}
		delete(v.waiting, v.next)
		v.write(v.back(w))
	}
	if len(v.waiting) == 0 {
		v.kept.empty()
	}
}

// write writes the next result.
func (v *arrayView) write(text []byte) {
	before := ",\n"
	if v.next == 0 {
		before = "["
	}
	v.next++
	_, _ = v.out.Write(slices.Concat([]byte(before), text)) // the output remembers
}

// keep puts a result aside. Where there is no room for it on the disk, it has to
// be in memory.
func (v *arrayView) keep(r gateway.Result) waitingResult {
	text := encoded(r)
	w := waitingResult{bare: withoutOutput(r), at: v.kept.size, size: int64(len(text))}
	if err := v.kept.add(text); err != nil {
		_ = v.fail(err) // the run ends with it
		w.text = text
	}
	return w
}

// back returns the text of a result that waited. One that can't be read any more
// lacks its output, and says so.
func (v *arrayView) back(w waitingResult) []byte {
	if w.text != nil {
		return w.text
	}
	text := make([]byte, w.size)
	if _, err := v.kept.ReadAt(text, w.at); err != nil {
		err = v.fail(err)
		if w.bare.Truncated = true; w.bare.Err == nil {
			w.bare.Err = err
		}
		return encoded(w.bare)
	}
	return text
}

func (v *arrayView) fail(err error) error {
	err = outputError("results that wait for their turn", err, "let TMPDIR be a directory where there is room for them; what was started has run all the same")
	if v.failed == nil {
		v.failed = err
	}
	return err
}

func (v *arrayView) end(s *summary[gateway.Result]) {
	_, _ = v.out.Write([]byte("]\n")) // the output remembers
	v.mu.Lock()
	defer v.mu.Unlock()
	s.unwritten(v.failed)
}

func encoded(r gateway.Result) []byte {
	text, err := r.MarshalJSON()
	if err != nil {
		panic(err) // plain data
	}
	return disobeyed(text)
}
