package main

import (
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gateway/gateway"
	"gateway/hosts"
)

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
	if a.out.format != "text" {
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
				return true, "true (SSH_AUTH_SOCK: " + socket + ")"
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
