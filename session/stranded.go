package session

import (
	"context"
	"fmt"
	"strings"
)

// A shell that writes its marks to FIFOs whose keeper was killed waits for somebody who
// reads them, which would be for ever. (Where a keeper has pipes, their names are gone with
// it: then the prompt says that the command is over.)

// stranded returns what is closed when nobody may read a keeper's FIFOs any more; nil where there
// are none, or they are another user's.
func (s *Session) stranded(k *keeper) <-chan struct{} {
	if k == nil || k.dir == "" || !strings.HasPrefix(k.stdout, k.dir) || s.config.Sudo != nil {
		return nil
	}
	return k.ended
}

// free has the FIFOs of a killed keeper read again, up to the command's end.
func (a *awaiting) free() {
	a.stranded = nil
	within(keeperGrace, a.run.keeper.exited)
	if !a.run.keeper.failed() {
		return
	}
	a.freed = true
	ctx, cancel := context.WithCancel(context.WithoutCancel(a.ctx))
	a.release = append(a.release, func() bool { cancel(); return true })
	a.session.spawn(func() { a.session.readAgain(ctx, a.run.keeper) })
}

// readAgain reads a keeper's FIFOs until the context ends.
func (s *Session) readAgain(ctx context.Context, k *keeper) {
	pipe, err := s.transport.Pipe(s.together(ctx), inSh(fmt.Sprintf(
		`trap "" HUP; exec 3<>%s 4<>%s; cat <&3 & a=$!; cat <&4 >&2 & b=$!; read -r x; kill -9 $a $b`, k.stdout, k.stderr)))
	if err != nil {
		return // its deadline, or an interrupt, ends the command
	}
	s.pump(pipe.Stdout, k, Stdout, func() {})
	s.pump(pipe.Stderr, k, Stderr, func() {})
	<-ctx.Done()
	pipe.Close()
}
