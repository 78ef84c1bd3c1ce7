package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"gateway/gateway"
	"gateway/session"
)

// outDir is where --out keeps, for each host, its stdout, its stderr and its
// result: HOST.stdout, HOST.stderr and HOST.json. Nil keeps nothing.
type outDir struct {
	root *os.Root // names can't lead out of it

	mu     sync.Mutex
	hosts  map[string]*outHost // guarded by mu
	failed error               // the first failure; guarded by mu
}

// An outHost is what is kept of one host.
type outHost struct {
	mu    sync.Mutex
	files [2]*os.File // by stream; guarded by mu
	done  bool        // what comes late is not kept; guarded by mu
}

// openOut makes the directory. What it holds of other hosts stays.
func (a *app) openOut(dir string) (*outDir, error) {
	if dir == "" {
		return nil, nil
	}
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		var root *os.Root
		if root, err = os.OpenRoot(dir); err == nil {
			return &outDir{root: root, hosts: make(map[string]*outHost)}, nil
		}
	}
	return nil, &usageError{message: "--out: " + err.Error(), hint: "name a directory that you can write to"}
}

// create makes a file of its own, whatever had the name before.
func (d *outDir) create(name string) (*os.File, error) {
	if name != filepath.Base(name) {
		return nil, fmt.Errorf("%q is no name for a file", name)
	}
	_ = d.root.Remove(name) // else the next line says why
	return d.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

// tee returns an output that is kept, and then passed on to next.
func (d *outDir) tee(host string, next func(session.Stream, []byte)) func(session.Stream, []byte) {
	if d == nil {
		return next
	}
	h := d.host(host)
	return func(from session.Stream, b []byte) {
		if from != session.Terminal { // that is in the result
			h.mu.Lock()
			d.write(h, host, from, b)
			h.mu.Unlock()
		}
		next(from, b)
	}
}

// host returns what is kept of a host.
func (d *outDir) host(name string) *outHost {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.hosts[name] == nil {
		d.hosts[name] = &outHost{}
	}
	return d.hosts[name]
}

// write needs h.mu.
func (d *outDir) write(h *outHost, name string, from session.Stream, b []byte) {
	if h.done {
		return
	}
	var err error
	if h.files[from] == nil {
		h.files[from], err = d.create(name + "." + from.String())
	}
	if err == nil {
		_, err = h.files[from].Write(b)
	}
	d.note(err)
}

func (d *outDir) note(err error) {
	if err == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failed == nil {
		d.failed = outputError("--out", err, hintFile)
	}
}

// result keeps the result of a host that is done. A host that wrote nothing has
// empty files.
func (d *outDir) result(host string, r gateway.Result) {
	if d == nil {
		return
	}
	h := d.host(host)
	h.mu.Lock()
	for _, from := range []session.Stream{session.Stdout, session.Stderr} {
		d.write(h, host, from, nil)
		d.note(h.files[from].Close()) // of none that could not be made: that was first
	}
	h.done = true
	h.mu.Unlock()
	file, err := d.create(host + ".json")
	if err == nil {
		err = errors.Join(writeJSON(file, r), file.Close())
	}
	d.note(err)
}

// close returns what could not be kept.
func (d *outDir) close() error {
	if d == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.root.Close()
	return d.failed
}
