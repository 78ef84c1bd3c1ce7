package mcpserver

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"gateway/gateway"
	"gateway/hosts"
	"gateway/transfer"
	"gateway/transport"
)

const (
	defaultRead = 64 << 10
	maxRead     = 256 << 10
	maxWrite    = 1 << 20
	defaultList = 200
	maxList     = 2000
	maxPath     = 4096
	// fileTime bounds a call, so that it ends before its client gives it up.
	fileTime = 50 * time.Second
)

type fileArgs struct {
	Host     string  `json:"host" jsonschema:"a host's name; see hosts"`
	Op       string  `json:"op" jsonschema:"read: bytes of a file. write: a whole file. list: what is in a directory. stat: what is at a path"`
	Path     string  `json:"path" jsonschema:"absolute, or ~/..., or relative to the home directory"`
	Offset   int64   `json:"offset,omitempty" jsonschema:"read: the byte to begin with. list: how many entries to skip. next_offset of an answer goes on"`
	Limit    int     `json:"limit,omitempty" jsonschema:"read: bytes at most, 65536 unless given, up to 262144. list: entries at most, 200 unless given, up to 2000"`
	Content  *string `json:"content,omitempty" jsonschema:"write: all that the file is to have, up to 1 MiB; it replaces what is there"`
	Encoding string  `json:"encoding,omitempty" jsonschema:"write: base64 where content is that; default: text"`
	Mode     string  `json:"mode,omitempty" jsonschema:"write: permissions as in 0644; default: those of the file that is there, or of any new file"`
}

// A fileCall is one call about a path of a host.
type fileCall struct {
	*call
	in    fileArgs
	perm  *fs.FileMode
	bytes []byte // to write

	ctx   context.Context
	m     *machine
	host  hosts.Host
	asked string // absolute
	rules rules
	at    transfer.Real
}

// entry is a file as an answer describes it.
type entry struct {
	Name       string    `json:"name,omitempty"`
	NameBase64 string    `json:"name_base64,omitempty"`
	Type       string    `json:"type"`
	Size       int64     `json:"size"`
	Mode       string    `json:"mode"`
	Modified   time.Time `json:"modified"`
}

func newEntry(info transfer.Info) entry {
	return entry{Type: typeOf(info.Mode), Size: info.Size, Mode: fmt.Sprintf("%04o", info.Mode.Perm()), Modified: info.Modified.UTC().Truncate(time.Second)}
}

// named is newEntry for one of a list.
func named(info transfer.Info) entry {
	e := newEntry(info)
	if e.Name = info.Name; !utf8.ValidString(e.Name) {
		e.Name, e.NameBase64 = "", base64.StdEncoding.EncodeToString([]byte(info.Name))
	}
	return e
}

func typeOf(mode fs.FileMode) string {
	switch mode.Type() {
	case 0:
		return "file"
	case fs.ModeDir:
		return "directory"
	case fs.ModeSymlink:
		return "symlink"
	case fs.ModeNamedPipe:
		return "fifo"
	case fs.ModeSocket:
		return "socket"
	}
	return "device"
}

func (c *call) file(in fileArgs) (any, error) {
	f := &fileCall{call: c, in: in}
	if err := f.check(); err != nil {
		return nil, err
	}
	var err error
	if f.host, err = c.host(in.Host); err != nil {
		return nil, err
	}
	var cancel context.CancelFunc
	limit := fileTime
	if in.Op == "write" { // whose end may take that long
		limit -= transfer.Committing
	}
	f.ctx, cancel = context.WithTimeout(c.ctx, limit)
	defer cancel()
	defer c.progress("", limit)()
	answer, err := f.do()
	if errors.Is(err, context.DeadlineExceeded) && c.ctx.Err() == nil && gateway.Code(err) != "link.lost" && gateway.Code(err) != "tcp.timeout" {
		err = &transport.Error{Code: "file.failed", Message: fmt.Sprintf("file: %s %s: nothing was done within %v", in.Op, transfer.Show(f.host.Name, in.Path), limit), Hint: "try it with less, or later", Err: err}
	}
	return answer, err
}

var modePattern = regexp.MustCompile(`^0?[0-7]{3}$`)

