package main

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"github.com/spf13/cobra"

	"gateway/gateway"
	"gateway/hosts"
	"gateway/internal/config"
	"gateway/transport"
)

// An app is one call of gateway: its streams, its settings, and what is known
// about how it is to end.
type app struct {
	out     *output
	console *console
	cancel  context.CancelCauseFunc
	source  config.Source
	config  *config.Config // nil until load
	log     *slog.Logger
	// warm is a connection that the daemon has open; nil: every one is one's own.
	warm func(context.Context, gateway.Target) (transport.Transport, bool)

	// oneHost: the statuses of a single host's command apply. It is a matter
	// of the command line's form.
	oneHost bool
	// ran: a command was started on some host, or may have been.
	ran bool
	// about is what is known of one host's command before it is tried.
	about gateway.Result

	// forgetting: it was said that a run, or its end, is not remembered.
	forgetting sync.Once
	warned     sync.Map // the messages of warnOnce

	departure
}

func newApp(cancel context.CancelCauseFunc) *app {
	c := &console{}
	a := &app{
		out: newOutput(os.Stdout, os.Stderr, c, cancel), console: c, cancel: cancel,
		source:    config.Source{Environ: os.Environ()},
		log:       slog.New(slog.DiscardHandler),
		departure: departure{givenUp: make(chan struct{})},
	}
	a.patience.Store(int64(patience))
	return a
}

// run executes the command line and returns the exit status.
func (a *app) run(ctx context.Context, args []string) int {
	root := a.root()
	root.SetArgs(args)
	if len(args) > 1 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd) {
		plainUsage(root)
		flagsBehind(root, args[1:len(args)-1])
	}
	cmd, err := root.ExecuteContextC(ctx)
	a.console.restore()
	silent := err == nil || errors.As(err, new(exitStatus))
	if signal, ok := interrupted(context.Cause(ctx)); ok && !silent {
		a.log.Info("ended by a signal", "error", err)
		err = signal // whatever it has kept from being done
	}
	if !silent && a.out.failed() == nil {
		a.out.fail(err)
		a.tell(cmd, args, err)
	}
	if failed := a.out.failed(); failed != nil {
		return a.outputStatus(failed, err)
	}
	return a.status(err)
}

// root returns the command tree.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "gateway",
		Short: "Run commands on machines, over SSH or on this one",
		Example: `  gateway exec localhost -- uname -a
  gateway exec web1 --timeout 30s -- make test
  gateway hosts check all`,
		Args:          cobra.ArbitraryArgs,
		RunE:          unknownCommand,
		SilenceErrors: true,
		SilenceUsage:  true,
		CompletionOptions: cobra.CompletionOptions{
			DisableDefaultCmd:         true,
			DefaultShellCompDirective: new(cobra.ShellCompDirectiveNoFileComp),
		},
	}
	root.Version = newVersionInfo().Version
	root.SetVersionTemplate("gateway {{.Version}}\n")
	root.SetOut(a.out)
	root.SetErr(a.out.errors())
	root.SetFlagErrorFunc(flagError)
	show := root.UsageFunc()
	root.SetUsageFunc(func(cmd *cobra.Command) error {
		showOptional(cmd.Flags())
		return wrapped(cmd, show)
	})
	config.Flags(root.PersistentFlags())
	a.source.Flags = root.PersistentFlags()
	completeFlags(root)
	root.AddCommand(a.execCommand(), a.shellCommand(), a.cpCommand(), a.runCommand(), a.runsCommand(), a.sessionCommand(), a.hostsCommand(), a.serveCommand(), a.mcpCommand(), a.doctorCommand(), a.configCommand(), a.versionCommand(), a.completionCommand())
	root.SetHelpCommand(helpCommand())
	refuseEmpty(root)
	return root
}

// load reads the settings. Commands that need none work with broken ones.
func (a *app) load() error {
	c, err := config.Load(a.source)
	if err != nil {
		return err
	}
	a.config = c
	a.out.configure(c)
	if a.log, err = a.newLog(os.Stderr); err != nil {
		return err
	}
	for _, s := range c.Settings() {
		a.log.Debug("setting", "key", s.Key, "value", s.Value, "origin", s.Origin)
	}
	return nil
}

// tryLoad is load for a command that works with broken settings as well.
func (a *app) tryLoad() error {
	err := a.load()
	if err != nil {
		a.out.format = a.formatFor(nil, err)
	}
	return err
}

func (a *app) inventory() (*hosts.Inventory, error) {
	inv, err := hosts.Load(a.config.Inventory...)
	if err == nil {
		a.log.Debug("inventory", "files", a.config.Inventory, "hosts", len(inv.Names()))
	}
	if wrong := new(hosts.Error); errors.As(err, &wrong) && wrong.Hint == "" && errors.Is(err, fs.ErrNotExist) {
		wrong.Hint = "it comes from " + a.config.Origin("inventory")
	}
	return inv, err
}

// sshConfig returns the ssh_config in force; nil if it is off.
func (a *app) sshConfig() *hosts.SSHConfig {
	file := a.config.SSHConfig
	switch file {
	case "off":
		return nil
	case "auto":
		file = ""
	}
	ssh, err := exec.LookPath("ssh")
	if err != nil {
		ssh = "" // the parser of our own does it
	}
	return hosts.NewSSHConfig(file, ssh)
}

// What happens with an unknown key of a host that has no policy of its own.
const (
	policyStrict = "strict"
	policyAsk    = "ask" // if there is somebody
)

// open reads the inventory and returns the gateway, which is to be closed.
func (a *app) open(ask asker, policy string) (*gateway.Gateway, error) {
	inv, err := a.inventory()
	if err != nil {
		return nil, err
	}
	strict := ""
	switch {
	case a.config.CI:
		strict = "CI=true"
	case ask == nil:
		policy = policyStrict
	}
	g := gateway.New(gateway.Config{
		Inventory: inv, SSHConfig: a.sshConfig(), HostKeyPolicy: policy, Strict: strict,
		Ask: ask, Warn: a.warnOnce, Warm: a.warm, SpoolDir: stateDir("spool"), LedgerDir: stateDir("open"),
	})
	a.gateway.Store(g)
	return g, nil
}

// warn tells about something that stopped nothing.
func (a *app) warn(message string) {
	if a.config == nil || !a.config.Quiet {
		a.out.warn(message)
	}
	if a.config != nil && a.config.LogFile != "" {
		a.log.Warn(message)
	}
}

// warnOnce is warn for what many hosts may have in common, such as a key.
func (a *app) warnOnce(message string) {
	if _, before := a.warned.LoadOrStore(message, true); !before {
		a.warn(message)
	}
}

// stateDir returns a directory for what outlives a call; empty if there is no
// home. As with the configuration, a relative path is none.
func stateDir(name string) string {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "gateway", name)
	}
	if home := os.Getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", "gateway", name)
	}
	return ""
}
