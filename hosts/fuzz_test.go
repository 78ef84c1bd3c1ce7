package hosts_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"gateway/hosts"
)

func FuzzParseSelector(f *testing.F) {
	for _, seed := range []string{
		"web1", "@staging,&tag:web,!web03", "web[01-03,07]-r[1-2]", "run:last/failed,unknown,x", "all,!*", "a,,b", "!a", "[", "w[1-99999]*",
	} {
		f.Add(seed)
	}
	inv, err := hosts.Parse("hosts.yaml", []byte(contract))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		sel, err := hosts.ParseSelector(text)
		if err != nil {
			e, ok := errors.AsType[*hosts.Error](err)
			if !ok || e.Code != "selector.invalid" {
				t.Fatalf("ParseSelector(%q): %v, want a selector.invalid", text, err)
			}
			return
		}
		again, err := hosts.ParseSelector(sel.String())
		if err != nil || !reflect.DeepEqual(again, sel) {
			t.Fatalf("%q: String = %q, which parses to %+v, %v", text, sel, again, err)
		}
		picked, err := inv.Select(sel, hosts.Lookup{})
		if (err == nil) != (len(picked) > 0) {
			t.Fatalf("Select(%q) = %d hosts, %v", text, len(picked), err)
		}
		if name, ok := sel.Host(); ok && err == nil && (len(picked) != 1 || picked[0].Name != name) {
			t.Fatalf("Select(%q) = %v, want the one host", text, picked)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add(contract)
	f.Add(fleet)
	f.Add("a: &a [*a]")
	f.Add("hosts: {a: &a {tags: &t [x]}, b: *a}")
	f.Add("groups: {a: {groups: [b]}, b: {groups: [a]}}")
	f.Add("hosts: {'a[1-9][1-9]': {jump: a11}}")
	f.Add("hosts: {a: {password: x, env: {A: 1}, sudo: {flags: -H}, files: {allow: /}}}")
	if example, err := os.ReadFile("../hosts.example.yaml"); err == nil {
		f.Add(string(example))
	}
	f.Fuzz(func(t *testing.T, text string) {
		inv, err := hosts.Parse("hosts.yaml", []byte(text))
		if err != nil {
			if e, ok := errors.AsType[*hosts.Error](err); !ok || e.Code != "inventory.invalid" {
				t.Fatalf("error = %v, want an inventory.invalid", err)
			}
			return
		}
		names := inv.Names()
		seen := make(map[string]bool)
		for i, name := range names {
			if lower := strings.ToLower(name); seen[lower] {
				t.Fatalf("two hosts %s", name)
			} else {
				seen[lower] = true
			}
			if i > 100 {
				continue
			}
			h, err := inv.Host(name)
			if err != nil || h.Name != name || h.Transport == "" || h.Address() == "" {
				t.Fatalf("Host(%q) = %+v, %v", name, h, err)
			}
			for _, path := range h.KnownHosts {
				if !filepath.IsAbs(path) {
					t.Fatalf("known_hosts of %s: %s is relative", name, path)
				}
			}
			h.Fields()
		}
		for _, name := range inv.Groups() {
			_, err := pick(inv, "@"+name, hosts.Lookup{})
			if e, ok := errors.AsType[*hosts.Error](err); err != nil && (!ok || e.Code != "selector.empty") {
				t.Fatalf("group %s: %v", name, err)
			}
		}
	})
}
