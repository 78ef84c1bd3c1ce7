// Package hosts knows the machines that commands can run on: the inventory
// with its hosts, groups and tags, the selectors that pick hosts from it, and
// what ssh_config adds. It is plain data and matching; the only I/O is reading
// an inventory or ssh_config file, and asking ssh -G.
package hosts

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// Host is a named machine and how to reach it. It belongs to the caller, who
// may change it: nothing in it is shared with the [Inventory].
//
// A field that the inventory leaves out is zero, and [Host.Origin] of its key
// is empty; that is how "login: false" differs from nothing about login.
type Host struct {
	// Name is the name in the inventory, such as web01.
	Name string
	// Groups are the groups that the host is in, directly or through a nested
	// group, in the order in which they apply: the last one wins.
	Groups []string

	// Transport is "ssh" or "local"; never empty in a Host of an [Inventory].
	Transport string
	// Addr is a host name or an IP address without brackets. If it is empty,
	// Name is the address: see [Host.Address].
	Addr string
	// Port is 0 if left out.
	Port int
	User string
	// Jump is the way to the host, the first hop first: [ParseJump] reads an
	// entry. The inventory never has both Jump and ProxyCommand.
	Jump []string
	// ProxyCommand is as written, with its tokens: %h, %k, %n, %p, %r and %%.
	ProxyCommand string

	// Identity lists private keys: paths, "env:NAME", "cmd:…".
	Identity []string
	// Passphrase, Password and Sudo.Password are references: "env:NAME",
	// "file:PATH" or "cmd:…". [ParseReference] takes them apart.
	Passphrase  string
	Password    string
	Certificate []string
	Agent       Agent

	KnownHosts []string
	// HostKey lists the only keys to accept, as "SHA256:…" fingerprints.
	HostKey []string
	// HostKeyPolicy is "strict", "accept-new", "ask" or empty.
	HostKeyPolicy string

	Shell   string
	Login   bool
	Env     map[string]string
	EnvPass []string
	// Cwd is a directory on the host: absolute, or in the home with "~".
	Cwd  string
	Sudo Sudo

	Tags []string

	// ConnectTimeout and Keepalive are 0 if left out; Keepalive is also 0 if
	// it is switched off, and has an origin then.
	ConnectTimeout time.Duration
	Keepalive      time.Duration
	MaxSessions    int
	Files          Files

	// What only ssh_config can say; the inventory has no words for it.
	HostKeyAlias     string
	IdentitiesOnly   bool
	GlobalKnownHosts []string
	RevokedHostKeys  string
	HashKnownHosts   bool

	// origin says for each key where its value came from. It is never changed
	// once the Host is handed out, so copies of the Host may share it.
	origin map[string]string
}

// Agent says which ssh-agent a host may use: a socket's path, or one of the
// constants.
type Agent string

const (
	// AgentEnv is the agent that SSH_AUTH_SOCK names.
	AgentEnv Agent = ""
	// AgentNone is no agent at all.
	AgentNone Agent = "none"
)

// Sudo is how a host's account becomes another user.
type Sudo struct {
	User     string
	Password string // a reference
	Flags    []string
}

// Address is what to connect to: Addr, or else the name.
func (h Host) Address() string { return cmp.Or(h.Addr, h.Name) }

// Local reports whether the host is this machine, reached without SSH.
func (h Host) Local() bool { return h.Transport == transportLocal }

// Origin says where the value of a key came from, such as
// "hosts.yaml:12 (group web)". Keys are spelled as in the inventory, nested
// ones with a dot: "sudo.user", "env.APP_ENV", "tags.eu". It is empty for a
// value that was left out.
func (h Host) Origin(key string) string { return h.origin[key] }

// Field is one value of a host for people to read.
type Field struct {
	Key    string
	Value  any
	Origin string
}

// Fields lists what is set on the host, in a fixed order, with where it came
// from. Variables have a Field each.
func (h Host) Fields() []Field {
	var list []Field
	for _, f := range fields {
		if f.key == "env" {
			for _, name := range slices.Sorted(maps.Keys(h.Env)) {
				list = append(list, Field{"env." + name, h.Env[name], h.origin["env."+name]})
			}
			continue
		}
		if origin, ok := h.origin[f.key]; ok {
			list = append(list, Field{f.key, f.value(&h), origin})
		}
	}
	return list
}

// set notes where the value of a key came from.
func (h *Host) set(key, origin string) {
	if h.origin == nil {
		h.origin = make(map[string]string)
	}
	h.origin[key] = origin
}

// has reports whether a key has a value.
func (h *Host) has(key string) bool {
	_, ok := h.origin[key]
	return ok
}

// clear takes a value back.
func (h *Host) clear(key string) {
	fieldsByKey[key].copy(h, &Host{})
	delete(h.origin, key)
}

// merge puts what layer says over what h says. layer stays as it is and shares
// nothing with h.
func (h *Host) merge(layer *Host) {
	// Two ways to the host exclude each other: naming one drops the other of a
	// less specific layer.
	if layer.has("jump") {
		h.clear("proxy_command")
	}
	if layer.has("proxy_command") {
		h.clear("jump")
	}
	for key, origin := range layer.origin {
		switch {
		case strings.HasPrefix(key, "env."), strings.HasPrefix(key, "tags."):
			h.set(key, origin)
			continue
		case key == "env" || key == "tags":
			if before := h.origin[key]; before != "" {
				origin = before + ", " + origin
			}
		}
		fieldsByKey[key].copy(h, layer)
		h.set(key, origin)
	}
}
