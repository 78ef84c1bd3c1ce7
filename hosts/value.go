package hosts

import (
	"encoding/base64"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"gateway/internal/document"
	"gateway/internal/phrase"
)

const (
	transportSSH   = "ssh"
	transportLocal = "local"
)

// A form is what a word may look like, and how long it may be. The expression does
// not say that: one with {0,252} takes a millisecond of each start to compile.
type form struct {
	expression *regexp.Regexp
	most       int
}

func newForm(expression string, most int) form { return form{regexp.MustCompile(expression), most} }

func (f form) MatchString(s string) bool { return len(s) <= f.most && f.expression.MatchString(s) }

var (
	nameForm    = newForm(`^[A-Za-z0-9][A-Za-z0-9._-]*$`, 253)
	addrForm    = newForm(`^[A-Za-z0-9_][A-Za-z0-9._-]*$`, 253)
	tagForm     = newForm(`^[A-Za-z0-9][A-Za-z0-9._:/=-]*$`, 100)
	envNameForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

func (r *reader) transport(n *yaml.Node) (string, bool) {
	return r.oneOf(n, transportSSH, transportLocal)
}

func (r *reader) policy(n *yaml.Node) (string, bool) {
	return r.oneOf(n, "strict", "accept-new", "ask")
}

func (r *reader) oneOf(n *yaml.Node, words ...string) (string, bool) {
	s, ok := r.text(n)
	if ok && !slices.Contains(words, s) {
		return "", r.fail(n, DidYouMean(s, "", words), "%s is none of %s", brief(s), strings.Join(words, ", "))
	}
	return s, ok
}

func (r *reader) addr(n *yaml.Node) (string, bool) {
	s, ok := r.text(n)
	if !ok || addrAllowed(strings.ReplaceAll(s, "{name}", "x")) {
		return s, ok
	}
	hint := "a host name or an IP address; {name} stands for the host's name"
	switch {
	case strings.Contains(s, "@"):
		hint = "the user has a field of its own: user"
	case strings.Contains(s, ":"):
		hint = "the port has a field of its own: port; an IPv6 address stands without brackets"
	}
	return "", r.fail(n, hint, "%s is not an address", brief(s))
}

// addrAllowed reports whether s is a host name or an IP address. Commands get it by %h: a
// zone that is no word would be read by their shell.
func addrAllowed(s string) bool {
	addr, err := netip.ParseAddr(s)
	return addrForm.MatchString(s) || err == nil && (addr.Zone() == "" || addrForm.MatchString(addr.Zone()))
}

func (r *reader) port(n *yaml.Node) (int, bool) {
	port, ok := r.integer(n)
	if ok && (port < 1 || port > 65535) {
		return 0, r.fail(n, "", "port %d is not within 1–65535", port)
	}
	return port, ok
}

func (r *reader) positive(n *yaml.Node) (int, bool) {
	number, ok := r.integer(n)
	if ok && number < 1 {
		return 0, r.fail(n, "", "%d is not positive", number)
	}
	return number, ok
}

// word reads a text that is allowed; format says of any other what is wrong with it.
func (r *reader) word(n *yaml.Node, allowed func(string) bool, hint, format string) (string, bool) {
	s, ok := r.text(n)
	if ok && !allowed(s) {
		return "", r.fail(n, hint, format, brief(s))
	}
	return s, ok
}

func (r *reader) user(n *yaml.Node) (string, bool) {
	return r.word(n, ValidUser, "", "%s is not a user name")
}

func hasControl(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// ValidUser reports whether s may be a user's name. It is not what a proxy command
// with %r would take for an option or hand to its shell. me@corp and CORP\me are
// accounts of directory services.
func ValidUser(s string) bool {
	return s != "" && s[0] != '-' && !strings.HasSuffix(s, `\`) && !strings.ContainsAny(s, " \t,'\"`$;&<>|(){}") && !hasControl(s)
}

func (r *reader) jump(n *yaml.Node) ([]string, bool) {
	if node := r.resolve(n); node.Kind == yaml.ScalarNode && strings.Contains(node.Value, ",") {
		return nil, r.fail(n, "write several hops as a list: [a, b]", "%s is more than one host", brief(node.Value))
	}
	return listOf(func(r *reader, n *yaml.Node) (string, bool) {
		s, ok := r.text(n)
		if !ok {
			return "", false
		}
		if _, err := ParseJump(s); err != nil {
			hint := "a host of the inventory, or [user@]host[:port]"
			if s == "none" {
				hint = "write `jump: []` for none"
			}
			return "", r.fail(n, hint, "%v", err)
		}
		return s, true
	})(r, n)
}

// identity never shows what it refuses: it may be a key that someone pasted.
func (r *reader) identity(n *yaml.Node) (string, bool) {
	s, ok := r.text(n)
	if !ok {
		return "", false
	}
	if IsKeyReference(s) {
		if _, _, err := ParseReference(s); err != nil {
			return "", r.fail(n, "a path, env:NAME or cmd:COMMAND", "is not a reference to a key")
		}
		return s, true
	}
	return r.path(n)
}

// reference never shows what it refuses: it may be the secret.
func (r *reader) reference(n *yaml.Node) (string, bool) {
	const hint = "write " + ReferenceForms
	node := r.resolve(n)
	if node.Kind != yaml.ScalarNode || node.Value == "" {
		return "", r.fail(n, hint, "must be a reference")
	}
	kind, rest, err := ParseReference(node.Value)
	if err != nil {
		return "", r.fail(n, hint, "must be a reference, never the secret itself")
	}
	if kind == "file" {
		path, ok := r.expand(n, rest)
		return "file:" + path, ok
	}
	return node.Value, true
}

// agent reads true, false or a socket.
func (r *reader) agent(n *yaml.Node) (Agent, bool) {
	if document.Boolean(r.resolve(n)) {
		on, ok := r.boolean(n)
		if on {
			return AgentEnv, ok
		}
		return AgentNone, ok
	}
	socket, ok := r.path(n)
	return Agent(socket), ok
}

// path reads a path on this machine.
func (r *reader) path(n *yaml.Node) (string, bool) {
	s, ok := r.text(n)
	if !ok {
		return "", false
	}
	return r.expand(n, s)
}

// expand makes a path absolute: "~" is the home, and a relative path starts
// where the inventory file is, so that it means the same from anywhere.
func (r *reader) expand(n *yaml.Node, path string) (string, bool) {
	rest, inHome := strings.CutPrefix(path, "~")
	switch {
	case inHome && (rest == "" || rest[0] == '/'):
		home, err := os.UserHomeDir()
		if err != nil {
			return "", r.fail(n, "set HOME, or write the path in full", "no home directory for ~")
		}
		return filepath.Join(home, rest), true
	case inHome:
		return "", r.fail(n, "write the path in full", "~ with a user's name is not understood")
	case filepath.IsAbs(path):
		return path, true
	}
	return filepath.Join(r.dir, path), true
}

// fingerprint reads a pin as ssh-keygen -l prints it.
func (r *reader) fingerprint(n *yaml.Node) (string, bool) {
	return r.word(n, func(s string) bool {
		sum, found := strings.CutPrefix(s, "SHA256:")
		raw, err := base64.RawStdEncoding.DecodeString(sum)
		return found && err == nil && len(raw) == 32
	}, "ssh-keygen -lf FILE prints it: SHA256: and 43 characters", "%s is not a SHA256 fingerprint")
}

// shell reads a program: a path or a name to be found in PATH. It may be one of
// several in one, as in "busybox ash".
func (r *reader) shell(n *yaml.Node) (string, bool) {
	return r.word(n, func(s string) bool {
		return !strings.ContainsAny(s, "\t'\"$`\\;&|<>(){}*?") && s[0] != '-' && (s[0] == '/' || !strings.Contains(s, "/"))
	}, "a name or an absolute path, without options", "%s is not a shell")
}

func (r *reader) envName(n *yaml.Node) (string, bool) {
	return r.word(n, envNameForm.MatchString, "letters, digits and _, not starting with a digit", "%s is not a variable's name")
}

// remotePath reads a path on the host, which stays as written.
func (r *reader) remotePath(n *yaml.Node) (string, bool) {
	return r.word(n, func(s string) bool { return s[0] == '/' || s == "~" || strings.HasPrefix(s, "~/") },
		"an absolute path, or one in the home: ~/…", "%s is a relative path")
}

// flags reads a list, or one string of words.
func (r *reader) flags(n *yaml.Node) ([]string, bool) {
	if node := r.resolve(n); node.Kind == yaml.ScalarNode {
		s, ok := r.text(n)
		return strings.Fields(s), ok
	}
	return listOf((*reader).text)(r, n)
}

// timeout is a duration that must not be zero.
func (r *reader) timeout(n *yaml.Node) (time.Duration, bool) {
	d, ok := r.duration(n)
	if ok && d == 0 {
		return 0, r.fail(n, "leave it out for the default", "0 is not a timeout")
	}
	return d, ok
}

// ParseDuration reads a Go duration, or whole seconds. It may be negative.
func ParseDuration(text string) (time.Duration, error) {
	if seconds, err := strconv.ParseInt(text, 10, 32); err == nil {
		return time.Duration(seconds) * time.Second, nil
	}
	return time.ParseDuration(text)
}

// duration reads a Go duration or whole seconds.
func (r *reader) duration(n *yaml.Node) (time.Duration, bool) {
	s, ok := r.text(n)
	if !ok {
		return 0, false
	}
	d, err := ParseDuration(s)
	if err != nil {
		return 0, r.fail(n, "whole seconds or a duration such as 10s or 1m30s", "%s is not a duration", brief(s))
	}
	if d < 0 {
		return 0, r.fail(n, "", "%s is negative", brief(s))
	}
	return d, true
}

// env reads variables. Their values are not shown in errors: people keep
// secrets there.
func (r *reader) env(n *yaml.Node, h *Host) bool {
	before := r.problems.Len()
	for key, entry := range r.mapping(n, "") {
		if !envNameForm.MatchString(key) {
			r.fail(entry.key, "letters, digits and _, not starting with a digit", "%s is not a variable's name", brief(key))
			continue
		}
		value := r.resolve(entry.value)
		switch {
		case value.Kind != yaml.ScalarNode || value.ShortTag() == "!!null":
			r.fail(entry.value, `write "" for an empty value`, "variable %s is not a text", key)
			continue
		case strings.ContainsRune(value.Value, 0):
			r.fail(entry.value, "", "variable %s has a NUL byte", key)
			continue
		}
		if h.Env == nil {
			h.Env = make(map[string]string)
		}
		h.Env[key] = value.Value
		h.set("env."+key, r.origin(entry.value))
	}
	return r.problems.Len() == before
}

func (r *reader) tags(n *yaml.Node, h *Host) bool {
	tags, ok := listOf(func(r *reader, n *yaml.Node) (string, bool) {
		tag, ok := r.word(n, tagForm.MatchString, "letters, digits and . _ - : / =", "%s is not a tag")
		if ok {
			h.set("tags."+tag, r.origin(n))
		}
		return tag, ok
	})(r, n)
	h.Tags = phrase.Unique(tags)
	return ok
}
