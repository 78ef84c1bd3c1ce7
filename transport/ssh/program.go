package ssh

import (
	"context"
	"errors"
	"io"
	"time"

	gossh "golang.org/x/crypto/ssh"

	"gateway/transport"
)

// A launch is what is asked for on a fresh session channel (RFC 4254 section
// 6).
type launch struct {
	pty     []byte // payload of pty-req; nil for none
	request string // exec, shell or subsystem
	text    string // the command, or the subsystem's name
	// wait: do not return before the machine has answered. It costs a round
	// trip.
	wait bool
}

// execute is the request for a command, or for the login shell if it is empty.
func execute(command string) launch {
	if command == "" {
		return launch{request: "shell"}
	}
	return launch{request: "exec", text: command}
}

// A program is one session channel with what was started on it.
type program struct {
	*channel
	*transport.Ending

	answered chan struct{} // closed once the machine has answered, or nothing more will come
	refused  error         // why it did not start; set before answered is closed
}

// start launches something on a connection that take was called for. streams
// is called before any byte can be lost.
func (c *conn) start(ctx context.Context, l launch, streams func(*program)) (*program, error) {
	c.first.Do(c.hurry)
	remote, requests, err := c.open(ctx, c.config.ConnectTimeout, "session", nil)
	if err != nil {
		return nil, err
	}
	p := &program{channel: newChannel(c, remote, transport.Group(ctx)), Ending: transport.NewEnding(), answered: make(chan struct{})}
	streams(p)
	served := c.spawn(func() {
		p.serve(requests, p.request)
		p.Finish(transport.Exit{}, p.missing())
	})
	if !served {
		p.leave() // in its place: else the connection would never be spent
	}
	if !served || !c.spawn(func() {
		p.refused = p.launch(l)
		p.begin(p.refused)
		close(p.answered)
	}) {
		p.stop(transport.ErrClosed, "")
		return nil, c.closedError()
	}
	if !l.wait {
		return p, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.config.ConnectTimeout, errTimeout)
	defer cancel()
	select {
	case <-p.answered:
		if p.refused == nil {
			return p, nil
		}
		err = p.refused
	case <-ctx.Done():
		if err = c.config.given(ctx, "starting a program"); err == nil {
			err = c.config.failure(codeLost, context.DeadlineExceeded, "it may have started",
				"the request to start a program was not answered %s", c.config.inTime(ctx))
		}
	}
	p.Close()
	return nil, err
}

// launch sends the requests, in this order and without waiting in between,
// and reads the answer to the last one: x/crypto can't wait for it later.
func (p *program) launch(l launch) error {
	if l.pty != nil {
		// Off a person's terminal nobody waits for the answer: a program that
		// needs a terminal notices itself.
		ok, err := p.remote.SendRequest("pty-req", l.wait, l.pty)
		if l.wait && err == nil && !ok {
			return p.refuse(p.conn.config.failure(codePTYRefused, nil, "the account may have no terminal (PermitTTY no, or restrict in authorized_keys): run a command without -t",
				"the server refuses a terminal"))
		}
	}
	var payload []byte
	if l.request != "shell" {
		payload = gossh.Marshal(struct{ Text string }{l.text})
	}
	ok, err := p.remote.SendRequest(l.request, true, payload)
	switch {
	case err == nil && ok:
		return nil
	case err != nil && !errors.Is(err, io.EOF):
		return p.refuse(p.conn.lostError())
	case err != nil: // the channel ended before the answer; serve knows more
		<-p.gone
		_, err := p.Wait()
		return err
	case l.request == "subsystem":
		return p.refuse(p.conn.config.failure(codeNoSubsystem, nil, "the server has no such subsystem; dropbear needs an sftp-server installed, sshd a Subsystem line",
			"the server refuses the subsystem"))
	}
	return p.refuse(p.conn.config.failure(codeForcedCommand, nil, "the account may be restricted to something else, such as file transfer; a server that runs one program on a connection wants max_sessions: 1",
		"the server refuses to run a program"))
}

// refuse ends a program that never ran, and returns why.
func (p *program) refuse(err error) error {
	p.Finish(transport.Exit{}, err)
	p.stop(err, "")
	return err
}

// missing is the error of a program whose status never came.
func (p *program) missing() error {
	if !p.conn.alive() {
		return p.conn.lostError()
	}
	return p.conn.config.failure(codeLost, nil, "it may have been killed along with the server's process for this connection",
		"the channel ended without an exit status")
}

// request handles the two requests that tell the end (RFC 4254 section 6.10).
func (p *program) request(r *gossh.Request) {
	switch r.Type {
	case "exit-status":
		var m struct{ Status uint32 }
		if gossh.Unmarshal(r.Payload, &m) == nil {
			// Windows has statuses over 255; their low byte may be 0, which would look
			// like success.
			p.Finish(transport.Exit{Code: int(min(m.Status, 255))}, nil)
		}
	case "exit-signal":
		var m struct {
			Signal   string
			Dumped   bool
			Message  string
			Language string
		}
		if gossh.Unmarshal(r.Payload, &m) == nil {
			p.Finish(transport.Exit{Code: 128 + signalNumbers[m.Signal], Signal: m.Signal}, nil)
		}
	}
}

// signalNumbers are the signals of RFC 4254 section 6.10 with their numbers on
// Linux. Others come as name@domain, without a number.
var signalNumbers = map[string]int{
	"HUP": 1, "INT": 2, "QUIT": 3, "ILL": 4, "ABRT": 6, "FPE": 8, "KILL": 9,
	"USR1": 10, "SEGV": 11, "USR2": 12, "PIPE": 13, "ALRM": 14, "TERM": 15,
}

// Heard implements [transport.Listener].
func (p *program) Heard() time.Time { return time.Unix(0, p.conn.wire.heard.Load()) }

// Close implements [transport.Program]. It hangs up, with a signal too: a
// program without a terminal survives the end of its channel, and on dropbear
// one with a terminal does while the connection lives.
func (p *program) Close() error {
	signal := "HUP"
	select {
	case <-p.Done():
		signal = "" // its pid may be another's by now
	default:
	}
	err := p.conn.config.closed()
	p.Finish(transport.Exit{}, err)
	p.stop(err, signal)
	return nil
}

// over says what a reader of the terminal gets after the last byte: the
// program's end, not the end of its output, is the end of file.
func (p *program) over() error {
	select {
	case <-p.Done():
	case <-p.closed:
		return p.closeErr
	}
	if _, err := p.Wait(); err != nil {
		return err
	}
	return p.ended()
}
