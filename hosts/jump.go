package hosts

import (
	"fmt"
	"strconv"
	"strings"
)

// Jump is one hop on the way to a host. Host is a name of the inventory or of
// ssh_config, whose other fields then apply, or else an address.
type Jump struct {
	User string // empty: that of the named host
	Host string
	Port int // 0: that of the named host
}

// ParseJump parses [user@]host[:port]. An IPv6 address with a port needs brackets,
// which ssh -G puts around every address. A ssh:// in front, as ssh_config has it, is
// skipped.
func ParseJump(s string) (Jump, error) {
	bad := fmt.Errorf("%s is not a jump host", brief(s))
	var j Jump
	rest := strings.TrimSuffix(strings.TrimPrefix(s, "ssh://"), "/")
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		j.User, rest = rest[:at], rest[at+1:]
		if !ValidUser(j.User) {
			return Jump{}, bad
		}
	}
	if addrAllowed(rest) && rest != "none" {
		j.Host = rest
		return j, nil
	}
	host, port, hasPort := cutPort(rest)
	if hasPort {
		n, err := strconv.Atoi(port)
		if err != nil || n < 1 || n > 65535 {
			return Jump{}, bad
		}
		j.Port = n
	}
	allowed := addrForm.MatchString
	if inner, ok := strings.CutPrefix(host, "["); ok && strings.HasSuffix(inner, "]") {
		host, allowed = strings.TrimSuffix(inner, "]"), addrAllowed
	}
	if !allowed(host) || host == "none" {
		return Jump{}, bad
	}
	j.Host = host
	return j, nil
}

func cutPort(s string) (host, port string, ok bool) {
	colon := strings.LastIndexByte(s, ':')
	if colon < 0 || strings.HasSuffix(s, "]") {
		return s, "", false
	}
	return s[:colon], s[colon+1:], true
}

// nameOnly reports whether the hop is written as a bare word, which can only
// be a host of the inventory: an address has a dot or a colon.
func (j Jump) nameOnly() bool {
	return j.User == "" && j.Port == 0 && !strings.ContainsAny(j.Host, ".:")
}
