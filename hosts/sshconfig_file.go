package hosts

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"gateway/internal/phrase"
)

const (
	systemSSHDir = "/etc/ssh"
	// maxIncludes is ssh's READCONF_MAX_DEPTH; maxSSHFiles stops files that
	// include each other more than once before that.
	maxIncludes = 16
	maxSSHFiles = 1000
)

var variableForm = regexp.MustCompile(`\$\{[A-Za-z_][A-Za-z0-9_]*\}`)

// sshHome is the home that ssh uses: that of the account, whatever HOME says. Where an
// account has none, as in a container, it is the root: the current directory may be anybody's.
func sshHome() string {
	home, _ := os.UserHomeDir()
	if local, err := user.Current(); err == nil {
		home = local.HomeDir
	}
	if !filepath.IsAbs(home) {
		return "/"
	}
	return home
}

// sshHomePath expands a leading ~, also of another user.
func sshHomePath(path string) string {
	rest, ok := strings.CutPrefix(path, "~")
	if !ok {
		return path
	}
	name, rest, _ := strings.Cut(rest, "/")
	home := sshHome()
	if name != "" {
		other, err := user.Lookup(name)
		if err != nil {
			return path
		}
		home = other.HomeDir
	}
	return filepath.Join(home, rest)
}

// A sshScan applies ssh_config files to one name, as readconf.c does.
type sshScan struct {
	name     string // as it was given: Host lines match this
	local    string // the local user
	values   map[string][]string
	lists    map[string][][]string // of [isFileList] and [isFile]: what each line says, whether or not it applies
	named    bool                  // a Host line named it, or may have
	aliases  []string              // names that Host lines spell out
	warnings []string

	final     bool // this is the pass for Match final
	wantFinal bool // there is a Match final
	files     int
}

// scan reads the files for a name. What is given is as if it came first.
func (c *SSHConfig) scan(name string, given Given) (*sshScan, error) {
	s := &sshScan{name: name, values: make(map[string][]string), lists: make(map[string][][]string)}
	if given.User != "" {
		s.set("user", []string{given.User})
	}
	if given.Port != 0 {
		s.set("port", []string{strconv.Itoa(given.Port)})
	}
	if given.HostName != "" {
		s.set("hostname", []string{given.hostName()})
	}
	if local, err := user.Current(); err == nil {
		s.local = local.Username
	}
	if err := s.pass(c.file); err != nil {
		return nil, err
	}
	if s.wantFinal {
		s.values["hostname"] = []string{strings.ToLower(s.hostName())}
		s.final = true
		if err := s.pass(c.file); err != nil {
			return nil, err
		}
	}
	s.values["hostname"] = []string{s.hostName()}
	return s, nil
}

func (s *sshScan) pass(file string) error {
	userDir := filepath.Join(sshHome(), ".ssh")
	type source struct {
		path, dir string
		optional  bool
	}
	sources := []source{{file, userDir, false}}
	if file == "" {
		sources = []source{{filepath.Join(userDir, "config"), userDir, true}, {filepath.Join(systemSSHDir, "ssh_config"), systemSSHDir, true}}
	}
	for _, from := range sources {
		applies := surely
		err := s.file(from.path, from.dir, scope{applies: &applies, limit: surely})
		if err != nil && !(from.optional && errors.Is(err, fs.ErrNotExist)) {
			return err
		}
	}
	return nil
}

// A scope is where a line stands: whether it applies, and what a Host or Match
// line could make of that at most. The lines of an included file start as those
// of the line that includes it.
type scope struct {
	applies *verdict
	limit   verdict
	depth   int
}

// A verdict is whether a line applies, as far as this parser can tell.
type verdict int

const (
	never verdict = iota
	maybe         // ssh alone knows: it counts for which names there are
	surely
)

func verdictOf(matches bool) verdict {
	if matches {
		return surely
	}
	return never
}

// file applies one file. Included files that are relative are in dir.
func (s *sshScan) file(path, dir string, at scope) error {
	if s.files++; at.depth > maxIncludes || s.files > maxSSHFiles {
		return &Error{Code: codeInventory, File: path, Message: "ssh_config files include each other too often"}
	}
	data, readErr := readFile(path)
	if readErr != nil {
		return readErr
	}
	if len(data) > maxFile {
		return &Error{Code: codeInventory, File: path, Message: fmt.Sprintf("the file is larger than %d MiB", maxFile>>20)}
	}
	number := 0
	for text := range strings.Lines(string(data)) {
		number++
		keyword, rest := cutWord(strings.Trim(text, sshBlank))
		if keyword == "" || keyword[0] == '#' {
			continue
		}
		if err := s.line(strings.ToLower(keyword), rest, dir, at); err != nil {
			if e, ok := errors.AsType[*Error](err); ok {
				return e
			}
			return &Error{Code: codeInventory, File: path, Line: number, Message: err.Error()}
		}
	}
	return nil
}

