package session

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"gateway/transport"
)

// A Ledger remembers which sessions are open on which account, so that a later
// one ends there what a link that fell silent left behind: the machine notices
// that in hours, or never. Methods may be called concurrently.
type Ledger interface {
	// Enter notes a session before anything of it is started.
	Enter(account string) Entry
	// Abandoned returns a few entries of the account that were given up, or whose
	// process is gone. Each is given to one caller alone, who closes it.
	Abandoned(account string) []Entry
}

// An Entry stands for one session in a [Ledger].
type Entry interface {
	// Note sets the names that the session goes by on its machine.
	Note(names []string)
	Names() []string
	// Close strikes the entry out if nothing of the session is left on its
	// machine, and gives it up otherwise. The first call counts.
	Close(ended bool)
}

// unnoted is the entry of a session that no ledger knows.
type unnoted struct{}

func (unnoted) Note([]string)   {}
func (unnoted) Names() []string { return nil }
func (unnoted) Close(bool)      {}

// enter notes a session in the ledger, if there is one and the transport's
// programs outlive the link.
func (s *Session) enter() {
	s.entry = unnoted{}
	if remote, ok := s.transport.(transport.Remote); ok && s.config.Ledger != nil {
		s.account = remote.Account()
	}
	if s.account != "" {
		s.entry = s.config.Ledger.Enter(s.account)
	}
}

// maxNames is by how many names a session is looked for: the shell's, and those
// of the keepers that may still be there.
const maxNames = 2 + maxRetired + 1

// note adds a name to the session's entry, before anything goes by it.
func (s *Session) note(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.names = append(s.names, name); len(s.names) > maxNames {
		s.names = append(s.names[:1], s.names[2:]...) // the oldest keeper's
	}
	s.entry.Note(s.names)
}

// giveUpIfLost gives the entry up once the link is gone.
func (s *Session) giveUpIfLost() {
	if s.account == "" {
		return
	}
	if _, err := s.terminal.Wait(); errors.Is(err, transport.ErrLost) {
		s.entry.Close(false)
	}
}

// sawEnd reports whether the session is known to have ended on its machine: a
// keeper hangs up what is left before it exits, unless it was killed.
func (s *Session) sawEnd(keepers []*keeper) bool {
	for _, k := range keepers {
		if !closed(k.exited) || k.failed() { // what waits for a disk can't be killed
			return false
		}
		if _, err := k.pipe.Wait(); err != nil {
			return false
		}
	}
	return len(keepers) > 0 || s.endedInOrder()
}

// endAbandoned ends what other sessions of the account have left on the
// machine. Nobody waits for it but Close, for a moment.
func (s *Session) endAbandoned(k *keeper) {
	if s.account == "" || s.config.Sudo != nil { // another user's keeper may not look
		return
	}
	entries := s.config.Ledger.Abandoned(s.account)
	var names []string
	for _, entry := range entries {
		for _, name := range entry.Names() {
			if ledgerName.MatchString(name) {
				names = append(names, name)
			}
		}
	}
	closeAll := func(ended bool) {
		for _, entry := range entries {
			entry.Close(ended)
		}
	}
	if len(names) == 0 {
		closeAll(true)
		return
	}
	nonce, answered := s.expectLate(k, "L", 1)
	if k.control(endLine(nonce, names)) != nil {
		closeAll(false)
		return
	}
	s.looked = make(chan struct{})
	s.spawn(func() {
		defer close(s.looked)
		select {
		case <-answered:
			closeAll(true)
		case <-k.ended:
			closeAll(len(answered) > 0)
		}
	})
}

// ledgerName is what may stand in a control line.
var ledgerName = regexp.MustCompile(fmt.Sprintf(`^[0-9a-f]{%d}$`, nonceLen))

// endLine returns the control line that ends sessions by their names, and
// answers mark L. A name has 64 random bits, and is a session's alone.
//
// A keeper is the leader or the whole of its process group, lives in a
// directory of that name, which has to be the account's own and no link, and
// holds a file in there open: whatever else may have its pid now does not. Told
// by USR1, it does what it does when the client is gone. One that was killed, maybe
// before its pid stood there, has left its directory, which is removed. A shell whose
// keeper never came has the name in its environment, and leads a session; what it
// starts does not.
func endLine(nonce string, names []string) string {
	return `( exec 4>&-; for i in ` + strings.Join(names, " ") + `; do ` + anywhere + `d=$x/.gw-$i; ` +
		`[ -d $d ] && [ ! -L $d ] && [ -O $d ] || continue; p=; read -r p <$d/p; ` +
		`[ /proc/$p/fd/8 -ef $d/r ] && read -r l </proc/$p/stat || { [ ! -e /proc/$$ ] || rm -rf $d; continue; }; ` +
		`set -- ${l##*\) }; [ "$3" = $p ] && p=-$p; kill -USR1 $p; done; done; ` +
		`for p in $(grep -lF -e _gwn=` + strings.Join(names, " -e _gwn=") + ` /proc/[0-9]*/environ); do p=${p%/environ}; ` +
		`read -r l <$p/stat || continue; set -- ${l##*\) }; p=${p#/proc/}; [ "$4" = $p ] && kill -HUP $p && kill -CONT $p; done; ` +
		`printf ` + controlMark('L', nonce, "") + ` >&3 ) &`
}
