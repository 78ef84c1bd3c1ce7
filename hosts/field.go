package hosts

import (
	"maps"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"gateway/internal/phrase"
)

// A field is one key of a host: how it is read, laid over another layer's
// value and shown. Keys of nested mappings have a dot.
type field struct {
	key   string
	read  func(r *reader, n *yaml.Node, h *Host) bool
	copy  func(to, from *Host)
	value func(h *Host) any
}

// fields is every key that a host, a group or the defaults may have. It drives
// reading, merging, suggestions and Host.Fields.
var fields = []field{
	one("transport", func(h *Host) *string { return &h.Transport }, (*reader).transport),
	one("addr", func(h *Host) *string { return &h.Addr }, (*reader).addr),
	one("port", func(h *Host) *int { return &h.Port }, (*reader).port),
	one("user", func(h *Host) *string { return &h.User }, (*reader).user),
	many("jump", func(h *Host) *[]string { return &h.Jump }, (*reader).jump),
	one("proxy_command", func(h *Host) *string { return &h.ProxyCommand }, (*reader).text),
	many("identity", func(h *Host) *[]string { return &h.Identity }, listOf((*reader).identity)),
	one("passphrase", func(h *Host) *string { return &h.Passphrase }, (*reader).reference),
	many("certificate", func(h *Host) *[]string { return &h.Certificate }, listOf((*reader).path)),
	one("agent", func(h *Host) *Agent { return &h.Agent }, (*reader).agent),
	one("password", func(h *Host) *string { return &h.Password }, (*reader).reference),
	many("known_hosts", func(h *Host) *[]string { return &h.KnownHosts }, listOf((*reader).path)),
	many("host_key", func(h *Host) *[]string { return &h.HostKey }, listOf((*reader).fingerprint)),
	one("host_key_policy", func(h *Host) *string { return &h.HostKeyPolicy }, (*reader).policy),
	one("shell", func(h *Host) *string { return &h.Shell }, (*reader).shell),
	one("login", func(h *Host) *bool { return &h.Login }, (*reader).boolean),
	{
		key:  "env",
		read: (*reader).env,
		copy: func(to, from *Host) {
			if to.Env == nil && from.Env != nil {
				to.Env = make(map[string]string)
			}
			maps.Copy(to.Env, from.Env)
		},
		value: func(h *Host) any { return h.Env },
	},
	many("env_pass", func(h *Host) *[]string { return &h.EnvPass }, listOf((*reader).envName)),
	one("cwd", func(h *Host) *string { return &h.Cwd }, (*reader).remotePath),
	one("sudo.user", func(h *Host) *string { return &h.Sudo.User }, (*reader).user),
	one("sudo.password", func(h *Host) *string { return &h.Sudo.Password }, (*reader).reference),
	many("sudo.flags", func(h *Host) *[]string { return &h.Sudo.Flags }, (*reader).flags),
	{
		key:  "tags",
		read: (*reader).tags,
		copy: func(to, from *Host) {
			to.Tags = phrase.Unique(slices.Concat(to.Tags, from.Tags))
		},
		value: func(h *Host) any { return h.Tags },
	},
	one("connect_timeout", func(h *Host) *time.Duration { return &h.ConnectTimeout }, (*reader).timeout),
	one("keepalive", func(h *Host) *time.Duration { return &h.Keepalive }, (*reader).duration),
	one("max_sessions", func(h *Host) *int { return &h.MaxSessions }, (*reader).positive),
	many("files.allow", func(h *Host) *[]string { return &h.Files.Allow }, listOf((*reader).pathPattern)),
	many("files.deny", func(h *Host) *[]string { return &h.Files.Deny }, listOf((*reader).pathPattern)),

	// Without a reader: ssh_config alone sets these.
	sshOnly("host_key_alias", func(h *Host) *string { return &h.HostKeyAlias }),
	sshOnly("identities_only", func(h *Host) *bool { return &h.IdentitiesOnly }),
	sshOnly("global_known_hosts", func(h *Host) *[]string { return &h.GlobalKnownHosts }),
	sshOnly("revoked_host_keys", func(h *Host) *string { return &h.RevokedHostKeys }),
	sshOnly("hash_known_hosts", func(h *Host) *bool { return &h.HashKnownHosts }),
}

var fieldsByKey = func() map[string]field {
	index := make(map[string]field, len(fields))
	for _, f := range fields {
		index[f.key] = f
	}
	return index
}()

// one makes a field whose more specific value replaces the other.
func one[T any](key string, at func(*Host) *T, read func(*reader, *yaml.Node) (T, bool)) field {
	return field{
		key: key,
		read: func(r *reader, n *yaml.Node, h *Host) bool {
			value, ok := read(r, n)
			if ok {
				*at(h) = value
			}
			return ok
		},
		copy:  func(to, from *Host) { *at(to) = *at(from) },
		value: func(h *Host) any { return *at(h) },
	}
}

// many is [one] for lists: the layers share no memory.
func many(key string, at func(*Host) *[]string, read func(*reader, *yaml.Node) ([]string, bool)) field {
	f := one(key, at, read)
	f.copy = func(to, from *Host) { *at(to) = slices.Clone(*at(from)) }
	return f
}

func sshOnly[T any](key string, at func(*Host) *T) field {
	f := one(key, at, nil)
	f.read = nil
	return f
}

// otherWords are what ssh_config and other tools call our keys.
var otherWords = map[string]string{
	"address": "addr", "host": "addr", "hostname": "addr", "ansible_host": "addr", "ip": "addr",
	"username": "user", "login_user": "user", "ansible_user": "user", "remote_user": "user",
	"key": "identity", "identityfile": "identity", "identity_file": "identity", "private_key": "identity",
	"proxyjump": "jump", "proxy_jump": "jump", "bastion": "jump", "gateway": "jump",
	"become": "sudo", "become_user": "sudo.user", "environment": "env", "vars": "env",
	"strict_host_key_checking": "host_key_policy", "timeout": "connect_timeout", "dir": "cwd",
	"connection": "transport", "labels": "tags", "fingerprint": "host_key",
}
