package hosts

import (
	"fmt"
	"maps"
	"os"
	"os/user"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Settings is what ssh_config says about one name. Zero fields, and nil lists,
// are left out; a list that is empty but not nil was set to "none".
type Settings struct {
	HostName     string
	Port         int
	User         string
	Jump         []string
	ProxyCommand string

	Identity       []string
	Certificate    []string
	IdentitiesOnly bool
	// Agent is meaningful only with HasAgent: its zero value is an agent too.
	Agent    Agent
	HasAgent bool

	KnownHosts       []string
	GlobalKnownHosts []string
	RevokedHostKeys  string
	HostKeyAlias     string
	// HostKeyPolicy is "strict" or "accept-new", or empty for ssh's "ask".
	HostKeyPolicy  string
	HashKnownHosts bool

	ConnectTimeout time.Duration
	Keepalive      time.Duration

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
	from := s.layer()
	for key, origin := range from.origin {
		if h.states(key) || hasWay && (key == "jump" || key == "proxy_command") {
			continue
		}
		fieldsByKey[key].copy(&filled, from)
		filled.set(key, origin)
	}
	return filled
}

// states reports whether a key has a value from a layer, or one that a caller
// put there.
func (h *Host) states(key string) bool {
	return h.has(key) || !reflect.ValueOf(fieldsByKey[key].value(h)).IsZero()
}

// layer is the settings as the least specific layer of a host.
func (s Settings) layer() *Host {
	h := &Host{}
	set := func(key string, isSet bool) {
		if isSet {
			h.set(key, SSHConfigOrigin)
		}
	}
	h.Addr, h.Port, h.User = s.HostName, s.Port, s.User
	set("addr", s.HostName != "")
	set("port", s.Port != 0)
	set("user", s.User != "")
	h.Jump, h.ProxyCommand = s.Jump, s.ProxyCommand
	set("jump", s.Jump != nil)
	set("proxy_command", s.ProxyCommand != "")
	h.Identity, h.Certificate, h.IdentitiesOnly = s.Identity, s.Certificate, s.IdentitiesOnly
	set("identity", s.Identity != nil)
	set("certificate", s.Certificate != nil)
	set("identities_only", s.IdentitiesOnly)
	h.Agent = s.Agent
	set("agent", s.HasAgent)
	h.KnownHosts, h.GlobalKnownHosts = s.KnownHosts, s.GlobalKnownHosts
	set("known_hosts", s.KnownHosts != nil)
	set("global_known_hosts", s.GlobalKnownHosts != nil)
	h.RevokedHostKeys = s.RevokedHostKeys
	set("revoked_host_keys", s.RevokedHostKeys != "")
	h.HostKeyAlias, h.HostKeyPolicy, h.HashKnownHosts = s.HostKeyAlias, s.HostKeyPolicy, s.HashKnownHosts
	set("host_key_alias", s.HostKeyAlias != "")
	set("host_key_policy", s.HostKeyPolicy != "")
	set("hash_known_hosts", s.HashKnownHosts)
	h.ConnectTimeout, h.Keepalive = s.ConnectTimeout, s.Keepalive
	set("connect_timeout", s.ConnectTimeout != 0)
	set("keepalive", s.Keepalive != 0)
	return h
}

// newSettings makes sense of values by keyword, as ssh -G or the parser gives
// them. With ssh -G, written returns what the lines of the files say of a list of
// files; it is nil with the parser.
func newSettings(name string, values map[string][]string, written func(key string) ([][]string, error), warnings []string) (Settings, error) {
	p := &settingsParser{
		values:  values,
		written: written,
		tokens:  Tokens{Name: name, Host: strings.ToLower(name)},
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
	tokens  Tokens
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
		p.s.HostName, p.tokens.Host = host, host
	}
	if text := p.first("port"); text != "" {
		port, err := strconv.Atoi(text)
		if err != nil || port < 1 || port > 65535 {
			return &Error{Code: codeInventory, Message: fmt.Sprintf("ssh_config: host %s: bad port %s", name, brief(text))}
		}
		if port != 22 {
			p.s.Port, p.tokens.Port = port, port
		}
	}
	account := p.first("user")
	if local, err := user.Current(); err == nil && account == local.Username {
		account = ""
	}
	p.s.User, p.tokens.User = account, account
	p.s.HostKeyAlias = p.first("hostkeyalias")
	p.tokens.Alias = p.s.HostKeyAlias
	return nil
}

func (p *settingsParser) way() {
	if jump := p.first("proxyjump"); jump != "" && !strings.EqualFold(jump, "none") {
		for hop := range strings.SplitSeq(jump, ",") {
			hop = strings.TrimSpace(hop)
			if expanded, err := p.tokens.Expand(hop); err == nil {
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
	case strings.EqualFold(socket, "none"):
		p.s.Agent, p.s.HasAgent = AgentNone, true
	case socket == "SSH_AUTH_SOCK":
		p.s.Agent, p.s.HasAgent = AgentEnv, true
	case socket[0] == '$' && envNameForm.MatchString(socket[1:]):
		// The variable names the socket, unlike ${VAR} inside a path.
		p.s.Agent, p.s.HasAgent = Agent(os.Getenv(socket[1:])), true
		if p.s.Agent == AgentEnv {
			p.s.Agent = AgentNone
		}
	default:
		if path, ok := p.path(socket); ok {
			p.s.Agent, p.s.HasAgent = Agent(path), true
		}
	}
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
		if path, ok := p.path(file); ok {
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
	expanded, err := p.tokens.Expand(expanded)
	if err != nil {
		return "", err
	}
	return sshHomePath(expanded), nil
}

// seconds reads a time as ssh_config has it: 90, 1m30s, 2h. Zero and none are
// zero.
func (p *settingsParser) seconds(key string) time.Duration {
	var total, number time.Duration
	for _, c := range strings.ToLower(p.first(key)) {
		unit, isUnit := sshUnits[c]
		switch {
		case '0' <= c && c <= '9' && number < 1<<24:
			number = number*10 + time.Duration(c-'0')
		case isUnit && number < 1<<24:
			total += number * unit
			number = 0
		default:
			if p.first(key) != "none" {
				p.warn("%s %s is not a time", key, brief(p.first(key)))
			}
			return 0
		}
	}
	return total + number*time.Second
}

var sshUnits = map[rune]time.Duration{
	's': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour, 'w': 7 * 24 * time.Hour,
}

func yes(word string) bool { return strings.EqualFold(word, "yes") || strings.EqualFold(word, "true") }
