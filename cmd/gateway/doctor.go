package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"
	sshagent "golang.org/x/crypto/ssh/agent"

	"gateway/daemon/client"
	"gateway/gateway"
	"gateway/hosts"
	"gateway/internal/config"
	"gateway/internal/regular"
	"gateway/internal/socket"
	"gateway/mcpserver"
)

// The outcomes of an examination.
const (
	fine    = "ok"
	warning = "warn"
	failed  = "fail"
)

// A finding is what an examination found, and what helps.
type finding struct {
	Check   string `json:"check"`
	Status  string `json:"status"`
	Message string `json:"message"`
	Remedy  string `json:"remedy,omitempty"`
}

// A doctor looks at all that gateway stands on. It changes nothing.
type doctor struct {
	app      *app
	findings []finding
}

func (a *app) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Check the settings, the keys, the daemon and gateway mcp",
		Long: `Check what gateway depends on: settings, inventory, keys, the secrets that hosts
refer to (except those that a command prints), the SSH agent, known_hosts, the
place for records, the daemon, and an MCP handshake with itself. It changes
nothing, starts nothing and connects to no host (for that: gateway hosts check).
The status is 1 if something is broken.`,
		Example: `  gateway doctor
  gateway doctor -o json`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			d := &doctor{app: a}
			d.examine(cmd.Context())
			if err := context.Cause(cmd.Context()); err != nil {
				return err // what it has cut short is no finding
			}
			return d.report()
		},
	}
}

func (d *doctor) note(check, status, remedy, format string, args ...any) {
	d.findings = append(d.findings, finding{check, status, fmt.Sprintf(format, args...), remedy})
}

// wrong notes an error.
func (d *doctor) wrong(check string, err error) {
	d.note(check, failed, gateway.Hint(err), "%v", err)
}

// guarded looks whether anybody may choose what is run here. A group may mean to.
func (d *doctor) guarded(check, path string) {
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o002 != 0 {
		d.note(check, warning, "chmod o-w "+path, "anybody can write to %s (%04o), and so have commands run as you", path, info.Mode().Perm())
	}
}

func (d *doctor) examine(ctx context.Context) {
	a := d.app
	if err := a.tryLoad(); err != nil {
		d.wrong("config", err)
		return // nothing else can be known
	}
	files := a.source.Files()
	where := files[0].Path
	if read := slices.IndexFunc(files, config.File.Exists); read >= 0 {
		where = files[read].Path
	} else {
		where += " is not there: defaults"
	}
	d.note("config", fine, "", "%s", where)
	if ignored := a.config.Ignored(); len(ignored) > 0 {
		d.note("config", warning, "gateway config show lists the keys", "variables that name no setting: %s", strings.Join(ignored, ", "))
	}
	for _, file := range files {
		d.guarded("config", file.Path)
	}
	g, err := a.open(nil, policyStrict)
	if err != nil {
		d.wrong("inventory", err)
		return
	}
	defer g.Close()
	if len(a.config.Inventory) == 0 {
		usable := "only localhost"
		if a.config.SSHConfig != "off" {
			usable += " and the hosts of ssh_config"
		}
		d.note("inventory", warning, "write hosts.yaml beside the configuration: "+filepath.Dir(files[0].Path), "there is none: %s can be used", usable)
	} else {
		d.note("inventory", fine, "", "%s: %s", strings.Join(a.config.Inventory, ", "), plural(int64(len(g.Inventory().Names())-1), "host"))
	}
	for _, file := range a.config.Inventory {
		d.guarded("inventory", file)
	}
	d.keys(ctx, g)
	d.agent(ctx)
	d.state()
	d.daemon(ctx)
	d.handshake(ctx, g)
}

// keys looks at the files that the hosts name, and at the usual ones.
func (d *doctor) keys(ctx context.Context, g *gateway.Gateway) {
	users := map[string]bool{} // files, and whether they must be there
	known := map[string]bool{} // files, and whether a host that pins no key has only these
	references := map[string]bool{}
	for _, name := range g.Inventory().Names() {
		host, err := g.Resolve(ctx, name)
		references[host.Sudo.Password] = true
		if err == nil && host.Local() {
			continue
		}
		var target gateway.Target
		if err == nil {
			target, err = g.Target(ctx, host)
		}
		if err != nil {
			d.wrong("host "+name, err)
			continue
		}
		references[target.Password], references[target.Passphrase] = true, true
		for _, key := range target.Identities {
			if hosts.IsKeyReference(key.Key) {
				references[key.Key] = true
			} else {
				users[key.Key] = users[key.Key] || !key.Optional
			}
		}
		for _, file := range target.HostKeys.Files {
			known[file] = known[file] || len(target.HostKeys.Pins) == 0
		}
	}
	there := 0
	for _, path := range slices.Sorted(maps.Keys(users)) {
		there += d.private(path, users[path])
	}
	if there > 0 {
		d.note("keys", fine, "", "%s that only you can read", plural(int64(there), "key"))
	}
	d.secrets(ctx, references)
	d.knownHosts(known)
}

