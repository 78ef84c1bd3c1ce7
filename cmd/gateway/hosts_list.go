package main

import (
	"context"
	"net"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"gateway/gateway"
	"gateway/hosts"
)

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
	var entries []hostEntry
	rows := [][]string{{"NAME", "TRANSPORT", "ADDRESS", "USER", "GROUPS", "TAGS"}}
	for _, h := range selected {
		entries = append(entries, hostEntry{
			h.Name, h.Transport, h.Address(), h.Port, h.User,
			append([]string{}, h.Groups...), append([]string{}, h.Tags...),
		})
		rows = append(rows, []string{h.Name, h.Transport, place(h), h.User, strings.Join(h.Groups, " "), strings.Join(h.Tags, " ")})
	}
	return listOrTable(a.out, entries, rows)
}

// place is a host's address, with the port where that is another than SSH's.
func place(h hosts.Host) string {
	if h.Port == 0 || h.Port == 22 {
		return h.Address()
	}
	return net.JoinHostPort(h.Address(), strconv.Itoa(h.Port))
}
