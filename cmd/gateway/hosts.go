package main

import (
	"github.com/spf13/cobra"

	"gateway/gateway"
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

// openHosts reads the settings and the inventory, for a command that runs
// nothing.
func (a *app) openHosts() (*gateway.Gateway, error) {
	if err := a.load(); err != nil {
		return nil, err
	}
	return a.open(nil, policyStrict)
}
