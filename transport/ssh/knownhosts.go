package ssh

import (
	"bufio"
	"bytes"
	"crypto/sha1" // the hash of hashed host names, not a signature
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	gossh "golang.org/x/crypto/ssh"

	"gateway/internal/phrase"
	"gateway/internal/regular"
)

// maxKnownHostsLine bounds a line of known_hosts. The longest real ones list
// some hundred names before an RSA key of a few kilobytes.
const maxKnownHostsLine = 256 << 10

// maxKnownHosts bounds the file: some hundred thousand lines.
const maxKnownHosts = 64 << 20

// A marker is what stands before the names in a line of known_hosts.
type marker int

const (
	markNone    marker = iota
	markCA             // @cert-authority: signs host certificates, is no host key
	markRevoked        // @revoked: never accepted, whatever else says so
)

// A knownHost is a line of known_hosts that concerns a host.
type knownHost struct {
	file   string
	line   int // from 1
	marker marker
	hits   []bool // for each name that was looked for: whether the line is about it
	key    gossh.PublicKey
}

// place names the line in messages.
func (e *knownHost) place() string { return fmt.Sprintf("%s:%d", e.file, e.line) }

// readKnownHosts returns the lines of a file about any of the names, which are
// in lower case. A missing file is an empty one, as for OpenSSH.
//
// A line that cannot be used never hides another one: it is told to warn and
// skipped. Lines about other hosts are not looked at closely.
func readKnownHosts(path string, names []string, warn func(place, what string)) ([]*knownHost, error) {
	f, err := openKeys(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := parseKnownHosts(f, names, func(line int, what string) {
		warn(fmt.Sprintf("%s:%d", path, line), what)
	})
	for _, e := range entries {
		e.file = path
	}
	return entries, err
}

// openKeys opens a file of host keys. It is read to its end, so that must be near.
func openKeys(path string) (*os.File, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.Size() > maxKnownHosts {
		err = &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("larger than %d MiB", maxKnownHosts>>20)}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// revoked returns the keys of the file Revoked as lines about every host, of a
// certificate the key in it. With an error the file may revoke more than them:
// like sshkey_in_file of OpenSSH's authfile.c, which gives up at a line that is
// no key, it must not be taken for a file without that line.
func (h *HostKeys) revoked() (entries []*knownHost, err error) {
	if h.Revoked == "" {
		return nil, nil
	}
	f, err := openKeys(h.Revoked)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", h.Revoked, phrase.WithoutPath(err))
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %s", h.Revoked, reason(err))
	case bytes.HasPrefix(data, []byte("SSHKRL\n\x00")): // PROTOCOL.krl
		return nil, fmt.Errorf("%s: a list in the binary form of ssh-keygen -k is not understood", h.Revoked)
	}
	number := 0
	for line := range strings.Lines(string(data)) {
		number++
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		key, bad := parsePin(line)
		if bad != nil {
			if err == nil {
				err = fmt.Errorf("%s:%d: %w", h.Revoked, number, bad)
			}
			continue
		}
		entries = append(entries, &knownHost{file: h.Revoked, line: number, marker: markRevoked, key: plainKey(key)})
	}
	return entries, err
}

// parseKnownHosts is readKnownHosts without the file.
func parseKnownHosts(r io.Reader, names []string, warn func(line int, what string)) ([]*knownHost, error) {
	var entries []*knownHost
	lines := bufio.NewReaderSize(r, 4096)
	for number := 1; ; number++ {
		line, err := boundedLine(lines)
		if errors.Is(err, bufio.ErrTooLong) {
			warn(number, fmt.Sprintf("line skipped: longer than %d bytes", maxKnownHostsLine))
			continue
		}
		if err != nil && err != io.EOF {
			return entries, err
		}
		var e *knownHost
		var bad error
		if mayConcern(line, names) {
			e, bad = parseKnownHost(string(line), names)
		}
		switch {
		case bad != nil:
			warn(number, "line skipped: "+bad.Error())
		case e != nil:
			e.line = number
			entries = append(entries, e)
		}
		if err == io.EOF {
			return entries, nil
		}
	}
}

// mayConcern reports whether a line has to be looked at closely: names of other hosts,
// in plain letters or hashed, need not be, and for each of hundreds of hosts at once the
// file has as many of those.
func mayConcern(line []byte, names []string) bool {
	hosts := line
	if len(line) > 0 && line[0] == '|' {
		if end := bytes.IndexAny(line, " \t"); end >= 0 {
			hosts = line[:end]
		}
		hashed, err := parseHashed(hosts)
		return err != nil || slices.ContainsFunc(names, hashed.is)
	}
	for i, c := range line {
		switch {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '.', c == '-', c == '_', c == ',', c == ':', c == '[', c == ']':
			continue
		case i > 0 && (c == ' ' || c == '\t'):
			hosts = line[:i]
		default: // a marker, a pattern, or a letter that another one is equal to
			return true
		}
		break
	}
	return slices.ContainsFunc(names, func(name string) bool { return bytes.Contains(hosts, []byte(name)) })
}

// boundedLine reads a line, which is valid until the next call. One that is too long is
// read to its end and answered with bufio.ErrTooLong.
func boundedLine(r *bufio.Reader) ([]byte, error) {
	line, goesOn, err := r.ReadLine()
	if goesOn {
		line = bytes.Clone(line)
	}
	for goesOn && err == nil {
		var part []byte
		if part, goesOn, err = r.ReadLine(); len(line) <= maxKnownHostsLine {
			line = append(line, part...)
		}
	}
	if len(line) > maxKnownHostsLine {
		return nil, bufio.ErrTooLong
	}
	return bytes.TrimRight(line, "\r"), err
}

// parseKnownHost parses one line in the format of sshd(8), SSH_KNOWN_HOSTS
// FILE FORMAT. It returns nil and nil for a line that says nothing about names.
func parseKnownHost(line string, names []string) (*knownHost, error) {
	line = strings.TrimLeft(line, " \t")
	if line == "" || line[0] == '#' {
		return nil, nil
	}
	e := &knownHost{}
	if line[0] == '@' {
		var word string
		switch word, line = nextWord(line); word {
		case "@cert-authority":
			e.marker = markCA
		case "@revoked":
			e.marker = markRevoked
		default:
			return nil, fmt.Errorf("unknown marker %.32q", word)
		}
	}
	hosts, rest := nextWord(line)
	matches := func(name string) bool { return phrase.MatchList(strings.Split(strings.ToLower(hosts), ","), name) }
	if strings.HasPrefix(hosts, "|") {
		hashed, err := parseHashed([]byte(hosts))
		if err != nil {
			return nil, err
		}
		matches = hashed.is
	}
	for _, name := range names {
		e.hits = append(e.hits, matches(name))
	}
	if !slices.Contains(e.hits, true) {
		return nil, nil
	}
	typ, rest := nextWord(rest)
	blob, _ := nextWord(rest)
	if blob == "" {
		return nil, errors.New("no key")
	}
	key, err := parseKeyWords(typ, blob)
	if err != nil {
		return nil, err
	}
	if _, isCert := key.(*gossh.Certificate); isCert && e.marker != markRevoked {
		return nil, errors.New("a certificate where a key belongs")
	}
	// Of a revoked certificate ssh looks at the key alone (sshkey_equal_public).
	e.key = plainKey(key)
	return e, nil
}

// parseKeyWords parses a public key's type and base64 text.
func parseKeyWords(typ, blob string) (gossh.PublicKey, error) {
	raw, err := base64.StdEncoding.DecodeString(blob)
	if err != nil {
		return nil, fmt.Errorf("key of type %.64q: not base64", typ)
	}
	key, err := gossh.ParsePublicKey(raw)
	if err != nil {
		return nil, fmt.Errorf("key of type %.64q: unknown type or damaged", typ)
	}
	if key.Type() != typ {
		return nil, fmt.Errorf("key of type %.64q calls itself %q", typ, key.Type())
	}
	return key, nil
}

// nextWord splits off the word before the first blanks.
func nextWord(s string) (word, rest string) {
	end := strings.IndexAny(s, " \t")
	if end < 0 {
		return s, ""
	}
	return s[:end], strings.TrimLeft(s[end:], " \t")
}

// A hashedName is a name of which only HMAC-SHA1(salt, name) is written.
type hashedName struct{ salt, sum [sha1.Size]byte }

// parseHashed parses "|1|salt|sum", both in base64.
func parseHashed(hosts []byte) (hashedName, error) {
	var h hashedName
	kind, rest, _ := bytes.Cut(hosts[1:], []byte("|"))
	salt, sum, ok := bytes.Cut(rest, []byte("|"))
	if string(kind) != "1" || !ok || bytes.Contains(sum, []byte("|")) {
		return h, errors.New("unknown kind of hashed name")
	}
	if !decodeHash(&h.salt, salt) || !decodeHash(&h.sum, sum) {
		return h, errors.New("damaged hashed name")
	}
	return h, nil
}

func decodeHash(hash *[sha1.Size]byte, text []byte) bool {
	var space [64]byte
	decoded, err := base64.StdEncoding.AppendDecode(space[:0], text)
	return err == nil && copy(hash[:], decoded) == len(hash) && len(decoded) == len(hash)
}

// is reports whether it is that name's. It is HMAC as in RFC 2104, but without what
// crypto/hmac allocates: each host of a fan-out looks at the lines of all others.
func (h hashedName) is(name string) bool {
	const inner, outer = 0x36, 0x5c
	var space [sha1.BlockSize + 256]byte
	key := space[:sha1.BlockSize]
	copy(key, h.salt[:])
	for i := range key {
		key[i] ^= inner
	}
	sum := sha1.Sum(append(key, name...))
	for i := range key {
		key[i] ^= inner ^ outer
	}
	return sha1.Sum(append(key, sum[:]...)) == h.sum
}
