package main

import (
	"encoding/json"
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
	files  map[string]*os.File // guarded by mu
	failed error               // the first failure; guarded by mu
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
			return &outDir{root: root, files: make(map[string]*os.File)}, nil
		}
	}
	return nil, &usageError{"--out: " + err.Error(), "name a directory that you can write to"}
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
	return func(from session.Stream, b []byte) {
		if from != session.Terminal { // that is in the result
			d.write(host+"."+from.String(), b)
		}
		next(from, b)
	}
}

func (d *outDir) write(name string, b []byte) {
	d.mu.Lock()
	file := d.files[name]
	d.mu.Unlock()
	var err error
	if file == nil {
		if file, err = d.create(name); err == nil {
			d.mu.Lock()
			d.files[name] = file
			d.mu.Unlock()
		}
	}
	if err == nil {
		_, err = file.Write(b)
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
		d.failed = fmt.Errorf("--out: %w", err)
	}
}

// result keeps the result of a host that is done. A host that wrote nothing has
// empty files.
func (d *outDir) result(host string, r gateway.Result) {
	if d == nil {
		return
	}
	for _, from := range []session.Stream{session.Stdout, session.Stderr} {
		name := host + "." + from.String()
		d.write(name, nil)
		d.mu.Lock()
		if file := d.files[name]; file != nil {
			file.Close()
		}
		delete(d.files, name)
		d.mu.Unlock()
	}
	text, err := json.Marshal(r)
	if err == nil {
		var file *os.File
		if file, err = d.create(host + ".json"); err == nil {
			_, err = file.Write(append(text, '\n'))
			file.Close()
		}
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
	for _, file := range d.files {
		file.Close()
	}
	d.root.Close()
	return d.failed
}
