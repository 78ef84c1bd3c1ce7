package hosts

import (
	"context"
	"errors"
	"io/fs"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"gateway/internal/phrase"
	"gateway/internal/printed"
)

// SSHConfig reads the user's ssh_config, afresh at every call. It may be used
// concurrently.
//
// Which names it knows is always found out by a parser of our own. What it says
// about a name is asked of "ssh -G" where there is an ssh, which is exact, and
// of that parser elsewhere, or where ssh does not know who runs it. The parser does not run Match exec, does not
// canonicalize names and does not check who owns the files.
type SSHConfig struct {
	file string
	ssh  string
	// defaults are what ssh -G says without a file, which is the same for all
	// names; nil until they are known.
	defaults atomic.Pointer[map[string][]string]
}

// NewSSHConfig returns the configuration in file, or, if that is empty, the
// user's own followed by the system's, as ssh finds them. SSHPath is the ssh
// program; without one the parser does all.
func NewSSHConfig(file, sshPath string) *SSHConfig {
	return &SSHConfig{file: file, ssh: sshPath}
}

// sshTimeout bounds one ssh -G, which takes 8 ms unless a Match exec or a
// name server makes it wait.
const sshTimeout = 10 * time.Second

// Knows reports whether a Host line names the host, or matches it with more
// than wildcards. The error is an *[Error] about a file that could not be read.
func (c *SSHConfig) Knows(name string) (bool, error) {
	if !nameForm.MatchString(name) {
		return false, nil
	}
	scan, err := c.scan(name, Given{})
	if err != nil {
		return false, err
	}
	return scan.named, nil
}

// Aliases returns the names that Host lines spell out, in their order, those
// of included files too.
func (c *SSHConfig) Aliases() ([]string, error) {
	// The list is the same whichever name is looked up.
	scan, err := c.scan(localhost, Given{})
	if err != nil {
		return nil, err
	}
	return phrase.Unique(scan.aliases), nil
}

// Given is what is settled about a host before ssh_config is asked, as by ssh's
// -l, -p and -o HostName. It is zero where nothing is.
type Given struct {
	User     string
	Port     int
	HostName string // an address
}

// Resolve returns what ssh_config says about a name, whether or not it
// [SSHConfig.Knows] it. What it leaves at ssh's own default is left out. What is
// given goes before what ssh_config says: Match lines and tokens are about that
// account and that address.
//
// Asking ssh runs what the user's Match exec lines say, just as ssh itself
// would. The name may be an address. The error is an *[Error] that wraps the context's, if
// that was it.
func (c *SSHConfig) Resolve(ctx context.Context, name string, given Given) (Settings, error) {
	if !addrAllowed(name) { // ssh would read other words as options, as a user or as a URI
		return Settings{}, unknownHost(name, hintList)
	}
	if c.ssh == "" {
		scan, err := c.scan(name, given)
		if err != nil {
			return Settings{}, err
		}
		return newSettings(name, scan.values, nil, scan.warnings)
	}
	values, err := c.ask(ctx, c.file, name, given)
	if errors.Is(err, errNoSSH) {
		return NewSSHConfig(c.file, "").Resolve(ctx, name, given)
	}
	if errors.Is(err, context.DeadlineExceeded) { // ssh waits for who writes a FIFO
		if _, unread := c.scan(name, given); unread != nil {
			return Settings{}, unread
		}
	}
	if err != nil {
		return Settings{}, err
	}
	// ssh -G prints every setting. What it prints without a file is default.
	defaults := c.defaults.Load()
	if defaults == nil {
		asked, err := c.ask(ctx, "none", name, Given{})
		if err != nil {
			return Settings{}, err
		}
		delete(asked, "host") // these are the name's
		delete(asked, "hostname")
		defaults = &asked
		c.defaults.Store(defaults)
	}
	for key, value := range *defaults {
		if slices.Equal(values[key], value) {
			delete(values, key)
		}
	}
	written := func(key string) ([][]string, error) {
		scan, err := c.scan(name, given)
		if err != nil {
			return nil, err
		}
		return scan.lists[key], nil
	}
	return newSettings(name, values, written, nil)
}

var errNoSSH = errors.New("no ssh that does anything")

// options are what is given as ssh takes it. It refuses some accounts, and would
// take some addresses for more than one word: those are left out.
func (g Given) options() []string {
	var args []string
	if ValidUser(g.User) {
		args = append(args, "-l", g.User)
	}
	if g.Port != 0 {
		args = append(args, "-p", strconv.Itoa(g.Port))
	}
	if g.HostName != "" && !strings.ContainsAny(g.HostName, sshBlank+`"'\`) {
		args = append(args, "-o", "HostName="+g.hostName())
	}
	return args
}

// hostName is the address as ssh_config has it: %h would stand for the name.
func (g Given) hostName() string { return strings.ReplaceAll(g.HostName, "%", "%%") }

// ask runs ssh -G and returns its lines by keyword.
func (c *SSHConfig) ask(ctx context.Context, file, name string, given Given) (map[string][]string, error) {
	ctx, cancel := context.WithTimeout(ctx, sshTimeout)
	defer cancel()
	args := []string{"-G"}
	if file != "" {
		args = append(args, "-F", file)
	}
	args = append(args, given.options()...)
	stdout, stderr, err := printed.By(exec.CommandContext(ctx, c.ssh, append(args, "--", name)...))
	if err != nil {
		hint := ""
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if errors.Is(ctx.Err(), context.Canceled) { // by the caller, which says nothing about ssh_config
			return nil, &Error{Code: codeInterrupted, Message: "ssh -G " + name + ": " + err.Error(), Err: errors.Join(err, ctx.Err())}
		}
		if errors.Is(err, context.DeadlineExceeded) {
			hint = "a Match exec may keep it waiting, or a name server that CanonicalizeHostname asks: try it by hand"
		}
		why := firstLine(string(stderr), err)
		// A container may run as an account that is nowhere written down: ssh does nothing
		// for it, whatever its configuration says.
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) || strings.HasPrefix(why, "No user exists for uid ") {
			return nil, errNoSSH
		}
		return nil, &Error{Code: codeInventory, Message: "ssh -G " + name + ": " + why, Hint: hint, Err: err}
	}
	values := make(map[string][]string)
	for line := range strings.Lines(string(stdout)) {
		key, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), " ")
		key = strings.ToLower(key)
		values[key] = append(values[key], value)
	}
	return values, nil
}

// firstLine returns the first line of what ssh complained about that has
// substance, or else what the system said.
func firstLine(stderr string, err error) string {
	for line := range strings.Lines(stderr) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "Pseudo-terminal will not") {
			return line
		}
	}
	return err.Error()
}
