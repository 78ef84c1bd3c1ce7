package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	gossh "golang.org/x/crypto/ssh"

	"gateway/internal/netsim"
	"gateway/internal/sshdtest"
)

// inventoryOf returns a home whose inventory has the server as web1. Its key is
// not known there.
func inventoryOf(t *testing.T, server *sshdtest.Server) (home string) {
	t.Helper()
	home = t.TempDir()
	write(t, filepath.Join(home, ".config/gateway/config.yaml"), "ssh_config: off\n")
	write(t, filepath.Join(home, ".config/gateway/hosts.yaml"), fmt.Sprintf(
		"hosts:\n  web1: {addr: %s, port: %d, user: %s, identity: %s, agent: false}\n",
		server.Host, server.Port, server.User, server.KeyFile))
	return home
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must(t, os.WriteFile(path, []byte(text), 0o600))
}

// outputFile is an output with both streams in one file, and what is there by now.
func outputFile(t *testing.T) (out *output, text func() string) {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return newOutput(file, file, &console{}, nil), func() string {
		t.Helper()
		said, err := os.ReadFile(file.Name())
		if err != nil {
			t.Fatal(err)
		}
		return string(said)
	}
}

// call runs gateway where nobody is, and returns what it says.
func call(t *testing.T, home string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	return callIn(t, environ(home), args...)
}

// callIn is call with an environment.
func callIn(t *testing.T, env []string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "gateway", args...)
	cmd.Env = env
	cmd.Stdout, cmd.Stderr = &out, &errs
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// send sends a signal to a call of gateway.
func send(t *testing.T, cmd *exec.Cmd, s os.Signal) {
	t.Helper()
	must(t, cmd.Process.Signal(s))
}

// until waits until something is so.
func until(t *testing.T, what string, so func() bool) {
	t.Helper()
	for begun := time.Now(); !so(); <-time.After(time.Millisecond) {
		if sshdtest.Over(t, time.Since(begun), 20*time.Second) {
			t.Fatalf("in vain: %s", what)
		}
	}
}

// appears waits for a file.
func appears(t *testing.T, path string) {
	t.Helper()
	until(t, path+" is there", func() bool { _, err := os.Stat(path); return err == nil })
}

// pidIn waits for a process to write its number into a file.
func pidIn(t *testing.T, path string) (pid int) {
	t.Helper()
	until(t, path+" has a number", func() bool {
		text, _ := os.ReadFile(path) // it is not there at first
		_, err := fmt.Sscanln(string(text), &pid)
		return err == nil
	})
	return pid
}

// isGone waits for the end of a process: a hang-up is not at once.
func isGone(t *testing.T, pid int) {
	t.Helper()
	until(t, "the command ends", func() bool { return syscall.Kill(pid, 0) != nil })
}

// wants checks a status and that the texts are in order.
func wants(t *testing.T, what string, status, want int, said string, texts ...string) {
	t.Helper()
	rest := said
	for _, text := range texts {
		_, after, found := strings.Cut(rest, text)
		if !found {
			t.Errorf("%s says %q, want %q in it", what, said, text)
		}
		rest = after
	}
	if status != want {
		t.Errorf("%s: status %d, want %d: %s", what, status, want, said)
	}
}

