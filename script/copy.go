package script

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"gateway/fleet"
	"gateway/gateway"
	"gateway/internal/phrase"
	"gateway/session"
	"gateway/transfer"
	"gateway/transport"
)

// Copied is what a step has copied.
type Copied struct {
	// Direction is to_host or from_host.
	Direction string `json:"direction"`
	// Src and Dst are the paths that it came to. On the host, one that does not
	// begin with a slash begins in the home directory.
	Src string `json:"src"`
	Dst string `json:"dst"`
	// Via is how the host's files were reached: sftp, shell or local.
	Via string `json:"via"`
	// Counts of files, made directories, symlinks, files that were the same
	// already, and what could not be copied.
	Files     int64 `json:"files"`
	Dirs      int64 `json:"directories"`
	Links     int64 `json:"links"`
	Unchanged int64 `json:"unchanged"`
	Failed    int64 `json:"failed"`
	// Bytes are those that were moved; Resumed were there already.
	Bytes   int64 `json:"bytes"`
	Resumed int64 `json:"resumed_bytes"`
}

// String says how much it is.
func (c *Copied) String() string {
	text := fmt.Sprintf("files: %d, bytes: %d", c.Files, c.Bytes)
	for _, part := range []struct {
		n    int64
		what string
	}{
		{c.Dirs, "directories made"},
		{c.Links, "symlinks"},
		{c.Unchanged, "unchanged"},
		{c.Failed, "failed"},
		{c.Resumed, "bytes were there"},
	} {
		if part.n > 0 {
			text += fmt.Sprintf(", %s: %d", part.what, part.n)
		}
	}
	return text
}

// copy copies the files of a step. Where it could not be begun, the verdict is
// [session.NotStarted].
func (h *hostRun) copy(ctx context.Context, shell *shell, s *Step, r *StepResult) (session.Verdict, error) {
	if r.Started.IsZero() {
		r.Started = time.Now()
	}
	limited, cancel := within(ctx, s.Timeout, "the copy")
	defer cancel()
	begun, err := h.transfer(limited, shell, s, r)
	verdict, outcome := session.Exited, fleet.OK
	switch {
	case err == nil:
	case transfer.MayBeDone(err), begun && lost(err) && limited.Err() == nil:
		verdict, outcome = session.Unknown, fleet.Unknown
		if gateway.Code(err) != "link.lost" {
			err = &transport.Error{Code: "link.lost", Message: "script: the copy broke off: " + err.Error(), Err: err}
		}
	case ctx.Err() != nil:
		verdict, outcome = session.Interrupted, fleet.Interrupted
		err = &transport.Error{Code: "cmd.interrupted", Message: "script: the copy was interrupted", Hint: gateway.Hint(err), Err: err}
	case limited.Err() != nil:
		verdict, outcome = session.TimedOut, fleet.TimedOut
		err = &transport.Error{Code: "cmd.timeout", Message: context.Cause(limited).Error(), Hint: gateway.Hint(err), Err: err}
	case !begun:
		verdict, outcome = session.NotStarted, fleet.Failed
	default:
		outcome = fleet.Failed
	}
	r.Verdict, r.Outcome = verdict, outcome
	return verdict, err
}

// lost reports whether it is the way to the machine that failed.
func lost(err error) bool {
	return gateway.Code(err) == "link.lost" || errors.Is(err, transport.ErrLost) || errors.Is(err, transport.ErrClosed)
}

// lasting reports whether another attempt of a copy would only fail in the same
// way. What is missing is none of it: the file may come yet.
func lasting(err error) bool {
	switch gateway.Code(err) {
	case "script.invalid", "usage", "file.permission", "file.read_only", "file.is_directory", "file.not_directory", "file.special", "file.unsafe":
		return true
	}
	return false
}

// transfer copies, and reports whether that was begun.
func (h *hostRun) transfer(ctx context.Context, shell *shell, s *Step, r *StepResult) (begun bool, err error) {
	job, err := h.job(shell, s.Copy)
	if err != nil {
		return false, err
	}
	machine, err := transfer.Open(ctx, shell.Files())
	if err != nil {
		return false, err
	}
	defer machine.Close()
	job.From, job.To = &transfer.Local{}, machine
	if s.Copy.Fetch {
		job.From, job.To = machine, &transfer.Local{}
		dir := filepath.Dir(job.Into)
		if strings.HasSuffix(job.Into, "/") {
			dir = job.Into
		}
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return false, notMade(dir, err)
		}
	}
	report := job.Run(ctx)
	r.Copy = &Copied{
		Direction: direction(s.Copy), Src: h.Mask(job.Paths[0]), Dst: h.Mask(job.Into), Via: machine.About().Via,
		Files: report.Files, Dirs: report.Dirs, Links: report.Links, Unchanged: report.Unchanged, Failed: report.Failed,
		Bytes: report.Bytes, Resumed: report.Resumed,
	}
	h.complain(report, r)
	return true, verdictOf(report)
}

func direction(c *Copy) string {
	if c.Fetch {
		return "from_host"
	}
	return "to_host"
}