// check refuses arguments that do not go together.
func (f *fileCall) check() error {
	in := f.in
	switch {
	case in.Path == "" || len(in.Path) > maxPath || strings.ContainsRune(in.Path, 0):
		return usage("", "path: 1 to %d bytes without NUL", maxPath)
	case in.Op == "write" && (in.Offset != 0 || in.Limit != 0):
		return usage("read it, and write it whole; or use exec", "offset and limit are for read and list: write replaces the whole file")
	case in.Op == "write" && in.Content == nil:
		return usage("", "write needs content; the empty string makes an empty file")
	case in.Op != "write" && (in.Content != nil || in.Encoding != "" || in.Mode != ""):
		return usage("", "content, encoding and mode are for write")
	case in.Op == "stat" && (in.Offset != 0 || in.Limit != 0):
		return usage("", "offset and limit are for read and list")
	case in.Op == "list" && in.Limit > maxList:
		return usage("next_offset of the answer goes on", "limit: a list has at most %d entries", maxList)
	case in.Mode != "" && !modePattern.MatchString(in.Mode):
		return usage("octal digits, as in 0644", "mode %q", in.Mode)
	case in.Op != "write":
		return nil
	}
	if in.Mode != "" {
		bits, _ := strconv.ParseUint(in.Mode, 8, 12) // it matches
		f.perm = new(fs.FileMode(bits))
	}
	f.bytes = []byte(*in.Content)
	if in.Encoding == "base64" {
		var err error
		if f.bytes, err = base64.StdEncoding.DecodeString(*in.Content); err != nil {
			return usage("standard base64 with padding", "content: %v", err)
		}
	}
	if len(f.bytes) > maxWrite {
		return usage("a person can copy it with gateway cp", "content has %d bytes: at most %d can be written", len(f.bytes), maxWrite)
	}
	return nil
}

// do finds the file and does with it what is asked for.
func (f *fileCall) do() (answer any, err error) {
	fresh, err := f.find()
	if err != nil && f.m != nil && !fresh && transfer.Lost(err) && f.ctx.Err() == nil {
		// What was kept has gone meanwhile, and nothing was done.
		f.machines.release(f.host.Name, f.m, true)
		_, err = f.find()
	}
	if f.m == nil {
		return nil, err
	}
	defer func() {
		// A server that did not answer in time may never do so.
		f.machines.release(f.host.Name, f.m, transfer.Lost(err) || errors.Is(err, context.DeadlineExceeded))
	}()
	if checked := f.rules.check(f.host.Name, f.asked, f.at.Path); checked != nil && !transfer.Lost(err) {
		return nil, checked // whether it is there is nobody's business
	}
	switch {
	case err != nil:
		return nil, err
	case f.in.Op == "write":
		return f.write()
	case f.at.Missing:
		return nil, f.missing()
	}
	switch f.in.Op {
	case "read":
		return f.read()
	case "list":
		return f.list()
	}
	return f.stat()
}

// find reaches the host and finds out where the path leads. The machine is there
// unless that failed.
func (f *fileCall) find() (fresh bool, err error) {
	if f.m, fresh, err = f.machines.get(f.ctx, f.host.Name); err != nil {
		return fresh, err
	}
	f.asked = f.m.absolute(f.in.Path)
	if f.rules, err = rulesOn(f.ctx, f.m, f.host.Files); err != nil {
		return fresh, err
	}
	f.at, err = f.resolve(f.asked, f.in.Op != "stat")
	return fresh, err
}

// resolve finds out where a path leads, by ways that the rules leave open.
func (f *fileCall) resolve(name string, follow bool) (transfer.Real, error) {
	return transfer.Resolve(f.ctx, confined{f.m, f}, name, follow)
}

// confined is the host's files as a path may go through them. Where it may not,
// nothing is looked at, so that no answer depends on what is there.
type confined struct {
	transfer.Tree
	f *fileCall
}

func (c confined) Stat(ctx context.Context, name string, follow bool) (transfer.Info, error) {
	if err := c.f.rules.checkWay(c.f.host.Name, c.f.asked, name); err != nil {
		return transfer.Info{}, err
	}
	return c.Tree.Stat(ctx, name, follow)
}

// missing names what is near.
func (f *fileCall) missing() error {
	dir, name := path.Split(f.at.Path)
	hint := "list its directory"
	if f.rules.check(f.host.Name, dir, strings.TrimRight(dir, "/")) == nil {
		var names []string
		err := f.m.List(f.ctx, dir, func(info transfer.Info) error {
			if _, no := f.rules.denies(dir + info.Name); !no && len(names) < maxList && utf8.ValidString(info.Name) {
				names = append(names, info.Name)
			}
			return nil
		})
		if near := hosts.DidYouMean(name, dir, names); near != "" {
			hint = near
		} else if err != nil {
			hint = "its directory is not there either"
		}
	}
	return &transport.Error{Code: "file.not_found", Message: fmt.Sprintf("file: there is no %s", transfer.Show(f.host.Name, f.at.Path)), Hint: hint}
}
