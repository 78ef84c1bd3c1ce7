package main

import (
	"sync"
	"time"

	"gateway/gateway"
	"gateway/transfer"
)

// cpEvents shows events: each file's end, and every second how far it is.
type cpEvents struct {
	sequence sequence
	copying  *copying

	mu   sync.Mutex
	over map[string]bool // hosts of which the result is told; guarded by mu
}

// A cpEvent is one line of gateway.event/v1 about a copy.
type cpEvent struct {
	Schema string    `json:"schema"`
	Event  string    `json:"event"`
	Host   string    `json:"host,omitempty"`
	Seq    int       `json:"seq"`
	Time   time.Time `json:"time"`
	*fileEvent
	*progressEvent
	Result     *cpResult `json:"result,omitempty"`
	DurationMS *int64    `json:"duration_ms,omitempty"` // of a file
}

type fileEvent struct {
	pathJSON
	Target       *string            `json:"target,omitempty"`
	TargetBase64 []byte             `json:"target_base64,omitempty"`
	Done         transfer.Deed      `json:"done"`
	Bytes        int64              `json:"bytes"`
	Size         int64              `json:"size"`
	Error        *gateway.JSONError `json:"error,omitempty"`
}

type progressEvent struct {
	Moved int64 `json:"moved_bytes"`
	Total int64 `json:"total_bytes"` // as far as it is known
}

// emit writes an event. A host that is given up may still copy: what comes behind
// its result is not told.
func (v *cpEvents) emit(name, host string, fill func(*cpEvent)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.over[host] {
		return
	}
	v.over[host] = name == "result"
	v.sequence.write(func(seq int, now time.Time) any {
		e := cpEvent{Schema: eventSchema, Event: name, Host: host, Seq: seq, Time: now}
		fill(&e)
		return e
	})
}

func (v *cpEvents) started(host int) { v.emit("start", v.copying.names[host], func(*cpEvent) {}) }

func (v *cpEvents) watcher(host int) transfer.Watcher {
	return &cpFileEvents{view: v, host: v.copying.names[host], last: time.Now()}
}

func (v *cpEvents) done(_ int, r *cpResult) {
	v.emit("result", r.Host, func(e *cpEvent) { e.Result = r })
}

func (v *cpEvents) end(s *summary[*cpResult]) { s.emit(&v.sequence) }

// cpFileEvents are the events of one host.
type cpFileEvents struct {
	view *cpEvents
	host string

	mu           sync.Mutex
	moved, total int64     // guarded by mu
	last         time.Time // guarded by mu: of the last event about them
}

func (w *cpFileEvents) Found(bytes int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.total += bytes
}

func (w *cpFileEvents) Begin(_ string, _, had int64) { w.Moved("", int(had)) }

func (w *cpFileEvents) Moved(_ string, bytes int) {
	w.mu.Lock()
	w.moved += int64(bytes)
	p := progressEvent{w.moved, max(w.total, w.moved)}
	due := time.Since(w.last) >= time.Second
	if due {
		w.last = time.Now()
	}
	w.mu.Unlock()
	if due {
		w.view.emit("progress", w.host, func(e *cpEvent) { e.progressEvent = &p })
	}
}

func (w *cpFileEvents) End(e transfer.Event) {
	w.view.emit("file", w.host, func(line *cpEvent) {
		line.fileEvent = &fileEvent{
			pathJSON: pathOf(e.Path), Done: e.Done, Bytes: e.Bytes, Size: e.Size, Error: gateway.NewJSONError(e.Err),
		}
		line.DurationMS = new(e.Duration.Milliseconds())
		if e.Target != "" {
			target := pathOf(e.Target)
			line.Target, line.TargetBase64 = target.Path, target.PathBase64
		}
	})
}
