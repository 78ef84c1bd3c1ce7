package transfer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"gateway/transport"
)

// A hasher has a machine hash its own files. What is asked for while it is at
// work is done together: a round trip and a process for each file would take
// longer than the file.
type hasher struct {
	start    starter
	patience time.Duration // with a shell that says nothing
	begin    sync.Once
	requests chan *question
	ctx      context.Context
	end      context.CancelFunc
	loop     sync.WaitGroup

	shell *shell // of the loop, and so is what follows
	tool  string
	none  error // why there never is one
}

// A question is a file to hash, or a script that prints one line.
type question struct {
	path   string // to be hashed whole; empty: there is a script
	script func(tool string) string
	done   chan struct{}
	line   string
	err    error
}

func newHasher(start starter) *hasher {
	h := &hasher{start: start, patience: greeting, requests: make(chan *question, maxTogether)}
	h.ctx, h.end = context.WithCancel(context.Background())
	return h
}

// errNoHasher: the machine runs no program that hashes.
var errNoHasher = errors.New("no program that hashes")

// errNotHashed: there is one, which does not say why it gives no hash.
var errNotHashed = errors.New("it cannot be hashed there")

// maxTogether is how many questions go together.
const maxTogether = 64

// step is the unit in which a part of a file is cut out with dd.
const step = 1 << 20

// sum returns the hash of a part of a file, that begins at a whole step.
func (h *hasher) sum(ctx context.Context, path string, from, to int64) (Sum, error) {
	q := &question{path: operand(path)}
	if from > 0 || to >= 0 || strings.ContainsAny(path, "\\\n\r") { // programs escape such names
		q = &question{script: func(tool string) string { return cutOut(tool, path, from, to) }}
	}
	line, err := h.ask(ctx, q)
	if err != nil {
		return Sum{}, err
	}
	digits, _, _ := strings.Cut(line, " ")
	sum, err := hex.DecodeString(digits)
	if err != nil || len(sum) != sha256.Size {
		return Sum{}, fmt.Errorf("%w (%q)", errNotHashed, line)
	}
	return Sum(sum), nil
}

// cutOut is a script that hashes a part of a file, which comes on stdin: of all
// of the pipe, or a file that can't be read would be hashed as an empty one.
func cutOut(tool, path string, from, to int64) string {
	cut := fmt.Sprintf("dd bs=%d skip=%d", step, from/step)
	switch whole := to > from && to%step == 0; {
	case from == 0 && to < 0:
		cut = ""
	case from == 0 && !whole:
		cut = fmt.Sprintf("head -c %d | ", to)
	case to >= 0 && whole: // a head behind it would copy it all once more
		cut += fmt.Sprintf(" count=%d | ", (to-from)/step)
	case to >= 0:
		cut += fmt.Sprintf(" | head -c %d | ", to-from)
	default:
		cut += " | "
	}
	return "{ { <&4 " + cut + "exec " + tool + " & attend $!; } 4<" + word(path) + " || echo; } 2>/dev/null\n"
}

// attend waits for a program in the background. One that reads a file never notices
// that nobody wants its answer, and not every sshd sends it a signal (before 10.0,
// none to root's): it is killed when the shell's stdin ends, with the channel or the
// link. Nothing comes on that before the answer is there. The program is what is
// killed if it was begun with exec: yash has a shell wait for others. The shell takes no
// HUP, which some servers send it first: what it has just begun would have nobody yet. A read
// is not to end after TMOUT seconds, which some machines export.
const attend = `trap '' HUP; TMOUT=0
attend() { { read -r x; kill -9 $1; } <&3 & w=$!; wait $1; s=$?; kill -9 $w; wait $w; return $s; }
`

// works reports whether the machine hashes.
func (h *hasher) works(ctx context.Context) bool {
	_, err := h.ask(ctx, &question{script: func(string) string { return "echo\n" }})
	return err == nil
}

// settle writes to the disk what belongs to the file system of a directory. A
// machine that can't be told does so when it likes.
func (h *hasher) settle(ctx context.Context, dir string) error {
	script := "{ sync -f " + word(dir) + " || sync; echo; } 2>/dev/null\n"
	_, err := h.ask(ctx, &question{script: func(string) string { return script }})
	if errors.Is(err, errNoHasher) {
		return nil
	}
	return err
}