// private returns 1 for a private key that is as it should be. What a public one
// names, the agent has.
func (d *doctor) private(path string, needed bool) int {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(path + ".pub"); err == nil {
			return 0
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist) && !needed:
	case err != nil:
		d.note("keys", failed, "put the key there, or change identity in the inventory", "%v", err)
	case strings.HasSuffix(path, ".pub"):
	case info.Mode().Perm()&0o077 != 0:
		d.note("keys", warning, "chmod 600 "+path, "others can read %s (%04o)", path, info.Mode().Perm())
	default:
		f, err := regular.Open(path)
		if err != nil {
			d.note("keys", failed, "see who owns the file, and whether it is a regular one", "%v", err)
			return 0
		}
		f.Close()
		return 1
	}
	return 0
}

// knownHosts looks who may change what decides about host keys.
func (d *doctor) knownHosts(files map[string]bool) {
	there, needed := 0, false
	for _, path := range slices.Sorted(maps.Keys(files)) {
		needed = needed || files[path]
		info, err := os.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist), path == os.DevNull:
		case err != nil:
			d.note("known_hosts", failed, "see who owns the file and its directory", "%v", err)
		case info.Mode().Perm()&0o022 != 0:
			d.note("known_hosts", failed, "chmod go-w "+path, "others can write to %s (%04o)", path, info.Mode().Perm())
		default:
			f, err := regular.Open(path)
			if err != nil { // no key in it counts
				d.note("known_hosts", failed, "see who owns the file, and whether it is a regular one", "%v", err)
				continue
			}
			f.Close()
			there++
		}
	}
	if there == 0 && needed {
		d.note("known_hosts", warning, "gateway hosts trust HOST shows a host's key and adds it", "no host key is known")
	} else if there > 0 {
		d.note("known_hosts", fine, "", "%s that only the owner can write to", plural(int64(there), "file"))
	}
}

// agent looks whether the SSH agent answers.
func (d *doctor) agent(ctx context.Context) {
	const hint = "start one with ssh-agent, or unset SSH_AUTH_SOCK"
	path := os.Getenv("SSH_AUTH_SOCK")
	if path == "" {
		d.note("agent", fine, "", "none (SSH_AUTH_SOCK is not set)")
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	if err != nil {
		d.note("agent", warning, hint, "%v", err)
		return
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	keys, err := sshagent.NewClient(conn).List()
	switch {
	case err != nil:
		d.note("agent", warning, hint, "%s: %v", path, err)
	case len(keys) == 0:
		d.note("agent", warning, "add one with ssh-add", "%s has no keys", path)
	default:
		d.note("agent", fine, "", "%s has %d keys", path, len(keys))
	}
}

// daemon looks whether one answers. It starts none.
func (d *doctor) daemon(ctx context.Context) {
	a := d.app
	path, err := a.socket()
	if err != nil {
		d.wrong("daemon", err)
		return
	}
	c := client.At(path, "")
	defer c.Release()
	hello, err := c.Hello(ctx)
	switch {
	case socket.Absent(err) && a.config.NoDaemon:
		d.note("daemon", fine, "", "none, and none is wanted (no_daemon)")
	case socket.Absent(err) && !a.config.Starts():
		d.note("daemon", warning, "start it with gateway serve, if sessions are wanted", "none listens on %s, and in CI none is started", path)
	case socket.Absent(err) && stateDir("daemon.lock") == "":
		d.note("daemon", warning, "set HOME or XDG_STATE_HOME", "none can be started: no place for the records of sessions")
	case socket.Absent(err):
		d.startable(path)
	case err != nil:
		d.wrong("daemon", err)
	default:
		d.note("daemon", fine, "", "process %d, version %s, %s, %s", hello.PID, hello.Version, plural(int64(hello.Sessions), "session"), path)
	}
}

// handshake speaks the agents' protocol with a server in this process.
func (d *doctor) handshake(ctx context.Context, g *gateway.Gateway) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	here, there := mcp.NewInMemoryTransports()
	server := mcpserver.New(mcpserver.Config{Gateway: g, Version: newVersionInfo().Version}, stdioScope)
	defer server.Close()
	go func() { _ = server.Run(ctx, there) }() // ends with the client
	session, err := mcp.NewClient(&mcp.Implementation{Name: "gateway doctor", Version: newVersionInfo().Version}, nil).Connect(ctx, here, nil)
	if err != nil {
		d.note("mcp", failed, "report this", "handshake: %v", err)
		return
	}
	defer session.Close()
	tools, err := session.ListTools(ctx, nil)
	if err != nil || len(tools.Tools) == 0 {
		d.note("mcp", failed, "report this", "no tools: %v", err)
		return
	}
	d.note("mcp", fine, "", "protocol %s, %d tools", session.InitializeResult().ProtocolVersion, len(tools.Tools))
	if d.app.config.NoDaemon {
		d.note("mcp", warning, "leave no_daemon unset for agents", "gateway mcp needs the daemon, which no_daemon forbids")
	}
}

// report shows what was found. Something that is broken makes the status 1.
func (d *doctor) report() error {
	var rows [][]string
	for _, f := range d.findings {
		remedy := ""
		if f.Remedy != "" {
			remedy = "-> " + f.Remedy
		}
		rows = append(rows, []string{f.Status, f.Check, f.Message, remedy})
	}
	if err := listOrTable(d.app.out, d.findings, rows); err != nil {
		return err
	}
	if slices.ContainsFunc(d.findings, func(f finding) bool { return f.Status == failed }) {
		return ended(statusFailed)
	}
	return nil
}
