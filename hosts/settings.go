package hosts

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"os"
	"os/user"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Settings is what ssh_config says about one name, in the fields of a host. Zero
// fields, and nil lists, are left out, but for an Agent that has an origin; a list
// that is empty but not nil was set to "none".
type Settings struct {
	Host
	// Warnings say what was not followed to the letter.
	Warnings []string
}

// SSHConfigOrigin is the [Host.Origin] of what ssh_config says.
const SSHConfigOrigin = "ssh_config"

// Fill returns h with what it leaves out taken from s: every field that has no
// origin and is zero. A local host stays as it is.
func (s Settings) Fill(h Host) Host {
	if h.Local() {
		return h
	}
	hasWay := h.states("jump") || h.states("proxy_command")
	filled := h
	filled.origin = maps.Clone(h.origin)
	for _, f := range fields {
		if !s.states(f.key) || h.states(f.key) || hasWay && (f.key == "jump" || f.key == "proxy_command") {
			continue
		}
		f.copy(&filled, &s.Host)
		filled.set(f.key, SSHConfigOrigin)
	}
	return filled
}

// states reports whether a key has a value from a layer, or one that a caller
// put there.
func (h *Host) states(key string) bool {
	return h.has(key) || !reflect.ValueOf(fieldsByKey[key].value(h)).IsZero()
}

// newSettings makes sense of values by keyword, as ssh -G or the parser gives
// them. With ssh -G, written returns what the lines of the files say of a list of
// files; it is nil with the parser.
func newSettings(name string, values map[string][]string, written func(key string) ([][]string, error), warnings []string) (Settings, error) {
	p := &settingsParser{
		values:  values,
		written: written,
		tokens:  tokens{name: name, host: strings.ToLower(name)},
		s:       Settings{Warnings: warnings},
	}
	if err := p.target(name); err != nil {
		return Settings{}, err
	}
	p.way()
	p.keys()
	if err := p.trust(); err != nil {
		return Settings{}, err
	}
	p.s.ConnectTimeout = p.seconds("connecttimeout")
	p.s.Keepalive = p.seconds("serveraliveinterval")
	return p.s, nil
}

type settingsParser struct {
	values  map[string][]string
	written func(key string) ([][]string, error)
	tokens  tokens
	s       Settings
}

func (p *settingsParser) first(key string) string {
	if v := p.values[key]; len(v) > 0 {
		return v[0]
	}
	return ""
}

func (p *settingsParser) warn(format string, args ...any) {
	p.s.Warnings = append(p.s.Warnings, fmt.Sprintf(format, args...))
}

// target reads the address and what else the tokens of all that follows need.
func (p *settingsParser) target(name string) error {
	// ssh writes names in lower case from here on (ssh.c, lowercase(host)).
	if host := strings.ToLower(p.first("hostname")); host != "" && host != strings.ToLower(name) {
		p.s.Addr, p.tokens.host = host, host
	}
	if text := p.first("port"); text != "" {
		port, err := strconv.Atoi(text)
		if err != nil || port < 1 || port > 65535 {
			return &Error{Code: codeInventory, Message: fmt.Sprintf("ssh_config: host %s: bad port %s", name, brief(text))}
		}
		if port != 22 {
			p.s.Port, p.tokens.port = port, port
		}
	}
	account := p.first("user")
	if local, err := user.Current(); err == nil && account == local.Username {
		account = ""
	}
	p.s.User, p.tokens.user = account, account
	p.s.HostKeyAlias = strings.ToLower(p.first("hostkeyalias")) // as ssh has it (ssh.c)
	p.tokens.alias = p.s.HostKeyAlias
	return nil
}

func (p *settingsParser) way() {
	if jump := p.first("proxyjump"); jump != "" && !strings.EqualFold(jump, "none") {
		for hop := range strings.SplitSeq(jump, ",") {
			hop = strings.TrimSpace(hop)
			if expanded, err := p.tokens.expand(hop); err == nil {
				hop = expanded
			}
			p.s.Jump = append(p.s.Jump, hop)
		}
	}
	if command := p.first("proxycommand"); command != "" && !strings.EqualFold(command, "none") {
		p.s.ProxyCommand = command
	}
}

