package main

import (
	"sync"
	"time"

	"gateway/gateway"
	"gateway/transfer"
)

// cpEvents shows events: each file's end, and every second how far it is.
type cpEvents struct {
	log     *eventLog
	copying *copying
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

func (v *cpEvents) of(host int) *events { return v.log.of(v.copying.names[host]) }

func (v *cpEvents) watcher(host int) transfer.Watcher {
	v.of(host).emit(event{Event: "start"})
	return &cpFileEvents{events: v.of(host), last: time.Now()}
}

func (v *cpEvents) done(host int, r *cpResult) { v.of(host).end(r) }

func (v *cpEvents) end(s *summary[*cpResult]) { s.emit(v.log) }

// cpFileEvents are the events of one host.
type cpFileEvents struct {
	events *events

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
		w.events.emit(event{Event: "progress", progressEvent: &p})
	}
}

func (w *cpFileEvents) End(e transfer.Event) {
	file := &fileEvent{
		pathJSON: pathOf(e.Path), Done: e.Done, Bytes: e.Bytes, Size: e.Size, Error: gateway.NewJSONError(e.Err),
	}
	if e.Target != "" {
		target := pathOf(e.Target)
		file.Target, file.TargetBase64 = target.Path, target.PathBase64
	}
	w.events.emit(event{Event: "file", fileEvent: file, DurationMS: new(e.Duration.Milliseconds())})
}
