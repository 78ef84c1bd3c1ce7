package hosts

import (
	"cmp"
	"slices"
	"strings"
)

// Inventory is the hosts of a configuration: those of its files, and localhost
// always, which comes first. It does not change once loaded; all methods may
// be called concurrently.
//
// What is more specific wins: host, then group, then the defaults of the file
// that defines the host. Of a host's groups, a nested one beats those that it
// is nested in; otherwise the one further down in the files wins. Variables
// and tags of all layers are merged. The defaults do not apply to localhost:
// they are about reaching other machines.
type Inventory struct {
	members    []*member
	index      map[string]int
	groups     []linkedGroup // in the order of the files
	groupIndex map[string]int
}

// A member is a host before its layers are merged, the most specific last.
type member struct {
	name   string
	layers []*block
	groups []string
}

type linkedGroup struct {
	name  string
	hosts []int
}

// Host returns a host by its exact name. The error is an *[Error] that matches
// [ErrUnknown] and names what is near.
func (inv *Inventory) Host(name string) (Host, error) {
	i, ok := inv.index[name]
	if !ok {
		return Host{}, inv.Unknown(name, nil)
	}
	return inv.members[i].host(), nil
}

// Unknown is the error of a name that is no host's, and may be a group's. It names
// what is near, also among others, which somebody else knows.
func (inv *Inventory) Unknown(name string, others []string) *Error {
	hint := DidYouMean(name, "", append(inv.Names(), others...))
	if _, ok := inv.groupIndex[name]; ok {
		hint = "did you mean the group @" + name + "?"
	}
	return unknownHost(name, cmp.Or(hint, inv.list()))
}

// list is the hint for a word that nothing is near to.
func (inv *Inventory) list() string {
	if len(inv.members) == 1 {
		return "the inventory has only localhost: gateway doctor says which file it is to be"
	}
	return hintList
}

const hintList = "gateway hosts list shows what there is"

func unknownHost(name, hint string) *Error {
	return &Error{Code: codeUnknown, Message: "unknown host " + brief(name), Hint: hint, Err: ErrUnknown}
}

// host merges the layers.
func (m *member) host() Host {
	h := Host{Name: m.name, Groups: slices.Clone(m.groups), Transport: transportSSH}
	if m.name == localhost {
		h.Transport = transportLocal
	}
	for _, layer := range m.layers {
		h.merge(&layer.Host)
	}
	if h.Local() && strings.HasSuffix(h.origin["user"], fromDefaults) {
		h.clear("user") // the defaults are about reaching other machines, as another user
	}
	h.Addr = strings.ReplaceAll(h.Addr, "{name}", m.name)
	return h
}

// way returns the layer that says how the host is reached through others; nil
// if none does.
func (m *member) way() *block {
	for _, layer := range slices.Backward(m.layers) {
		if layer.has("jump") || layer.has("proxy_command") {
			return layer
		}
	}
	return nil
}

func (m *member) hasTag(tag string) bool {
	return slices.ContainsFunc(m.layers, func(b *block) bool { return slices.Contains(b.Tags, tag) })
}

// Names returns the names of all hosts in inventory order.
func (inv *Inventory) Names() []string {
	names := make([]string, len(inv.members))
	for i, m := range inv.members {
		names[i] = m.name
	}
	return names
}

// Groups returns the names of the groups in the order of the files.
func (inv *Inventory) Groups() []string {
	var names []string
	for _, g := range inv.groups {
		names = append(names, g.name)
	}
	return names
}

// Tags returns the tags of all hosts, sorted.
func (inv *Inventory) Tags() []string {
	seen := make(map[*block]bool)
	var tags []string
	for _, m := range inv.members {
		for _, layer := range m.layers {
			if !seen[layer] {
				seen[layer] = true
				tags = append(tags, layer.Tags...)
			}
		}
	}
	slices.Sort(tags)
	return slices.Compact(tags)
}
