package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"gateway/gateway"
	"gateway/transport"
)

// trustFlags are what the command line says about which keys to trust.
type trustFlags struct {
	fingerprint string
	yes         bool
}

func (a *app) hostsTrustCommand() *cobra.Command {
	var f trustFlags
	cmd := &cobra.Command{
		Use:   "trust HOST",
		Short: "Show the keys of a host and record them as trusted",
		Long: `Show the keys that a host presents and record them in its known_hosts file.
Compare the fingerprints with those that the host itself prints:
  ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub
If nobody can be asked, --fingerprint must name the key. A key that differs from
a known one is marked, and you are asked about it even with --yes; it is added,
and the lines with the old key stay: they are named, for you to remove. A key
that is revoked, or is not the pinned one, is only shown.`,
		Example: `  gateway hosts trust web1
  gateway hosts trust web1 \
    --fingerprint SHA256:lZDZsS/iFWEZLF9Y27yfIz8vfvZVFzQ2T6bRXRWOXzU`,
		Args:              plainHost,
		ValidArgsFunction: a.completeHost,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.trust(cmd, args[0], f)
		},
	}
	cmd.Flags().StringVar(&f.fingerprint, "fingerprint", "", "trust the key with this `SHA256:...` and no other")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "trust all keys that the host shows, unasked, unless one differs from what is known")
	return cmd
}

// trustEntry is what hosts trust did, as a program gets it.
type trustEntry struct {
	Host string     `json:"host"`
	File string     `json:"file"`
	Keys []keyEntry `json:"keys"`
	// StillTrusted are the lines with old keys, FILE:LINE, where one was added that differs.
	StillTrusted []string `json:"still_trusted,omitempty"`
}

type keyEntry struct {
	Type        string `json:"type"`
	Fingerprint string `json:"fingerprint"`
	Known       bool   `json:"known"`
	Added       bool   `json:"added"`
	Conflict    string `json:"conflict,omitempty"`
}

func (a *app) trust(cmd *cobra.Command, host string, f trustFlags) error {
	if err := a.load(); err != nil {
		return err
	}
	if f.fingerprint != "" && !strings.HasPrefix(f.fingerprint, "SHA256:") {
		return usage(cmd, "ssh-keygen -l prints it", "--fingerprint must begin with SHA256:")
	}
	ask := a.asker()
	g, err := a.open(ask, policyStrict)
	if err != nil {
		return err
	}
	defer g.Close()
	ctx := cmd.Context()
	if known, err := g.Resolve(ctx, host); err != nil {
		return err
	} else if f.fingerprint == "" && ask == nil && !known.Local() {
		return usage(cmd, "name the host's own key with --fingerprint SHA256:… (--yes counts only at a terminal); gateway hosts check "+host+" says which one it shows", "nobody can be asked whether the key is the right one")
	}
	shown, err := g.HostKeys(ctx, host)
	if err != nil {
		return err
	}
	wanted, err := a.chooseKeys(ctx, ask, host, shown, f)
	if err != nil {
		return err
	}
	entry := trustEntry{Host: host, Keys: []keyEntry{}}
	var failed error
	for i, key := range shown {
		added := wanted[i] && !key.Known() && failed == nil
		if added {
			var file string
			if file, failed = g.Trust(key); failed != nil {
				added = false
			} else {
				entry.File = file
			}
		}
		entry.Keys = append(entry.Keys, keyEntry{key.Type, key.Fingerprint, key.Known(), added, key.Conflict})
		if added && key.Conflict != "" && entry.StillTrusted == nil {
			entry.StillTrusted = gateway.StillTrusted(shown)
		}
	}
	if failed == nil || entry.File != "" { // what was recorded before is told too
		err = a.showTrust(entry)
	}
	return cmp.Or(failed, err)
}

// chooseKeys says which of the keys that a host shows are to be trusted: the one
// with the fingerprint, or those that can be. It shows them to a person who has
// to decide.
func (a *app) chooseKeys(ctx context.Context, ask asker, host string, shown []gateway.HostKey, f trustFlags) ([]bool, error) {
	wanted := make([]bool, len(shown))
	var (
		lines             strings.Builder
		found             bool
		unseen, conflicts bool
	)
	for i, key := range shown {
		refused := key.Refused()
		wanted[i] = f.fingerprint == "" && refused == nil || key.Fingerprint == f.fingerprint
		found = found || wanted[i]
		unseen = unseen || wanted[i] && !key.Known()
		conflicts = conflicts || key.Conflict != ""
		mark := ""
		switch {
		case key.Known():
			mark = " (trusted already)"
		case refused != nil:
			mark = " (" + key.Conflict + ": can't be trusted)"
		case key.Conflict != "":
			mark = " (" + key.Conflict + ")"
		}
		fmt.Fprintf(&lines, "  %s %s%s\n", key.Type, key.Fingerprint, mark)
	}
	switch {
	case !found && f.fingerprint == "":
		return nil, shown[0].Refused()
	case !found:
		return nil, &transport.Error{
			Code:    "hostkey.unknown",
			Message: fmt.Sprintf("%s shows no key with the fingerprint %s, but\n%s", host, f.fingerprint, strings.TrimRight(lines.String(), "\n")),
			Hint:    "find out why before trusting any of them: somebody may be in between",
		}
	case !unseen || f.fingerprint != "" || f.yes && !conflicts:
		return wanted, nil
	}
	answer, err := ask(ctx, gateway.Question{
		Kind: gateway.AskHostKey, Host: host, Echo: true,
		Instruction: host + " shows these host keys:\n" + lines.String(),
		Prompt:      "Trust them (yes or no)? ",
	})
	if err != nil && !errors.Is(err, errNoAnswer) {
		return nil, err
	}
	if answer != "yes" {
		return nil, &transport.Error{Code: "hostkey.unknown", Message: host + ": nothing was recorded", Hint: "only the answer yes trusts a key; --fingerprint names one"}
	}
	return wanted, nil
}

func (a *app) showTrust(e trustEntry) error {
	if a.out.format != "text" {
		return a.out.json(e)
	}
	for _, key := range e.Keys {
		var err error
		switch {
		case key.Added:
			err = a.out.printf("%s: %s %s added to %s\n", e.Host, key.Type, key.Fingerprint, e.File)
		case key.Known:
			err = a.out.printf("%s: %s %s was trusted already\n", e.Host, key.Type, key.Fingerprint)
		case key.Conflict != "":
			err = a.out.printf("%s: %s %s was not added: %s\n", e.Host, key.Type, key.Fingerprint, key.Conflict)
		}
		if err != nil {
			return err
		}
	}
	for _, place := range e.StillTrusted {
		a.out.warn(place + " still trusts the old key: remove it")
	}
	return nil
}
