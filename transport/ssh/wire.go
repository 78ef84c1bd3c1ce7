package ssh

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	gossh "golang.org/x/crypto/ssh"
)

// maxPreamble is how much of what a server says before its banner is kept.
const maxPreamble = 1 << 10

// quickReads is for how many reads the delayed ACK is switched off at first: those of
// the handshake and of the first channel.
const quickReads = 64

// A byteStream carries a connection. Its Close unblocks a pending Read and Write at
// once, whatever it is made of. It need have no deadlines: x/crypto sets none.
type byteStream interface {
	io.ReadWriteCloser
	LocalAddr() net.Addr
	RemoteAddr() net.Addr
}

// A wire is the byte stream under a connection. It keeps what x/crypto throws
// away: the text before the banner, where sshd says that it turns connections
// away (RFC 4253 section 4.2 allows such lines), whether the stream has
// ended, and when it last moved; and it joins what that takes apart.
type wire struct {
	byteStream

	mu    sync.Mutex // guards early
	early []byte

	banner atomic.Bool
	broken atomic.Bool
	unsent atomic.Bool  // something could not be written; there may be more to read
	heard  atomic.Int64 // when the peer last sent something, Unix nanoseconds

	quick      func()      // asks the kernel to acknowledge at once; nil if it can't
	quickReads int         // behind so many nothing is to wait for an ACK; used by the reader alone
	relays     atomic.Bool // it carries other connections, whose machine is a bastion
	held       held        // used by the reader alone
	asked      atomic.Bool // something was written since the last read

	nudge   atomic.Pointer[time.Timer] // runs out in a pause behind a read; nil: nobody waits for that
	patient bool                       // no nudge unless answers are held back

	joins atomic.Bool // what Write gets is joined to packets, see join
	begun []byte      // of a packet, used by the writer alone

	closeOnce sync.Once
	closeErr  error
}

func newWire(carrier byteStream) *wire {
	shallow(carrier)
	w := &wire{byteStream: carrier, quick: quickAck(carrier), quickReads: quickReads}
	if p, proxied := carrier.(*proxyConn); proxied && !p.tunnels() {
		w.patient, w.quickReads = true, 0
	}
	return w
}

// Read implements [net.Conn]. Once it returned an error, or Close was called,
// broken is true: x/crypto ends its channels only after that, which lets their
// readers tell a lost link from an end of file.
func (w *wire) Read(p []byte) (int, error) {
	n, err := w.byteStream.Read(p)
	if n > 0 {
		now := time.Now().UnixNano()
		if w.held.sees(w.asked.Swap(false), time.Duration(now-w.heard.Swap(now))) {
			w.quickReads = heldReads
		}
		w.quickReads--
		if !w.banner.Load() {
			w.record(p[:n])
		} else if w.quick != nil && (w.quickReads >= 0 || w.relays.Load()) {
			// sshd leaves Nagle's algorithm on until its first session starts
			// (packet.c, ssh_packet_set_interactive), which on a bastion none ever does, so
			// its second small packet waits for our ACK, which the kernel holds back for
			// 40 ms. The option does not last (tcp(7)), hence after every read.
			w.quick()
		}
		if timer := w.nudge.Load(); timer != nil && (w.quickReads >= 0 || !w.patient) {
			timer.Reset(pause)
		}
	}
	if err != nil {
		w.broken.Store(true)
	}
	return n, err
}

// beginLen is what x/crypto writes at first of a longer packet of AES-GCM: a
// bufio.Writer is full then, and what comes next goes around it.
const beginLen = 4096

// join has each packet written at once from now on, if the cipher is AES-GCM: none
// of its packets has just that length (4 bytes, a multiple of 16, and 16: RFC 5647
// section 7.3). Two writes cost a segment more, which wakes the server for a packet
// that it can't open yet.
func (w *wire) join(cipher string) {
	w.joins.Store(cipher == gossh.CipherAES128GCM || cipher == gossh.CipherAES256GCM)
}

// Write implements [net.Conn].
func (w *wire) Write(p []byte) (int, error) {
	if timer := w.nudge.Load(); timer != nil {
		timer.Stop()
	}
	w.asked.Store(true)
	n, err := w.write(p)
	if err != nil {
		w.unsent.Store(true)
	}
	return n, err
}

func (w *wire) write(p []byte) (int, error) {
	if len(p) == beginLen && w.joins.Load() {
		w.begun = append(w.begun[:0], p...)
		return len(p), nil
	}
	if len(w.begun) == 0 {
		return w.byteStream.Write(p)
	}
	packet := net.Buffers{w.begun, p}
	w.begun = w.begun[:0]
	if n, err := packet.WriteTo(w.byteStream); err != nil {
		return max(0, int(n)-beginLen), err
	}
	return len(p), nil
}

// Close implements [net.Conn]. It may be called more than once.
func (w *wire) Close() error {
	w.closeOnce.Do(func() {
		w.broken.Store(true)
		w.closeErr = w.byteStream.Close()
	})
	return w.closeErr
}

// SetDeadline implements [net.Conn], as the next two do, and refuses.
func (*wire) SetDeadline(time.Time) error      { return errors.ErrUnsupported }
func (*wire) SetReadDeadline(time.Time) error  { return errors.ErrUnsupported }
func (*wire) SetWriteDeadline(time.Time) error { return errors.ErrUnsupported }

// record keeps p until the line that starts with "SSH-" is complete.
func (w *wire) record(p []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.early = append(w.early, p[:min(len(p), maxPreamble-len(w.early))]...)
	line := w.early[w.lines():]
	if bytes.HasPrefix(line, []byte("SSH-")) && bytes.IndexByte(line, '\n') >= 0 {
		w.banner.Store(true)
	}
}

// lines is the length of the complete lines before the banner. w.mu is held.
func (w *wire) lines() int {
	end := 0
	for {
		rest := w.early[end:]
		next := bytes.IndexByte(rest, '\n')
		if next < 0 || bytes.HasPrefix(rest, []byte("SSH-")) {
			return end
		}
		end += next + 1
	}
}

// preamble is what the server said before its banner, or instead of one, with
// anything unprintable left out.
func (w *wire) preamble() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := w.early
	if w.banner.Load() {
		text = text[:w.lines()]
	}
	return printable(text)
}

// printable is text from elsewhere as part of a message: one line of ASCII.
func printable(text []byte) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return ' '
		case r < ' ' || r > '~':
			return -1
		}
		return r
	}, string(text)))
}

// throttled returns the hint for a server that has said in place of a banner that it takes
// no connection (drop_connection in sshd.c). Since OpenSSH 9.8 it says the same for
// MaxStartups and for its penalties, which do not grow by what they refuse (measured).
func (w *wire) throttled() (hint string) {
	switch text := w.preamble(); {
	case strings.Contains(text, "MaxStartups"):
		return "too many connections at once: lower --forks, or raise MaxStartups in sshd_config"
	case strings.Contains(text, "Not allowed at this time"):
		return "either too many connect at once (MaxStartups in sshd_config): lower --forks; or some from here failed, as logins that were refused, and have a penalty of some minutes at most (PerSourcePenalties): wait for its end"
	}
	return ""
}
