package mcpserver

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"gateway/gateway"
	"gateway/internal/phrase"
	"gateway/transfer"
	"gateway/transport"
)

// place is what every answer about a file begins with.
type place struct {
	Host string `json:"host"`
	Path string `json:"path"` // without symlinks
	Via  string `json:"via"`
}

func (f *fileCall) place() place { return place{f.host.Name, f.at.Path, f.m.About().Via} }

func (f *fileCall) refuse(code, hint, format string) error {
	return &transport.Error{Code: code, Message: "file: " + fmt.Sprintf(format, transfer.Show(f.host.Name, f.at.Path)), Hint: hint}
}

func (f *fileCall) read() (any, error) {
	switch info := f.at.Info; {
	case info.Mode.IsDir():
		return nil, f.refuse("file.is_directory", "op list shows what is in it", "%s is a directory")
	case !info.Mode.IsRegular():
		return nil, f.refuse("file.special", "", "%s is no regular file")
	}
	want, at := cmp.Or(f.in.Limit, defaultRead), f.in.Offset
	b, err := transfer.ReadAt(f.ctx, f.m, f.at.Path, f.at.Info, at, want+1)
	if err != nil {
		return nil, err
	}
	more := len(b) > want
	b = b[:min(len(b), want)]
	answer := struct {
		place
		entry
		Encoding string `json:"encoding"`
		Content  string `json:"content"`
		Offset   int64  `json:"offset"`
		Bytes    int    `json:"bytes"`
		Next     int64  `json:"next_offset,omitempty"`
		Hint     string `json:"next,omitempty"`
	}{place: f.place(), entry: newEntry(f.at.Info), Encoding: "base64", Offset: at}
	if text, ok := asText(b, more); ok {
		b, answer.Encoding, answer.Content = text, "text", string(text)
	} else {
		answer.Content = base64.StdEncoding.EncodeToString(b)
	}
	answer.Bytes = len(b)
	switch end := at + int64(len(b)); {
	case more:
		answer.Next = end
		answer.Hint = fmt.Sprintf("there is more: read with offset %d", end)
	case len(b) > 0:
		answer.Size = max(answer.Size, end) // some are made up while they are read
	default:
		answer.Hint = fmt.Sprintf("the file ends at %d", answer.Size)
	}
	return answer, nil
}

// asText returns bytes that are text, less the beginning of a character at their
// end where more follow.
func asText(b []byte, more bool) ([]byte, bool) {
	if n := phrase.Unfinished(b); more && n < len(b) {
		b = b[:len(b)-n]
	}
	return b, utf8.Valid(b) && !bytes.ContainsRune(b, 0)
}

func (f *fileCall) write() (any, error) {
	dir := path.Dir(f.at.Path)
	if f.at.Missing && strings.HasSuffix(f.in.Path, "/") {
		return nil, f.refuse("file.not_found", "make it with exec: mkdir -p", "there is no directory %s")
	}
	err := transfer.Write(f.ctx, f.m, f.at.Path, f.bytes, f.perm)
	if gateway.Code(err) == "file.not_found" {
		if info, looked := f.m.Stat(f.ctx, dir, true); looked == nil && info.Mode.IsDir() { // below /proc
			return nil, f.refuse("file.permission", "a copy is made there and then gets its name: write into what is there with exec", "no file can be made beside %s")
		}
		return nil, &transport.Error{Code: "file.not_found", Message: fmt.Sprintf("file: there is no directory %s to write into", transfer.Show(f.host.Name, dir)), Hint: "make it with exec: mkdir -p", Err: err}
	}
	if err != nil {
		return nil, err
	}
	return struct {
		place
		Bytes   int  `json:"bytes"`
		Created bool `json:"created"`
	}{f.place(), len(f.bytes), f.at.Missing}, nil
}

// maxEntries is how many a directory may have to be listed.
const maxEntries = 100_000

func (f *fileCall) list() (any, error) {
	if !f.at.Info.Mode.IsDir() {
		return nil, f.refuse("file.not_directory", "op read or stat", "%s is no directory")
	}
	answer := struct {
		place
		Entries []entry `json:"entries"`
		Total   int     `json:"total"`
		Omitted int     `json:"omitted,omitempty"`
		Denied  int     `json:"denied,omitempty"`
		Next    int     `json:"next_offset,omitempty"`
	}{place: f.place(), Entries: []entry{}}
	var found []transfer.Info
	err := f.m.List(f.ctx, f.at.Path, func(info transfer.Info) error {
		if _, no := f.rules.denies(transfer.Join(f.at.Path, info.Name)); no {
			answer.Denied++
			return nil
		}
		if found = append(found, info); len(found) > maxEntries {
			return f.refuse("file.failed", "look at it with exec", fmt.Sprintf("%%s has more than %d entries", maxEntries))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(found, func(a, b transfer.Info) int { return strings.Compare(a.Name, b.Name) })
	answer.Total = len(found)
	from := int(min(f.in.Offset, int64(len(found))))
	to := min(from+cmp.Or(f.in.Limit, defaultList), len(found))
	for _, info := range found[from:to] {
		answer.Entries = append(answer.Entries, named(info))
	}
	if answer.Omitted = len(found) - len(answer.Entries); to < len(found) {
		answer.Next = to
	}
	return answer, nil
}

func (f *fileCall) stat() (any, error) {
	answer := struct {
		place
		entry
		Target string `json:"target,omitempty"` // of a symlink
		Leads  *entry `json:"leads_to,omitempty"`
		Real   string `json:"real_path,omitempty"`
		Hint   string `json:"next,omitempty"`
	}{place: f.place(), entry: newEntry(f.at.Info)}
	if f.at.Info.Mode&fs.ModeSymlink == 0 {
		return answer, nil
	}
	target, err := f.m.Readlink(f.ctx, f.at.Path)
	if err != nil {
		return nil, err
	}
	answer.Target = strings.ToValidUTF8(target, "\ufffd")
	real, err := f.resolve(f.at.Path, true)
	denied := f.rules.check(f.host.Name, f.at.Path, real.Path)
	switch {
	case transfer.Lost(err) || f.ctx.Err() != nil:
		return nil, err
	case denied != nil:
		answer.Hint = plain(denied.Error())
	case err != nil:
		answer.Hint = plain(err.Error())
	case real.Missing:
		answer.Hint = "where it leads is nothing"
	default:
		answer.Real, answer.Leads = strings.ToValidUTF8(real.Path, "\ufffd"), new(newEntry(real.Info))
	}
	return answer, nil
}
