package main

import (
	"cmp"
	"context"
	"net"
	"strconv"
	"strings"

	"gateway/gateway"
)

// A planned command is what would run on one host.
type planned struct {
	Host      string `json:"host"`
	Transport string `json:"transport"`
	Address   string `json:"address"`
	Port      int    `json:"port,omitempty"`
	User      string `json:"user"`
	Jump      string `json:"jump,omitempty"`
	Shell     string `json:"shell"`
	Cwd       string `json:"cwd"`
	Sudo      string `json:"sudo,omitempty"`
	Command   string `json:"command"`
}

// where is the address for people, with its port if it has one.
func (p *planned) where() string {
	if p.Port == 0 {
		return p.Address
	}
	return net.JoinHostPort(p.Address, strconv.Itoa(p.Port))
}

// dryRun says what would run where. It connects to nothing.
func (a *app) dryRun(ctx context.Context, selector string, c gateway.Command) error {
	g, selected, err := a.choose(ctx, nil, policyStrict, selector)
	if err != nil {
		return err
	}
	defer g.Close()
	var plan []planned
	for _, host := range selected {
		p, err := a.planned(ctx, g, host.Name, c)
		if err != nil {
			return err
		}
		plan = append(plan, p)
	}
	switch {
	case a.out.format != "text" && a.oneHost:
		return a.out.json(plan[0])
	case a.out.format != "text":
		return list(a.out, plan)
	}
	rows := [][]string{{"HOST", "ADDRESS", "USER", "SHELL", "DIRECTORY", "SUDO", "JUMP"}}
	for _, p := range plan {
		rows = append(rows, []string{p.Host, p.where(), p.User, p.Shell, p.Cwd, p.Sudo, p.Jump})
	}
	if err := a.out.table(rows); err != nil {
		return err
	}
	return a.out.printf("\n%s\n", strings.TrimRight(visible(c.Text), "\n"))
}

func (a *app) planned(ctx context.Context, g *gateway.Gateway, name string, c gateway.Command) (planned, error) {
	host, err := g.ResolveAs(ctx, name, c.Session.User)
	if err != nil {
		return planned{}, err
	}
	target, err := g.Target(ctx, host)
	if err != nil {
		return planned{}, err
	}
	p := planned{
		Host: name, Transport: host.Transport, Address: target.Addr, Port: target.Port, User: gateway.Login(host),
		Jump: strings.Join(host.Jump, ","), Command: c.Text,
		Shell: cmp.Or(c.Session.Shell, host.Shell, "bash or sh"), Cwd: cmp.Or(c.Cwd, host.Cwd, "home"),
	}
	if target.Local {
		p.Address = "this machine"
	} else if p.Port == 0 {
		p.Port = gateway.DefaultPort
	}
	if c.Session.Sudo {
		p.Sudo = gateway.SudoUser(host, c.Session.SudoUser)
	}
	return p, nil
}
