package main

import (
	"bytes"
	"time"
	"unicode/utf8"

	"gateway/fleet"
	"gateway/gateway"
	"gateway/runs"
	"gateway/transfer"
)

const transferSchema = "gateway.transfer/v1"

// A cpResult is how a copy went for one host.
type cpResult struct {
	Host    string
	Outcome fleet.Outcome
	transfer.Report
	Started time.Time // the zero time if nothing was begun
	Connect time.Duration
}

// err returns the first thing that went wrong.
func (r *cpResult) err() error {
	if r.Err == nil && len(r.Problems) > 0 {
		return r.Problems[0].Err
	}
	return r.Err
}

// An endJSON is one end of a copy.
type endJSON struct {
	Host string `json:"host"`
	Via  string `json:"via"`
}

// A pathJSON is a path, which need not be text.
type pathJSON struct {
	Path       *string `json:"path,omitempty"`
	PathBase64 []byte  `json:"path_base64,omitempty"`
}

func pathOf(path string) pathJSON {
	if utf8.ValidString(path) {
		return pathJSON{Path: &path}
	}
	return pathJSON{PathBase64: []byte(path)}
}

type problemJSON struct {
	pathJSON
	*gateway.JSONError
}

// MarshalJSON writes gateway.transfer/v1.
func (r *cpResult) MarshalJSON() ([]byte, error) {
	problems := []problemJSON{}
	for _, p := range r.Problems {
		problems = append(problems, problemJSON{pathOf(p.Path), gateway.NewJSONError(p.Err)})
	}
	var b bytes.Buffer
	err := writeJSON(&b, struct {
		Schema     string             `json:"schema"`
		Host       string             `json:"host"`
		Outcome    fleet.Outcome      `json:"outcome"`
		From       endJSON            `json:"from"`
		To         endJSON            `json:"to"`
		Files      int64              `json:"files"`
		Checked    int64              `json:"checked"`
		Dirs       int64              `json:"directories"`
		Links      int64              `json:"links"`
		Unchanged  int64              `json:"unchanged"`
		Skipped    int64              `json:"skipped"`
		Failed     int64              `json:"failed"`
		Bytes      int64              `json:"bytes"`
		Resumed    int64              `json:"resumed_bytes"`
		Kept       int64              `json:"kept_parts"`
		Problems   []problemJSON      `json:"problems"`
		StartedAt  *time.Time         `json:"started_at"`
		DurationMS int64              `json:"duration_ms"`
		ConnectMS  int64              `json:"connect_ms"`
		Error      *gateway.JSONError `json:"error"`
	}{
		transferSchema, r.Host, r.Outcome,
		endJSON{r.From.Name, r.From.Via},
		endJSON{r.To.Name, r.To.Via},
		r.Files, r.Checked, r.Dirs, r.Links, r.Unchanged, r.Skipped, r.Failed, r.Bytes, r.Resumed, r.Kept, problems,
		gateway.Timestamp(r.Started), r.Duration.Milliseconds(), r.Connect.Milliseconds(), gateway.NewJSONError(r.Err),
	})
	return b.Bytes(), err
}

// remembered is what a record says about a host.
func (r *cpResult) remembered() runs.Host {
	return runs.Host{
		Host: r.Host, Outcome: string(r.Outcome), Verdict: string(r.Outcome),
		StartedAt: gateway.Timestamp(r.Started), DurationMS: r.Duration.Milliseconds(), ConnectMS: r.Connect.Milliseconds(),
		Error: recorded(r.err()),
	}
}
