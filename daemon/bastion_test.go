package daemon_test

import (
	"context"
	"testing"

	"gateway/daemon"
	"gateway/daemon/api"
	"gateway/daemon/client"
	"gateway/gateway"
	"gateway/internal/sshdtest"
)

const passphrase = "typed by a person"

// behindBastion returns the way to two hosts, db and web, whose bastion wants a
// key that only a person can unlock.
func behindBastion(t *testing.T) (db, web gateway.Target) {
	t.Helper()
	bastion, behind := sshdtest.Start(t, sshdtest.Options{}), sshdtest.Start(t, sshdtest.Options{})
	target := func(s *sshdtest.Server, name, key string) gateway.Target {
		return gateway.Target{
			Name: name, Addr: s.Host, Port: s.Port, User: s.User,
			Identities: []gateway.Identity{{Key: key}}, IdentitiesOnly: true,
			HostKeys: gateway.HostKeyRule{Files: []string{s.KnownHosts}, Write: "none", Policy: "strict"},
		}
	}
	hop := target(bastion, "bastion", bastion.Key.Encrypted(t, passphrase))
	db, web = target(behind, "db", behind.KeyFile), target(behind, "web", behind.KeyFile)
	db.Jump, web.Jump = &hop, &hop
	return db, web
}

// opens opens a session for a caller.
func opens(t *testing.T, c *client.Client, target gateway.Target, caller gateway.Caller) error {
	t.Helper()
	_, err := c.Open(t.Context(), api.Open{Target: target}, caller)
	return err
}

// Whoever comes without a person does not get through a bastion that one has
// unlocked, whatever is open by then.
func TestBastionThatAPersonUnlocked(t *testing.T) {
	t.Parallel()
	db, web := behindBastion(t)
	c := start(t, daemon.Config{})("")
	asked := 0
	person := gateway.Caller{Ask: func(context.Context, gateway.Question) (string, error) {
		asked++
		return passphrase, nil
	}}
	refused := func(when string, target gateway.Target) {
		t.Helper()
		if err := opens(t, c, target, gateway.Caller{}); gateway.Code(err) != "auth.passphrase" {
			t.Errorf("%s, %s without a person: %v, want auth.passphrase", when, target.Name, err)
		}
	}
	refused("nothing is open", db)
	for _, target := range []gateway.Target{web, db} { // the second one uses what the first one unlocked
		if err := opens(t, c, target, person); err != nil {
			t.Fatalf("%s: %v", target.Name, err)
		}
		refused(target.Name+" is open", web)
		refused(target.Name+" is open", db)
	}
	if asked != 1 {
		t.Errorf("asked %d times, want once", asked)
	}
}
