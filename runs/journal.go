package runs

import (
	"sync"
	"time"

	"gateway/internal/phrase"
)

// A Journal is the record of a run that is under way. Its methods may be called
// concurrently.
type Journal struct {
	store Store
	mask  func(string) string

	mu       sync.Mutex // guards what follows
	record   Record
	begun    []bool
	progress *progress
	saved    bool
}

// Begin begins a record and saves it. From then on each host is noted as it comes,
// so that a run that is killed leaves what was known. The mask takes the secrets
// out of a text; it must not be nil. The journal is there also beside an error.
func (s Store) Begin(verb, selector, command string, hosts []string, mask func(string) string) (*Journal, error) {
	j := &Journal{store: s, mask: mask, begun: make([]bool, len(hosts))}
	j.record = Record{
		ID: s.nextID(), Verb: verb, Selector: selector, Command: phrase.Brief(mask(command), maxText),
		StartedAt: now(), Hosts: make([]Host, len(hosts)),
	}
	for i, name := range hosts {
		j.record.Hosts[i] = Host{Host: name, Outcome: outcomeUnknown, Verdict: outcomeUnknown}
	}
	j.progress = s.track(j.record.ID)
	err := j.save()
	if err != nil {
		j.progress.end()
		j.progress = nil
	}
	return j, err
}

// save saves the record; mu is held, or nobody else has it yet.
func (j *Journal) save() error {
	err := j.store.Save(j.record)
	j.saved = j.saved || err == nil
	return err
}

// maxText is how many characters are remembered of a command, or a message.
const maxText = 4096

func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// ID returns the run's id; empty if it is not remembered.
func (j *Journal) ID() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.store.Dir == "" || !j.saved {
		return ""
	}
	return j.record.ID
}

// Started notes that a host is being tried.
func (j *Journal) Started(host int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.begun[host] = true
	j.progress.tell(step{Host: host})
}

// Done notes how it went on a host.
func (j *Journal) Done(host int, h Host) {
	if h.Error != nil {
		h.Error = &Error{Code: h.Error.Code, Message: phrase.Brief(j.mask(h.Error.Message), maxText)}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.begun[host] = true
	j.record.Hosts[host] = h
	j.progress.tell(step{host, &h})
}

// Close saves the record for good. Hosts of which nothing is known by then were
// not tried, or their outcome is unknown. Only the first call counts.
func (j *Journal) Close(status int) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.record.Status != nil {
		return nil
	}
	for i, begun := range j.begun {
		if !begun {
			j.record.Hosts[i].Outcome, j.record.Hosts[i].Verdict = outcomeSkipped, verdictNotStarted
		}
	}
	j.record.EndedAt, j.record.Status = new(now()), &status
	err := j.save()
	if err != nil {
		j.progress.leave()
	} else {
		j.progress.end()
	}
	j.progress = nil
	return err
}

// Correct gives a record that is closed another status.
func (j *Journal) Correct(status int) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if was := j.record.Status; was == nil || *was == status {
		return nil
	}
	j.record.Status = &status
	return j.save()
}