// job says what a step copies on this host.
func (h *hostRun) job(shell *shell, c *Copy) (*transfer.Copy, error) {
	job := &transfer.Copy{Recursive: c.Recursive, Preserve: c.Preserve, Mode: c.Mode, Links: c.Links, Checksum: c.Checksum, Resume: c.Resume}
	for _, p := range c.Exclude {
		job.Exclude = append(job.Exclude, h.expandPattern(p))
	}
	src, err := h.present(c.verb()+": src", c.Src)
	if err != nil {
		return nil, err
	}
	dst, err := h.present(c.verb()+": dst", c.Dst)
	if err != nil {
		return nil, err
	}
	if !c.Fetch {
		if err := h.staysHere("copy: src", c.Src); err != nil {
			return nil, err
		}
		src = local(h.Script.dir, src)
		into, err := onHost(shell.cwd, dst)
		job.Paths, job.Into = []string{src}, into
		return job, err
	}
	if err := h.staysHere("fetch: dst", c.Dst); err != nil {
		return nil, err
	}
	cwd := shell.cwd
	if job.Glob = c.glob(); job.Glob {
		src, cwd = h.expandPattern(c.Src), literal(cwd)
	}
	src, err = onHost(cwd, src)
	job.Paths, job.Into = []string{src}, local(h.Script.dir, dst)
	return job, err
}

// staysHere returns an error for a path of this machine that a host leads astray. What
// a step has registered is the host's word, and the host is not to choose which file
// is overwritten here, or sent to it: its values are names, and do not make a path
// begin elsewhere, or go up.
func (h *hostRun) staysHere(key, text string) error {
	if h.result.Transport == "local" {
		return nil
	}
	meant := expand(text, func(name string) string {
		if h.registers[name] {
			return "x"
		}
		return h.values[name]
	})
	said := h.expand(text)
	if rooted(said) == rooted(meant) && ups(said) <= ups(meant) {
		return nil
	}
	return invalid("what the host has said for a registered variable begins with / or ~, or has .. in it",
		"%s: %s is %s, which is elsewhere on this machine", key, text, transfer.Show("", said))
}

// rooted reports whether a path of this machine does not begin where the script is.
func rooted(p string) bool { return p == "~" || strings.HasPrefix(p, "~/") || filepath.IsAbs(p) }

// ups counts the elements of a path that lead up.
func ups(p string) (n int) {
	for element := range strings.SplitSeq(p, "/") {
		if element == ".." {
			n++
		}
	}
	return n
}

// glob reports whether what is to be fetched is written as a pattern. A value
// stands for itself.
func (c *Copy) glob() bool {
	return c.Fetch && strings.ContainsAny(mention.ReplaceAllString(c.Src, ""), "*?[")
}

func (h *hostRun) expandPattern(pattern string) string {
	return expand(pattern, func(name string) string { return literal(h.values[name]) })
}

// literal quotes a text for [path.Match].
func literal(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(text)
}

// onHost returns a path on the host as [transfer.Machine] knows it, where one
// that is relative begins in the home directory.
func onHost(cwd, p string) (string, error) {
	switch there := transfer.HomePath(p); {
	case there != p || path.IsAbs(p):
		return there, nil
	case cwd == "":
		return "", &transport.Error{Code: "cmd.cwd", Message: "script: it is not known in which directory the session is", Hint: "give a path that begins with / or ~/"}
	}
	return transfer.Join(cwd, p), nil
}

// local returns a path on this machine, where one that is relative begins in
// dir. A slash or "/." at its end stays: it means something.
func local(dir, p string) string {
	switch {
	case p == "~" || strings.HasPrefix(p, "~/"):
		home, _ := os.UserHomeDir() // none: the path starts at the root
		return home + p[1:]
	case !filepath.IsAbs(p):
		return transfer.Join(dir, p)
	}
	return p
}

// notMade is the error of a directory of this machine that can't be made.
func notMade(dir string, err error) error {
	e := &transport.Error{Code: "file.failed", Message: fmt.Sprintf("script: make %s: %v", dir, phrase.WithoutPath(err)), Err: err}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.Code = "file.not_found"
	case errors.Is(err, fs.ErrPermission):
		e.Code = "file.permission"
	}
	return e
}

// asKeys makes of the flags of cp in a hint the keys of a step.
var asKeys = strings.NewReplacer("--exclude", "exclude", "--links ", "links: ", "--mode ", "mode: ")

// verdictOf returns what is wrong with a copy; nil if everything was copied.
func verdictOf(r *transfer.Report) error {
	if r.OK() {
		return nil
	}
	err := r.Err
	for i := range r.Problems {
		// What ends the link ends it for all files, and says most; what leaves a doubt,
		// even more.
		if p := r.Problems[i].Err; err == nil || lost(p) && !lost(err) || transfer.MayBeDone(p) && !transfer.MayBeDone(err) {
			err = p
		}
	}
	more, hint := "", asKeys.Replace(gateway.Hint(err))
	if err == nil {
		err = errors.New("transfer: something could not be copied")
	}
	if r.Err == nil && r.Failed > 1 {
		more = fmt.Sprintf(" (and %d more)", r.Failed-1)
	}
	if r.Kept > 0 {
		hint = cmp.Or(hint, "with resume: true it goes on where it was cut short")
	}
	return &transport.Error{Code: gateway.Code(err), Message: err.Error() + more, Hint: hint, Err: err}
}

// complain writes down what could not be copied, where it is more than the
// step's error says.
func (h *hostRun) complain(report *transfer.Report, r *StepResult) {
	r.Stderr, r.StderrBytes = nil, 0
	if len(report.Problems) < 2 {
		return
	}
	var b strings.Builder
	for _, p := range report.Problems {
		b.WriteString(p.Err.Error() + "\n")
	}
	r.Stderr = h.hidden([]byte(b.String()))
	r.StderrBytes = int64(len(r.Stderr))
}
