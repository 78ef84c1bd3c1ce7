package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"gateway/daemon/api"
)

// unsavedForm is the name of a file that stands for the last command that the record had
// no room for: a disk that is full has room for a name. Without it, the one before would
// pass for the last. It has the command's number, where its output begins, and the time
// in microseconds.
const unsavedForm = "unsaved-%d-%d-%d"

// miss notes a command that could not be recorded, in the place of an earlier one.
func (r *record) miss(c api.Command) {
	name := filepath.Join(r.dir, fmt.Sprintf(unsavedForm, number(c.ID), c.From, c.StartedAt.UnixMicro()))
	err := os.Rename(r.unsaved, name)
	if r.unsaved == "" {
		err = os.WriteFile(name, nil, 0o600)
	}
	if err == nil { // else nobody will know
		r.unsaved = name
	}
}

// missed returns the command that [record.miss] has noted last: it has begun, and that is
// all. Its number is 0 if there is none.
func missed(dir string) (c api.Command, n int) {
	entries, _ := os.ReadDir(dir) // what can be read counts
	for _, entry := range entries {
		var from, at int64
		if _, err := fmt.Sscanf(entry.Name(), unsavedForm, &n, &from, &at); err == nil {
			id := filepath.Base(dir)
			return api.Command{
				ID: fmt.Sprintf("%s.%d", id, n), Session: id, State: string(api.Running),
				StartedAt: time.UnixMicro(at).UTC(), From: from, To: from,
			}, n
		}
	}
	return api.Command{}, 0
}

// number returns which command of its session one is.
func number(id string) int {
	_, text, _ := strings.Cut(id, ".")
	n, _ := strconv.Atoi(text)
	return n
}
