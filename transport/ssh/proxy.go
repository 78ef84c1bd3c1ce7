package ssh

import (
	"cmp"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// maxSaid is how much of a proxy command's standard error is kept.
	maxSaid = 2 << 10
	// killAfter is how long a proxy command may take to end after SIGTERM.
	killAfter = 2 * time.Second
)

// A proxyConn is a connection over the standard input and output of a
// command.
type proxyConn struct {
	command *exec.Cmd
	in, out *os.File
	stderr  tail

	exited    chan struct{} // closed when the command has ended
	gone      chan struct{} // closed behind Close, when nothing of it is left
	closeOnce sync.Once
}

// startProxy runs the proxy command.
func startProxy(c *Config) (byteStream, error) {
	line, err := c.expand(c.ProxyCommand)
	if err != nil {
		return nil, err
	}
	failed := func(err error) error {
		if exhausted(err) {
			return c.failure(codeLimit, err, hintNoFile, "proxy command: %s", reason(err))
		}
		return c.failure(codeProxy, err, "", "proxy command: %s", reason(err))
	}
	theirIn, ourOut, err := os.Pipe()
	if err != nil {
		return nil, failed(err)
	}
	ourIn, theirOut, err := os.Pipe()
	if err != nil {
		theirIn.Close()
		ourOut.Close()
		return nil, failed(err)
	}
	p := &proxyConn{command: exec.Command("sh", "-c", line), in: ourIn, out: ourOut, exited: make(chan struct{}), gone: make(chan struct{})}
	p.command.Stdin, p.command.Stdout, p.command.Stderr = theirIn, theirOut, &p.stderr
	// A group of its own: a ^C at the terminal is for the program at the far
	// end, and Close has to end everything that the command started.
	p.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.command.WaitDelay = killAfter // a grandchild may hold stderr open
	err = p.command.Start()
	theirIn.Close()
	theirOut.Close()
	if err != nil {
		ourIn.Close()
		ourOut.Close()
		return nil, failed(err)
	}
	go func() { // ends with the command, which Close ends
		defer close(p.exited)
		_ = p.command.Wait() // its status says nothing that its silence does not
	}()
	return p, nil
}

// tunnels reports whether it is ssh -W, with sshd's own Nagle's algorithm in between.
func (p *proxyConn) tunnels() bool {
	line := p.command.Args[len(p.command.Args)-1]
	return strings.Contains(line, "ssh") && strings.Contains(line, " -W")
}

// tokenForm is a token of a proxy command, known or not.
var tokenForm = regexp.MustCompile(`(?s)%.?`)

// expand puts the tokens of a proxy command in. Like OpenSSH it refuses unknown
// ones, and values that sh would take for more than a word.
func (c *Config) expand(line string) (string, error) {
	values := map[string]string{
		"%h": c.Addr, "%n": c.Name, "%p": strconv.Itoa(c.Port), "%r": c.User,
		"%k": cmp.Or(c.HostKeys.Alias, c.Name),
	}
	var failed error
	line = tokenForm.ReplaceAllStringFunc(line, func(token string) string {
		value, known := values[token]
		switch {
		case token == "%%":
			return "%"
		case !known:
			failed = c.failure(codeConfig, nil, "known are %h, %k, %n, %p, %r and %% for a percent sign", "proxy command: unknown token %q", token)
		case strings.HasPrefix(value, "-") || strings.ContainsAny(value, " \t\r\n'\"`$\\;&|<>(){}*?![]~#"):
			failed = c.failure(codeConfig, nil, "", "proxy command: %q can't stand in a command", value)
		}
		return value
	})
	return line, failed
}

// said waits for the command's end, or a moment, and returns what it wrote to
// its standard error.
func (p *proxyConn) said() string {
	p.await()
	return p.stderr.String()
}

// await waits for the command's end, or a moment.
func (p *proxyConn) await() {
	select {
	case <-p.exited:
	case <-time.After(killAfter):
	}
}

func (p *proxyConn) Read(b []byte) (int, error) { return p.in.Read(b) }

func (p *proxyConn) Write(b []byte) (int, error) { return p.out.Write(b) }

// Close implements [byteStream]. It does not wait for the command's end: gone tells.
func (p *proxyConn) Close() error {
	p.closeOnce.Do(func() {
		p.in.Close()
		p.out.Close()
		group := -p.command.Process.Pid
		_ = syscall.Kill(group, syscall.SIGTERM) // it may be gone
		go func() {                              // ends a moment later
			defer close(p.gone)
			p.await()
			_ = syscall.Kill(group, syscall.SIGKILL) // what has ignored the other one, which may not be the command itself
			p.await()
		}()
	})
	return nil
}

// bury waits until nothing is left of a proxy command whose stream is closed.
func bury(carrier byteStream) {
	if p, ok := carrier.(*proxyConn); ok {
		<-p.gone
	}
}

// LocalAddr implements [byteStream].
func (p *proxyConn) LocalAddr() net.Addr { return proxyAddr{} }

// RemoteAddr implements [byteStream].
func (p *proxyConn) RemoteAddr() net.Addr { return proxyAddr{} }

// proxyAddr is the address of something that has none.
type proxyAddr struct{}

func (proxyAddr) Network() string { return "proxy" }
func (proxyAddr) String() string  { return "proxy command" }

// A tail keeps the end of what is written to it, as far as it can be printed.
type tail struct {
	mu   sync.Mutex // guards text
	text []byte
}

// Write implements [io.Writer].
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if over := len(t.text) - maxSaid; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(p), nil
}

// String returns it on one line.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return printable(t.text)
}