func TestTrustThenExec(t *testing.T) {
	server := sshdtest.Start(t, sshdtest.Options{})
	home := inventoryOf(t, server)
	fingerprint := gossh.FingerprintSHA256(server.HostKey)

	status, out, errs := call(t, home, "exec", "web1", "true")
	wants(t, "exec", status, statusNotStarted, out+errs, "gateway: hostkey.unknown: ", "\nhint: ")
	status, out, errs = call(t, home, "hosts", "check", "web1")
	wants(t, "check", status, statusSomeNotBegun, out+errs, "  tcp       ok", "  hostkey   failed  hostkey.unknown: ", fingerprint, "web1  failed  hostkey  hostkey.unknown\n")

	status, out, errs = call(t, home, "hosts", "trust", "web1")
	wants(t, "trust unasked", status, statusUsage, out+errs, "--fingerprint", "gateway hosts check web1")
	status, out, errs = call(t, home, "hosts", "trust", "web1", "--yes")
	wants(t, "trust --yes unasked", status, statusUsage, out+errs, "--fingerprint")
	status, out, errs = call(t, home, "hosts", "trust", "web1", "--fingerprint", "SHA256:other")
	wants(t, "trust another key", status, statusFailed, out+errs, "gateway: hostkey.unknown: web1 shows no key", fingerprint)
	status, out, errs = call(t, home, "hosts", "trust", "web1", "--fingerprint", fingerprint)
	wants(t, "trust", status, 0, out+errs, fingerprint+" added to "+home+"/.ssh/known_hosts\n")
	status, out, errs = call(t, home, "hosts", "trust", "web1", "--fingerprint", fingerprint)
	wants(t, "trust again", status, 0, out+errs, "was trusted already\n")

	status, out, errs = call(t, home, "exec", "web1", "echo out; echo err >&2; exit 3")
	if status != 3 || out != "out\n" || errs != "err\n" {
		t.Errorf("exec: %d, %q, %q, want 3, out, err", status, out, errs)
	}
	status, out, errs = call(t, home, "hosts", "check", "all")
	wants(t, "check", status, 0, out+errs, "web1\n", "  tcp ", "  hostkey ", "  auth ", "  session ", "  shell ", "  sftp ", "HOST  RESULT", "web1  ok\n")
}

func TestUnknownHostKeyIsAsked(t *testing.T) {
	server := sshdtest.Start(t, sshdtest.Options{})
	home := inventoryOf(t, server)
	fingerprint := gossh.FingerprintSHA256(server.HostKey)

	p := atHome(t, home, "exec", "web1", "echo up")
	p.expect(fingerprint)
	p.expect("? ")
	p.press("no\r")
	p.expect("no\r\ngateway: hostkey.unknown: ")
	p.leaves(statusNotStarted)

	p = atHome(t, home, "exec", "web1", "echo up")
	p.expect("or the fingerprint)? ")
	p.press("\x04")
	p.expect("\r\ngateway: hostkey.unknown: ")
	p.leaves(statusNotStarted)

	p = atHome(t, home, "hosts", "trust", "web1")
	p.expect(fingerprint)
	p.expect("Trust them (yes or no)? ")
	p.press("no\r")
	p.expect("hostkey.unknown: web1: nothing was recorded")
	p.leaves(statusFailed)

	p = atHome(t, home, "hosts", "trust", "web1", "-o", "json")
	p.expect("Trust them (yes or no)? ")
	p.press("no\r")
	p.expect(`{"error":{"code":"hostkey.unknown","message":"web1: nothing was recorded"`)
	p.leaves(statusFailed)

	p = atHome(t, home, "exec", "-t", "web1", "test -t 0 && echo u''p")
	p.expect(fingerprint)
	p.expect("? ")
	p.press("yes\r")
	p.expect("up\r\n")
	p.leaves(0)

	p = atHome(t, home, "exec", "web1", "echo u''p")
	p.expect("up\r\n")
	p.leaves(0)
}

// What was typed before a question came up does not answer it.
func TestQuestionIsNotAnsweredAhead(t *testing.T) {
	t.Parallel()
	server := sshdtest.Start(t, sshdtest.Options{})
	for _, test := range []struct{ name, question, ahead, code string }{
		{"host key", "no or the fingerprint)? ", "yes", "hostkey.unknown"},
		{"passphrase", "Passphrase for ", "open sesame", "auth.passphrase"},
	} {
		t.Run(test.name, func(t *testing.T) {
			proxy := netsim.Start(t, server.Addr, 0)
			slow := *server
			slow.Port = proxy.Port()
			if test.name == "passphrase" {
				slow.KeyFile = server.Key.Encrypted(t, test.ahead)
			}
			home := inventoryOf(t, &slow)
			if test.name == "passphrase" {
				write(t, filepath.Join(home, ".ssh/known_hosts"), fmt.Sprintf("[%s]:%d %s", slow.Host, slow.Port, gossh.MarshalAuthorizedKey(server.HostKey)))
			}
			proxy.Stall()
			p := atHome(t, home, "exec", "web1", "true")
			p.press(test.ahead + "\r")
			p.expect(test.ahead + "\r\n") // the terminal has it
			proxy.Resume()
			p.expect(test.question)
			p.press("\x04")
			p.expect("gateway: " + test.code + ": ")
			p.leaves(statusNotStarted)
		})
	}
}

