package transfer

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"time"
)

// Open implements [Source]. A small file comes with the answer of a shell; for
// another one a cat is started. Before it comes what stat says of it.
func (s *Shell) Open(ctx context.Context, path string, info Info, at int64) (Content, error) {
	c := &shellContent{shell: s, path: path}
	if info.Size <= Small && at == 0 {
		out, err := s.run(ctx, fmt.Sprintf("{ { %s && head -c %d; } <%s; } 2>&1", s.statOpen(path), Small+1, word(path)))
		line, out, _ := bytes.Cut(out, []byte("\n"))
		if err == nil {
			c.info, err = parseStat(string(line))
		}
		if err != nil {
			return nil, s.problem("read", path, err)
		}
		if len(out) <= Small {
			c.Reader = bytes.NewReader(out)
			return c, nil
		}
	}
	script := "exec cat"
	if at > 0 {
		script = fmt.Sprintf("exec tail -c +%d", at+1)
	}
	f, err := s.launch(ctx, fmt.Sprintf("{ %s && %s; } <%s || exit 1", s.statOpen(path), script, word(path)), false)
	if err != nil {
		return nil, s.problem("read", path, err)
	}
	c.Reader, c.feed = f.pipe.Stdout, f
	line, err := readLine(f.pipe.Stdout)
	if err == nil {
		c.info, err = parseStat(line)
	} else if failed := f.ended(); failed != nil {
		err = failed
	}
	if err != nil {
		f.close()
		return nil, s.problem("read", path, ended(ctx, err))
	}
	c.stalls = time.AfterFunc(s.stalled, f.leave)
	return c, nil
}

// statOpen is a command that looks at its stdin, which is the file of a path, or
// where it can't, at what has that path.
func (s *Shell) statOpen(path string) string {
	stat, stdin := s.statBehind(), " /dev/stdin"
	if strings.HasPrefix(s.stat, "stat -f") { // BSD's looks at its stdin by itself
		stdin = ""
	}
	return "{ " + stat + stdin + " || " + stat + " " + word(path) + "; } 2>/dev/null"
}

// readLine reads a short line and no further.
func readLine(r io.Reader) (string, error) {
	var line []byte
	b := make([]byte, 1)
	for len(line) < 200 {
		if _, err := io.ReadFull(r, b); err != nil {
			return "", err
		}
		if b[0] == '\n' {
			break
		}
		line = append(line, b[0])
	}
	return string(line), nil
}

type shellContent struct {
	io.Reader
	shell *Shell
	path  string
	info  Info
	feed  *feed // nil: all of it is here
	// stalls has the feed leave its place when nobody reads it for a while: of many
	// targets one that hangs is not to keep the others from reading. nil: there is none.
	stalls *time.Timer
}

func (c *shellContent) Read(b []byte) (int, error) {
	if c.stalls != nil {
		c.stalls.Stop()
		defer c.stalls.Reset(c.shell.stalled)
	}
	n, err := c.Reader.Read(b)
	if err == io.EOF && c.feed != nil {
		if failed := c.feed.ended(); failed != nil {
			err = failed
		}
	}
	if err != nil && err != io.EOF {
		err = c.shell.problem("read", c.path, err)
	}
	return n, err
}

// Opened implements [Content].
func (c *shellContent) Opened(context.Context) (Info, error) { return c.info, nil }

// Changed implements [Content]. Nothing is read behind it, and hashing what was
// read may need the place of the cat.
func (c *shellContent) Changed(ctx context.Context) (bool, error) {
	_ = c.Close()
	info, err := c.shell.Stat(ctx, c.path, true)
	return err == nil && differs(info, c.info), err
}

// Close implements [io.Closer].
func (c *shellContent) Close() error {
	if c.feed != nil {
		c.stalls.Stop()
		c.feed.close()
	}
	return nil
}