func (h *hasher) ask(ctx context.Context, q *question) (string, error) {
	h.begin.Do(func() { h.loop.Go(h.work) })
	q.done = make(chan struct{})
	select {
	case h.requests <- q:
	case <-ctx.Done():
		return "", transport.Cause(ctx)
	}
	select {
	case <-q.done:
		return q.line, q.err
	case <-ctx.Done():
		return "", transport.Cause(ctx)
	case <-h.ctx.Done():
		return "", transport.ErrClosed
	}
}

// work answers until close.
func (h *hasher) work() {
	for {
		var batch []*question
		select {
		case q := <-h.requests:
			batch = append(batch, q)
		case <-h.ctx.Done():
			if h.shell != nil {
				h.shell.close()
			}
			return
		}
		for more := true; more && len(batch) < maxTogether; {
			select {
			case q := <-h.requests:
				batch = append(batch, q)
			default:
				more = false
			}
		}
		h.answer(batch)
		for _, q := range batch {
			close(q.done)
		}
	}
}

// find begins the shell and looks which program there is, with what cuts out a part of a
// file: small machines lack dd now and then. openssl comes first:
// it uses the processor's own instructions, which sha256sum often does not. That
// there is none is remembered, and that the account runs no shell; not what has kept
// one from being started this time, such as a limit of channels.
func (h *hasher) find() error {
	if h.shell != nil && h.shell.over() {
		h.forget()
	}
	if h.shell != nil || h.none != nil {
		return h.none
	}
	s, err := openShell(h.ctx, h.start, h.patience)
	var found answer
	if err == nil {
		found, err = s.collect(h.ctx, attend+`for t in 'openssl dgst -sha256 -r' sha256sum 'shasum -a 256' 'sha256 -r' 'busybox sha256sum'; do
case $(printf abc | dd 2>/dev/null | head -c 3 | $t 2>/dev/null) in ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad*) printf '%s' "$t"; break;; esac
done`, maxNoise)
	}
	if err == nil && len(found.out) > 0 {
		h.shell, h.tool = s, string(found.out)
		return nil
	}
	if s != nil {
		s.close()
	}
	switch {
	case errors.Is(err, transport.ErrLost):
		return err
	case err == nil || errors.Is(err, errNoShell):
		h.none = errNoHasher
		return h.none
	}
	return fmt.Errorf("%w: %w", errNoHasher, err)
}

// forget ends the shell: the next one may do better.
func (h *hasher) forget() {
	if h.shell != nil {
		h.shell.close()
		h.shell = nil
	}
}

// collect has the shell run a script, and another one if that has ended: nothing is changed
// by what runs here twice.
func (h *hasher) collect(script string) (answer, error) {
	found, err := h.shell.collect(h.ctx, script, maxNoise)
	if !errors.Is(err, errEnded) {
		return found, err
	}
	h.forget()
	if err := h.find(); err != nil {
		return answer{}, err
	}
	return h.shell.collect(h.ctx, script, maxNoise)
}

// answer gives each question its answer.
func (h *hasher) answer(batch []*question) {
	lines, sums, err := h.run(batch)
	if err != nil {
		h.forget()
	}
	for _, q := range batch {
		switch {
		case err != nil:
			q.err = err
		case q.path != "":
			q.line = sums[q.path]
		default:
			q.line, lines = lines[0], lines[1:]
		}
	}
}

// run has the scripts run one by one, each of which prints at least the end of a line, and
// then one program hash all files.
func (h *hasher) run(batch []*question) (lines []string, sums map[string]string, err error) {
	if err := h.find(); err != nil {
		return nil, nil, err
	}
	var script, files strings.Builder
	scripts := 0
	for _, q := range batch {
		if q.path != "" {
			files.WriteString(" " + quote(q.path))
			continue
		}
		script.WriteString(q.script(h.tool))
		scripts++
	}
	if files.Len() > 0 {
		script.WriteString("exec " + h.tool + files.String() + " 2>/dev/null & attend $!\n")
	}
	found, err := h.collect(script.String())
	if err != nil {
		return nil, nil, err
	}
	lines = strings.Split(string(found.out), "\n")
	if len(lines) < scripts {
		return nil, nil, fmt.Errorf("%s gives %d answers to %d questions", h.tool, len(lines), scripts)
	}
	sums = make(map[string]string)
	for _, line := range lines[scripts:] {
		digits, path, _ := strings.Cut(line, " ")
		sums[strings.TrimLeft(path, " *")] = digits
	}
	return lines[:scripts], sums, nil
}

// close ends the shell.
func (h *hasher) close() {
	h.end()
	h.loop.Wait()
}