// Whoever is asked to trust a key sees what speaks against it, and --yes does not
// answer for him.
func TestTrustShowsWhatDiffers(t *testing.T) {
	server := sshdtest.Start(t, sshdtest.Options{})
	home := inventoryOf(t, server)
	known := filepath.Join(home, ".ssh/known_hosts")
	write(t, known, "# mine\nweb1 "+sshdtest.NewKey(t, "ed25519").Line()+"\n")
	fingerprint := gossh.FingerprintSHA256(server.HostKey)

	p := atHome(t, home, "hosts", "trust", "web1", "--yes")
	p.expect(fingerprint + " (differs from " + known + ":2)")
	p.expect("Trust them (yes or no)? ")
	p.press("no\r")
	p.expect("nothing was recorded")
	p.leaves(statusFailed)

	status, out, errs := call(t, home, "hosts", "trust", "web1", "--fingerprint", "SHA256:other")
	wants(t, "trust another key", status, statusFailed, out+errs, "gateway: hostkey.unknown: ", fingerprint+" (differs from "+known+":2)")
	status, out, errs = call(t, home, "hosts", "trust", "web1", "--fingerprint", fingerprint, "-o", "json")
	wants(t, "trust the very key", status, 0, out+errs, `"known":false,"added":true,"conflict":"differs from `+known+`:2"`, `"still_trusted":["`+known+`:2"]`)
	status, out, errs = call(t, home, "exec", "web1", "true")
	wants(t, "exec", status, 0, out+errs)
}

// Old keys that stay trusted beside an added one are named, and no others are: a
// key of another type that the host shows too is none.
func TestTrustNamesOldKeys(t *testing.T) {
	server := sshdtest.Start(t, sshdtest.Options{HostKeys: []string{"ed25519", "ecdsa"}})
	line := func(key gossh.PublicKey) string { return "web1 " + string(gossh.MarshalAuthorizedKey(key)) }
	home := inventoryOf(t, server)
	known := filepath.Join(home, ".ssh/known_hosts")
	old := "web1 " + sshdtest.NewKey(t, "ecdsa").Line() + "\n"
	trust := func(key int) (all, errs string) {
		_, out, errs := call(t, home, "hosts", "trust", "web1", "--fingerprint", gossh.FingerprintSHA256(server.HostKeys[key]))
		return out + errs, errs
	}

	write(t, known, line(server.HostKeys[0])+old+"web2 "+sshdtest.NewKey(t, "ed25519").Line()+"\n"+strings.Replace(old, "web1", fmt.Sprintf("[%s]:%d", server.Host, server.Port), 1))
	if all, errs := trust(1); errs != "gateway: warning: "+known+":2 still trusts the old key: remove it\ngateway: warning: "+known+":4 still trusts the old key: remove it\n" {
		t.Errorf("the old keys: %q", all)
	}
	if all, errs := trust(1); errs != "" {
		t.Errorf("a key that was known: %q", all)
	}
	write(t, known, line(server.HostKeys[0]))
	if all, errs := trust(1); errs != "" {
		t.Errorf("a key beside a right one: %q", all)
	}
}

// Keys that can't be trusted do not keep the others from it.
func TestTrustBesideRefusedKeys(t *testing.T) {
	server := sshdtest.Start(t, sshdtest.Options{HostKeys: []string{"ed25519", "ecdsa"}})
	first, second := gossh.FingerprintSHA256(server.HostKeys[0]), gossh.FingerprintSHA256(server.HostKeys[1])
	home := inventoryOf(t, server)
	known := filepath.Join(home, ".ssh/known_hosts")
	revoked := "@revoked * " + strings.TrimSpace(string(gossh.MarshalAuthorizedKey(server.HostKeys[1]))) + "\n"
	write(t, known, revoked)

	p := atHome(t, home, "hosts", "trust", "web1")
	p.expect(second + " (revoked by " + known + ":1: can't be trusted)")
	p.expect("Trust them (yes or no)? ")
	p.press("yes\r")
	p.expect(first + " added to " + known)
	p.expect(second + " was not added: revoked by " + known + ":1")
	p.leaves(0)

	write(t, known, revoked+strings.ReplaceAll(revoked, string(gossh.MarshalAuthorizedKey(server.HostKeys[1])), string(gossh.MarshalAuthorizedKey(server.HostKeys[0]))))
	p = atHome(t, home, "hosts", "trust", "web1")
	p.expect("gateway: hostkey.revoked: ")
	p.leaves(statusFailed)

	write(t, known, "")
	pin(t, home, first)
	p = atHome(t, home, "hosts", "trust", "web1")
	p.expect(first + " was trusted already")
	p.expect(second + " was not added: not pinned")
	p.leaves(0)
}

