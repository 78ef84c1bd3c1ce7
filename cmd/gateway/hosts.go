package main

import (
	"context"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gateway/gateway"
	"gateway/hosts"
)

func (a *app) hostsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "hosts",
		Short: "List, show, check and trust the hosts of the inventory",
		Example: `  gateway hosts list @staging
  gateway hosts show web1 --explain
  gateway hosts check all`,
		Args: cobra.ArbitraryArgs,
		RunE: unknownCommand,
	}
	cmd.AddCommand(a.hostsListCommand(), a.hostsShowCommand(), a.hostsCheckCommand(), a.hostsTrustCommand())
	return cmd
}

func (a *app) hostsListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list [SELECTOR]",
		Short: "List the hosts of the inventory",
		Example: `  gateway hosts list
  gateway hosts list '@staging,&tag:eu,!web03'
  gateway hosts list -o json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return exactly("SELECTOR")(cmd, args)
		},
		ValidArgsFunction: a.completeSelector,
		RunE: func(cmd *cobra.Command, args []string) error {
			g, err := a.openHosts()
			if err != nil {
				return err
			}
			defer g.Close()
			var selected []hosts.Host
			if len(args) > 0 {
				selected, err = a.selectHosts(cmd.Context(), g, args[0])
			} else {
				selected, err = allHosts(g.Inventory())
			}
			if err != nil {
				return err
			}
			for i, host := range selected {
				if selected[i], err = a.addressed(cmd.Context(), g, host); err != nil {
					return err
				}
			}
			return a.listHosts(selected)
		},
	}
}

// addressed returns a host with the address that it is reached at, where ssh_config has
// that. Others are not asked of it, for each takes a program.
func (a *app) addressed(ctx context.Context, g *gateway.Gateway, host hosts.Host) (hosts.Host, error) {
	config := a.sshConfig()
	if config == nil || host.Local() || host.Addr != "" {
		return host, nil
	}
	if known, err := config.Knows(host.Name); err != nil || !known {
		return host, err
	}
	return g.Resolve(ctx, host.Name)
}

// openHosts reads the settings and the inventory, for a command that runs
// nothing.
func (a *app) openHosts() (*gateway.Gateway, error) {
	if err := a.load(); err != nil {
		return nil, err
	}
	return a.open(nil, policyStrict)
}

// allHosts returns the whole inventory, also localhost, which the selector all
// does not mean.
func allHosts(inv *hosts.Inventory) ([]hosts.Host, error) {
	var all []hosts.Host
	for _, name := range inv.Names() {
		host, err := inv.Host(name)
		if err != nil {
			return nil, err
		}
		all = append(all, host)
	}
	return all, nil
}

// hostEntry is a host as a program gets it: never with a secret.
type hostEntry struct {
	Name      string   `json:"name"`
	Transport string   `json:"transport"`
	Address   string   `json:"address"`
	Port      int      `json:"port,omitempty"`
	User      string   `json:"user,omitempty"`
	Groups    []string `json:"groups"`
	Tags      []string `json:"tags"`
}

func (a *app) listHosts(selected []hosts.Host) error {
	var (
		entries []hostEntry
		rows    [][]string
	)
	for _, h := range selected {
		entries = append(entries, hostEntry{
			h.Name, h.Transport, h.Address(), h.Port, h.User,
			append([]string{}, h.Groups...), append([]string{}, h.Tags...),
		})
		rows = append(rows, []string{h.Name, h.Transport, place(h), h.User, strings.Join(h.Groups, " "), strings.Join(h.Tags, " ")})
	}
	if a.config.Output != "text" {
		return list(a.out, entries)
	}
	return a.out.table(slices.Insert(rows, 0, []string{"NAME", "TRANSPORT", "ADDRESS", "USER", "GROUPS", "TAGS"}))
}

// place is a host's address, with the port where that is another than SSH's.
func place(h hosts.Host) string {
	if h.Port == 0 || h.Port == 22 {
		return h.Address()
	}
	return net.JoinHostPort(h.Address(), strconv.Itoa(h.Port))
}

func (a *app) hostsShowCommand() *cobra.Command {
	var explain bool
	cmd := &cobra.Command{
		Use:   "show HOST",
		Short: "Show how a host is reached, from the inventory and ssh_config",
		Example: `  gateway hosts show web1
  gateway hosts show web1 --explain`,
		Args:              plainHost,
		ValidArgsFunction: a.completeHost,
		RunE: func(cmd *cobra.Command, args []string) error {
			g, err := a.openHosts()
			if err != nil {
				return err
			}
			defer g.Close()
			host, err := g.Resolve(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.showHost(host, explain)
		},
	}
	cmd.Flags().BoolVar(&explain, "explain", false, "say where each value comes from")
	return cmd
}

// showHost shows what is set for a host. Secrets are not among it: the
// inventory has references to them only.
func (a *app) showHost(h hosts.Host, explain bool) error {
	entry := struct {
		Name      string            `json:"name"`
		Transport string            `json:"transport"`
		Address   string            `json:"address"`
		Groups    []string          `json:"groups"`
		Settings  map[string]any    `json:"settings"`
		Origins   map[string]string `json:"origins,omitempty"`
	}{h.Name, h.Transport, h.Address(), append([]string{}, h.Groups...), map[string]any{}, map[string]string{}}
	rows := [][]string{{"name", h.Name}, {"groups", strings.Join(h.Groups, ", ")}}
	for _, f := range settings(h) {
		value, text := shown(f)
		entry.Settings[f.Key] = value
		row := []string{f.Key, text}
		if explain {
			entry.Origins[f.Key] = f.Origin
			row = append(row, f.Origin+note(f.Key))
		}
		rows = append(rows, row)
	}
	if a.config.Output != "text" {
		return a.out.json(entry)
	}
	return a.out.table(rows)
}

// shown returns the value of a setting as programs and as people read it.
func shown(f hosts.Field) (value any, text string) {
	switch v := f.Value.(type) {
	case time.Duration:
		value = v.String()
	case hosts.Agent:
		switch value = string(v); v {
		case hosts.AgentNone:
			value = false
		case hosts.AgentEnv:
			if socket := os.Getenv("SSH_AUTH_SOCK"); socket != "" {
				return true, "true (SSH_AUTH_SOCK: " + visible(socket) + ")"
			}
			return true, "true (SSH_AUTH_SOCK is not set: none)"
		}
	default:
		value = v
	}
	return value, cell(value)
}

// settings returns what holds for a host: what is set, and what stands in for
// the rest of what it takes to reach it.
func settings(h hosts.Host) []hosts.Field {
	set := h.Fields()
	defaults := []hosts.Field{
		{Key: "transport", Value: h.Transport},
		{Key: "addr", Value: h.Address()},
		{Key: "port", Value: gateway.DefaultPort},
		{Key: "user", Value: gateway.Login(h)},
	}
	if h.Local() { // it has no port
		defaults = slices.Delete(defaults, 2, 3)
	}
	var list []hosts.Field
	for _, d := range defaults {
		d.Origin = "default"
		if i := slices.IndexFunc(set, func(f hosts.Field) bool { return f.Key == d.Key }); i >= 0 {
			d = set[i]
			set = slices.Delete(set, i, i+1)
		}
		list = append(list, d)
	}
	return append(list, set...)
}

// note says about a secret that what stands there is not the secret.
func note(key string) string {
	switch key {
	case "password", "passphrase", "sudo.password":
		return " - a reference, read when it is needed"
	}
	return ""
}
