package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"gateway/gateway"
	"gateway/hosts"
)

// selection takes the selector, which usage calls what, off the arguments and
// parses the flags behind it. Its form decides whether the statuses of one host
// apply. An empty one without an error means that there is nothing left to do.
func (a *app) selection(cmd *cobra.Command, args []string, what string) (string, []string, error) {
	a.oneHost = true
	var wrong error
	if len(args) > 0 && args[0] != "" {
		var parsed hosts.Selector
		parsed, wrong = hosts.ParseSelector(args[0])
		a.about.Host, a.oneHost = parsed.Host()
	}
	selector, rest, err := first(cmd, args, what)
	if err == nil && selector != "" {
		err = wrong
	}
	if err != nil {
		selector = ""
	}
	return strings.TrimSpace(selector), rest, err
}

// plainHost wants one argument, which is a host by its form.
func plainHost(cmd *cobra.Command, args []string) error {
	if err := exactly("HOST")(cmd, args); err != nil {
		return err
	}
	parsed, err := hosts.ParseSelector(args[0])
	if err != nil {
		return err
	}
	if _, one := parsed.Host(); !one {
		return tooMany(cmd, args[0])
	}
	return nil
}

// many reports whether a selector is for many hosts.
func many(selector string) (bool, error) {
	if selector == "" {
		return false, nil
	}
	parsed, err := hosts.ParseSelector(selector)
	if err != nil {
		return false, err
	}
	_, one := parsed.Host()
	return !one, nil
}

func tooMany(cmd *cobra.Command, selector string) error {
	return usage(cmd, "name one host", "%s may stand for many hosts: only one is possible here", selector)
}

// selectHosts returns the hosts that a selector picks.
func (a *app) selectHosts(ctx context.Context, g *gateway.Gateway, selector string) ([]hosts.Host, error) {
	parsed, err := hosts.ParseSelector(selector)
	if err != nil {
		return nil, err
	}
	return g.Inventory().Select(parsed, hosts.Lookup{
		Host: func(name string) (hosts.Host, error) { return g.Resolve(ctx, name) },
		Run:  a.runs().Hosts,
	})
}

// choose opens the gateway, which is to be closed, and returns the hosts that a
// selector picks.
func (a *app) choose(ctx context.Context, ask asker, policy, selector string) (*gateway.Gateway, []hosts.Host, error) {
	g, err := a.open(ask, policy)
	if err != nil {
		return nil, nil, err
	}
	selected, err := a.selectHosts(ctx, g, selector)
	if err != nil {
		g.Close()
		return nil, nil, err
	}
	return g, selected, nil
}

func namesOf(selected []hosts.Host) []string {
	var list []string
	for _, host := range selected {
		list = append(list, host.Name)
	}
	return list
}