func (s *sshScan) line(keyword, rest, dir string, at scope) error {
	if keyword == "match" {
		matches, err := s.match(rest)
		*at.applies = min(matches, at.limit)
		return err
	}
	args, err := splitArgs(rest)
	// These take the rest of the line as it is.
	raw := keyword == "proxycommand" || keyword == "proxyjump"
	if err != nil && !raw {
		return err
	}
	if isFileList(keyword) || isFile(keyword) {
		s.lists[keyword] = append(s.lists[keyword], args)
	}
	switch {
	case keyword == "host":
		*at.applies = min(verdictOf(s.host(args)), at.limit)
		if *at.applies != never && slices.ContainsFunc(args, s.names) {
			s.named = true
		}
	case keyword == "include":
		for _, pattern := range args {
			if err := s.include(pattern, dir, at); err != nil {
				return err
			}
		}
	case *at.applies != surely || rest == "":
	case keyword == "proxyjump": // unlike a command, it may have a comment behind it (readconf.c, parse_jump)
		jump, _, _ := strings.Cut(rest, "#")
		s.set(keyword, []string{strings.TrimRight(jump, sshBlank)})
	case raw:
		s.set(keyword, []string{rest})
	case len(args) > 0:
		s.set(keyword, args)
	}
	return nil
}

// include applies the files that a pattern matches; that there is none is no
// error. In a directory ssh finds no lines.
func (s *sshScan) include(pattern, dir string, at scope) error {
	pattern = sshHomePath(pattern)
	if !filepath.IsAbs(pattern) {
		pattern = filepath.Join(dir, pattern)
	}
	paths, err := expand(pattern)
	if err != nil {
		return fmt.Errorf("include %s: %w", brief(pattern), err)
	}
	for _, path := range paths {
		applies := *at.applies
		err := s.file(path, dir, scope{applies: &applies, limit: *at.applies, depth: at.depth + 1})
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) && !errors.Is(err, syscall.EISDIR) {
			return err
		}
	}
	return nil
}

// globForm brings a pattern into the form of [phrase.Glob]. A ] that comes first is one of
// the class. So is ^ in [^x], for ssh brings a glob of its own (openbsd-compat/glob.c).
var globForm = strings.NewReplacer(
	"[:digit:]", "0-9", "[:lower:]", "a-z", "[:upper:]", "A-Z", "[:alpha:]", "A-Za-z", "[:alnum:]", "0-9A-Za-z", "[:xdigit:]", "0-9A-Fa-f",
	"[[]", `[\[]`, "[]", `[\]`, "[!]", `[!\]`, "[^", `[\^`,
)

// expand returns what an absolute pattern stands for, in order. As for glob(3), and unlike
// [filepath.Glob], a dot at the beginning of a name is matched by a dot alone.
func expand(pattern string) ([]string, error) {
	found := []string{"/"}
	for element := range strings.SplitSeq(strings.Trim(filepath.Clean(pattern), "/"), "/") {
		element = globForm.Replace(element)
		if _, err := phrase.Glob(element, ""); err != nil {
			return nil, err
		}
		var next []string
		for _, dir := range found {
			if !strings.ContainsAny(element, `*?[\`) {
				next = append(next, filepath.Join(dir, element))
				continue
			}
			entries, _ := os.ReadDir(dir) // in what can't be read nothing matches
			for _, entry := range entries {
				hidden := strings.HasPrefix(entry.Name(), ".") && !strings.HasPrefix(element, ".")
				if ok, _ := phrase.Glob(element, entry.Name()); ok && !hidden {
					next = append(next, filepath.Join(dir, entry.Name()))
				}
			}
		}
		found = next
	}
	slices.Sort(found)
	return found, nil
}

// set notes a value unless there is one already: the first one wins, but files
// of keys add up.
func (s *sshScan) set(keyword string, args []string) {
	switch keyword {
	case "identityfile", "certificatefile":
		if !slices.Contains(s.values[keyword], args[0]) {
			s.values[keyword] = append(s.values[keyword], args[0])
		}
		return
	case "proxyjump":
		// The one that comes first drops the other; only a jump of "none"
		// leaves room for a command.
		if s.values["proxycommand"] != nil {
			return
		}
	case "proxycommand":
		if jump := s.values["proxyjump"]; jump != nil && !strings.EqualFold(jump[0], "none") {
			return
		}
	case "canonicalizehostname":
		if !strings.EqualFold(args[0], "no") {
			s.warnings = append(s.warnings, "CanonicalizeHostname is not followed without ssh")
		}
	}
	if s.values[keyword] == nil {
		s.values[keyword] = args
	}
}

// hostName is the address as far as it is known, which Match host looks at.
func (s *sshScan) hostName() string {
	if v := s.values["hostname"]; v != nil {
		return strings.NewReplacer("%%", "%", "%h", s.name).Replace(v[0])
	}
	return s.name
}