func (p *settingsParser) keys() {
	p.s.Identity = p.paths("identityfile")
	p.s.Certificate = p.paths("certificatefile")
	p.s.IdentitiesOnly = yes(p.first("identitiesonly"))
	switch socket := p.first("identityagent"); {
	case socket == "":
		return
	case strings.EqualFold(socket, "none"):
		p.s.Agent = AgentNone
	case socket == "SSH_AUTH_SOCK":
		p.s.Agent = AgentEnv
	case socket[0] == '$' && envNameForm.MatchString(socket[1:]):
		// The variable names the socket, unlike ${VAR} inside a path.
		p.s.Agent = cmp.Or(Agent(os.Getenv(socket[1:])), AgentNone)
	default:
		path, ok := p.file("identityagent")
		if !ok {
			return
		}
		p.s.Agent = Agent(path)
	}
	p.s.set("agent", SSHConfigOrigin)
}

func (p *settingsParser) trust() error {
	for key := range p.values {
		if isFileList(key) && p.written != nil {
			if err := p.split(key); err != nil {
				return err
			}
		}
	}
	p.s.KnownHosts = p.paths("userknownhostsfile")
	p.s.GlobalKnownHosts = p.paths("globalknownhostsfile")
	if file := p.first("revokedhostkeys"); file != "" && !strings.EqualFold(file, "none") {
		// One whose name cannot be told is not left out: whoever reads it refuses.
		p.s.RevokedHostKeys = file
		if path, ok := p.file("revokedhostkeys"); ok {
			p.s.RevokedHostKeys = path
		}
	}
	p.s.HashKnownHosts = yes(p.first("hashknownhosts"))
	switch strings.ToLower(p.first("stricthostkeychecking")) {
	case "yes", "true":
		p.s.HostKeyPolicy = "strict"
	case "accept-new":
		p.s.HostKeyPolicy = "accept-new"
	case "no", "off", "false":
		// Whoever wrote it wants unseen keys accepted; that a changed key is
		// as well, nobody gets without saying so here.
		p.s.HostKeyPolicy = "accept-new"
		p.warn("StrictHostKeyChecking no is followed as accept-new at most: changed host keys are refused")
	}
	return nil
}

// paths reads a list of files; nil if it was left out, or if none of it can be
// expanded: that is not to say that there are none.
func (p *settingsParser) paths(key string) []string {
	values, ok := p.values[key]
	if !ok {
		return nil
	}
	var paths []string
	for _, value := range values {
		if strings.EqualFold(value, "none") {
			if paths == nil {
				paths = []string{}
			}
		} else if path, ok := p.path(value); ok {
			paths = append(paths, path)
		}
	}
	return paths
}

// path expands variables, tokens and ~. One that cannot be expanded names no
// file: it is dropped with a warning.
func (p *settingsParser) path(s string) (string, bool) {
	expanded, err := p.expand(s)
	if err != nil {
		p.warn("%v", err)
	}
	return expanded, err == nil
}

func (p *settingsParser) expand(s string) (string, error) {
	missing := ""
	expanded := variableForm.ReplaceAllStringFunc(s, func(reference string) string {
		value, ok := os.LookupEnv(reference[2 : len(reference)-1])
		if !ok {
			missing = reference
		}
		return strings.ReplaceAll(value, "%", "%%")
	})
	if missing != "" {
		return "", fmt.Errorf("%s: the variable %s is not set", brief(s), missing)
	}
	expanded, err := p.tokens.expand(expanded)
	if err != nil {
		return "", err
	}
	return sshHomePath(expanded), nil
}

// seconds reads a time as ssh_config has it: 90, 1m30s, 2h. Zero and none are
// zero.
func (p *settingsParser) seconds(key string) time.Duration {
	text := p.first(key)
	if text == "none" {
		return 0
	}
	var total, number int64
	for _, c := range strings.ToLower(text) {
		unit, isUnit := sshUnits[c]
		switch {
		case '0' <= c && c <= '9':
			number = number*10 + int64(c-'0')
		case isUnit:
			total += number * int64(unit/time.Second)
			number = 0
		default:
			total = -1
		}
		if total < 0 || total+number > math.MaxInt32 { // which is as much as ssh takes (misc.c, convtime)
			p.warn("%s %s is not a time", key, brief(text))
			return 0
		}
	}
	return time.Duration(total+number) * time.Second
}

var sshUnits = map[rune]time.Duration{
	's': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour, 'w': 7 * 24 * time.Hour,
}

func yes(word string) bool { return strings.EqualFold(word, "yes") || strings.EqualFold(word, "true") }
