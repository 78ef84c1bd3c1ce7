package daemon

import (
	"cmp"
	"fmt"
	"strings"

	"gateway/daemon/api"
	"gateway/gateway"
	"gateway/internal/phrase"
	"gateway/internal/transcript"
	"gateway/session"
	"gateway/transport"
)

// resultLimit is how much of each stream a result comes with, if nothing else is asked for.
const resultLimit = 1 << 20

// commandByID returns a command, with the output that belongs to its result.
// The id says which session it is of.
func (d *Daemon) commandByID(scope, id string, limit int) (api.Command, error) {
	name, _, _ := strings.Cut(id, ".")
	s, err := d.find(scope, name)
	if err == nil {
		if c, ok := s.past(id); ok {
			return s.filled(c, limit), nil
		}
	} else if past, ok := d.pastOf(scope, name, err); ok {
		dir := d.recordDir(past.ID)
		if c, ok := recorded(dir, id); ok {
			log, err := d.pastLogs.open(dir, past.To)
			if err != nil {
				return api.Command{}, err
			}
			return filled(log, concluded(past, c, log), limit), nil
		}
	} else if gateway.Code(err) == "daemon.unreachable" { // nobody knows yet
		return api.Command{}, err
	}
	return api.Command{}, noCommand(id)
}

func noCommand(id string) error {
	return &transport.Error{Code: "session.not_found", Message: fmt.Sprintf("daemon: there is no record of command %q", id), Hint: "records are kept for a limited time, and on a full disk not at all: it may have run"}
}

// past finds a command of the session, as it is now.
func (s *live) past(id string) (api.Command, bool) {
	s.mu.Lock()
	c := s.nowLocked(s.notes.command(id))
	s.mu.Unlock()
	if c == nil {
		c, ok := recorded(s.record.dir, id)
		return concluded(s.info(), c, s.log), ok
	}
	return *c, true
}

// recorded finds a command in a record. One whose result is not there was over
// where the next one begins, if that is there.
func recorded(dir, id string) (found api.Command, ok bool) {
	var next bool
	_ = loadCommands(dir, func(c api.Command) { // what can be read counts
		switch {
		case c.ID == id:
			found, ok = c, true
		case ok && !next && !found.Over():
			if next = true; number(c.ID) == number(id)+1 {
				found.To = c.From
			} else { // what follows may be another's
				found.Why = &gateway.JSONError{Code: "transcript.disk", Message: "daemon: where its output ends could not be recorded"}
			}
		}
	})
	return found, ok
}

func (s *live) filled(c api.Command, limit int) api.Command {
	s.mu.Lock()
	last := s.last
	s.mu.Unlock()
	limit = bounded(limit)
	if c.Result == nil || c.ID != last.id || len(last.stdout) > limit || len(last.stderr) > limit {
		return filled(s.log, c, limit)
	}
	result := *c.Result
	result.Stdout, result.Stderr, result.Truncated = last.stdout, last.stderr, false
	c.Result = &result
	return c
}

// bounded returns how much of each stream a result comes with.
func bounded(limit int) int { return cmp.Or(min(max(limit, 0), maxRead), resultLimit) }

// filled gives a command's result the streams that the transcript has of it.
func filled(log *transcript.Log, c api.Command, limit int) api.Command {
	if c.Result == nil {
		return c
	}
	limit = bounded(limit)
	result := *c.Result
	for _, stream := range streams {
		view := log.View(transcript.Cursor(c.From), transcript.Cursor(c.To), transcript.Stream(stream))
		head, tail := limit-limit/2, limit/2
		excerpt, err := view.Excerpt(head+phrase.Margin, tail+phrase.Margin)
		if err != nil {
			result.Truncated = true // what is missing shows in the counts
		}
		data := transcript.Bytes(append(excerpt.Head, excerpt.Tail...))
		if len(data) > limit {
			first, last := phrase.Ends(data, data, head, tail)
			data = append(first, last...)
		}
		switch stream {
		case session.Stdout:
			result.Stdout = data
		case session.Stderr:
			result.Stderr = data
		case session.Terminal:
			result.Terminal = data
		}
	}
	result.Truncated = result.Truncated || int64(len(result.Stdout)) < result.StdoutBytes || int64(len(result.Stderr)) < result.StderrBytes
	c.Why = cmp.Or(c.Why, whyDropped(log, c.From, c.To)) // it may be gone since
	c.Result = &result
	return c
}