// pin puts a pin into the inventory in a home.
func pin(t *testing.T, home, fingerprint string) {
	t.Helper()
	edit(t, filepath.Join(home, ".config/gateway/hosts.yaml"), "{addr", "{host_key: \""+fingerprint+"\", addr")
}

// A pin goes before known_hosts: what is recorded there would be of no use.
func TestTrustOfPinnedHost(t *testing.T) {
	server := sshdtest.Start(t, sshdtest.Options{})
	home := inventoryOf(t, server)
	pinned := gossh.FingerprintSHA256(sshdtest.NewKey(t, "ed25519").Public())
	pin(t, home, pinned)

	status, out, errs := call(t, home, "hosts", "trust", "web1", "--fingerprint", gossh.FingerprintSHA256(server.HostKey))
	wants(t, "trust", status, statusFailed, out+errs, "gateway: hostkey.changed: ", "not a pinned one", pinned, "hint: ", "host_key of web1")
	if _, err := os.Stat(filepath.Join(home, ".ssh/known_hosts")); !os.IsNotExist(err) {
		t.Errorf("known_hosts is there: %v", err)
	}
}

// In CI a policy that takes unseen keys does not count, wherever it stands: what
// is trusted there has to be known beforehand.
func TestHostKeysAreStrictInCI(t *testing.T) {
	server := sshdtest.Start(t, sshdtest.Options{})
	fingerprint := gossh.FingerprintSHA256(server.HostKey)
	for name, policy := range map[string]struct{ inventory, sshConfig string }{
		"inventory":  {inventory: "host_key_policy: accept-new, "},
		"ssh_config": {sshConfig: "Host web1\n  StrictHostKeyChecking no\n"},
		"default":    {},
	} {
		t.Run(name, func(t *testing.T) {
			home := inventoryOf(t, server)
			known := filepath.Join(home, ".ssh/known_hosts")
			edit(t, filepath.Join(home, ".config/gateway/hosts.yaml"), "{addr", "{"+policy.inventory+"known_hosts: "+known+", addr")
			if policy.sshConfig != "" {
				write(t, filepath.Join(home, "ssh_config"), policy.sshConfig)
				write(t, filepath.Join(home, ".config/gateway/config.yaml"), "ssh_config: "+home+"/ssh_config\n")
			}
			ci := append(environ(home), "CI=true")

			status, out, errs := callIn(t, ci, "exec", "web1", "true")
			wants(t, "exec", status, statusNotStarted, out+errs, "gateway: hostkey.unknown: ", "\nhint: with CI=true host keys are strict: ", "gateway hosts trust web1", "host_key")
			if _, err := os.Stat(known); !os.IsNotExist(err) {
				t.Errorf("known_hosts is there: %v", err)
			}
			status, out, errs = callIn(t, ci, "hosts", "trust", "web1", "--fingerprint", fingerprint)
			wants(t, "trust", status, 0, out+errs, fingerprint+" added to "+known)
			status, out, errs = callIn(t, ci, "exec", "web1", "true")
			wants(t, "exec of a host that is known", status, 0, out+errs)
		})
	}
}

// edit replaces a text in a file.
func edit(t *testing.T, path, old, text string) {
	t.Helper()
	was, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, strings.Replace(string(was), old, text, 1))
}

// What takes a key and does not keep it has recorded nothing.
func TestTrustIntoTheVoid(t *testing.T) {
	server := sshdtest.Start(t, sshdtest.Options{})
	home := inventoryOf(t, server)
	edit(t, filepath.Join(home, ".config/gateway/hosts.yaml"), "{addr", "{known_hosts: /dev/null, addr")
	fingerprint := gossh.FingerprintSHA256(server.HostKey)
	status, out, errs := call(t, home, "hosts", "trust", "web1", "--fingerprint", fingerprint)
	wants(t, "trust", status, statusFailed, errs, "gateway: hostkey.unknown: gateway: nothing was recorded: ", "web1 is /dev/null", "\nhint: ", "host_key: "+fingerprint)
	if out != "" {
		t.Errorf("trust says %q", out)
	}
}
