package main

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"gateway/gateway"
	"gateway/internal/phrase"
	"gateway/internal/socket"
)

// state looks whether what outlives a call has a place: the records of runs and of
// sessions, without which there is no daemon.
func (d *doctor) state() {
	dir := stateDir("")
	if dir == "" {
		return // that of the daemon is told
	}
	if at, err := writable(dir); err != nil {
		d.note("state", failed, "make it a directory that you can write to, or set XDG_STATE_HOME to one", "%s: %v", at, phrase.WithoutPath(err))
	}
}

// startable looks whether a daemon that is started gets a place for its socket, and the
// records of sessions.
func (d *doctor) startable(path string) {
	if err := socket.CanMakeDir(path); err != nil {
		d.wrong("daemon", err)
		return
	}
	if pid := socket.Daemon(stateDir("daemon")); pid != 0 {
		d.note("daemon", warning, hintElsewhere, "none can be started on %s: process %d is a daemon that has the records of sessions", path, pid)
		return
	}
	d.note("daemon", fine, "", "none runs; one is started when it is needed (%s)", path)
}

// writable reports why a directory can't be written to, or can't be made, and where.
func writable(dir string) (at string, err error) {
	for at = filepath.Clean(dir); ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
			continue // what is wrong stands above it
		case err != nil:
			return at, err
		case !info.IsDir():
			return at, syscall.ENOTDIR
		}
		return at, unix.Access(at, unix.W_OK|unix.X_OK)
	}
}

// secrets looks at what the references of the hosts refer to. A command is not run: it
// may ask a person.
func (d *doctor) secrets(ctx context.Context, references map[string]bool) {
	for _, reference := range slices.Sorted(maps.Keys(references)) {
		if reference == "" || strings.HasPrefix(reference, "cmd:") {
			continue
		}
		if _, err := gateway.Secret(ctx, reference); err != nil {
			d.note("secrets", warning, gateway.Hint(err), "%v", err)
		}
	}
}
