package hosts_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gateway/hosts"
)

func TestParseSelector(t *testing.T) {
	tests := []struct {
		text string
		want string // canonical
		host string // if it is one plain host
	}{
		{"web1", "web1", "web1"},
		{" web1 ", "web1", "web1"},
		{"localhost", "localhost", "localhost"},
		{"10.0.0.7", "10.0.0.7", "10.0.0.7"},
		{"all", "all", ""},
		{"web1,web2", "web1,web2", ""},
		{"web*", "web*", ""},
		{"web[1]", "web[1]", ""},
		{"web[01-03,07],db1", "web[01-03,07],db1", ""},
		{"@staging, &tag:web ,! web03", "@staging,&tag:web,!web03", ""},
		{"tag:env=prod", "tag:env=prod", ""},
		{"run:last", "run:last", ""},
		{"run:last/failed,unknown,web1", "run:last/failed,unknown,web1", ""},
		{"@a,!run:01JX/failed,skipped,&@b", "@a,!run:01JX/failed,skipped,&@b", ""},
		{"run:last,failed", "run:last,failed", ""},
	}
	for _, test := range tests {
		sel, err := hosts.ParseSelector(test.text)
		if err != nil {
			t.Errorf("ParseSelector(%q): %v", test.text, err)
			continue
		}
		name, ok := sel.Host()
		if sel.String() != test.want || name != test.host || ok != (test.host != "") {
			t.Errorf("ParseSelector(%q) = %q, host %q, want %q, host %q", test.text, sel, name, test.want, test.host)
		}
	}
}

func TestParseSelectorErrors(t *testing.T) {
	tests := []struct{ text, want, hint string }{
		{"", `empty term in selector ""`, "quote"},
		{"@staging,", `empty term in selector @staging,`, "quote"},
		{"a,,b", `empty term in selector a,,b`, "quote"},
		{"a,!", "nothing after !", "quote"},
		{"!web1", "selector starts with !", "all,!web1"},
		{"&web1", "selector starts with &", "all,&web1"},
		{"!!a", "!a is not a host name", ""},
		{"-v", "-v is not a host name", ""},
		{"me@web1", "me@web1 is not a host name", "--user"},
		{"web1:22", "web1:22 is not a host, a pattern or a tag", "colon"},
		{"@", "@ is not a group's name", ""},
		{"tag:", `"" is not a tag`, ""},
		{"run:", `"" is not the id of a run`, ""},
		{"run:last/", `"" is not an outcome`, "failed"},
		{"run:last/faild", "faild is not an outcome", "did you mean failed?"},
		{"web[1-", "web[1-: a [ without ]", ""},
		{"web]", "web]: a ] without [", ""},
		{"web[a-c]", "web[a-c]: [a-c] is not a range of numbers such as [1-12] or [01-03,07]", ""},
		{"web[9-1]", "web[9-1]: [9-1] counts downwards", ""},
		{"web[1-010]", "web[1-010]: [1-010] pads its two ends differently", ""},
		{"web[1-70000]", "web[1-70000]: the range is too large: more than 65536 names", ""},
		{strings.Repeat("[1]", 9), strings.Repeat("[1]", 9) + ": more than 8 ranges in one word", ""},
		{"web 1", "web 1 is not a host name", "separated by commas"},
		{"@web&tag:eu", "@web&tag:eu is not a group's name", "separated by commas"},
		{"web1!web2", "web1!web2 is not a host name", "separated by commas"},
		{"tag:eu @web", "eu @web is not a tag", "separated by commas"},
	}
	for _, test := range tests {
		_, err := hosts.ParseSelector(test.text)
		e, ok := errors.AsType[*hosts.Error](err)
		if !ok {
			t.Errorf("ParseSelector(%q): %v, want a *hosts.Error", test.text, err)
			continue
		}
		if strings.TrimSpace(e.Error()) != strings.TrimSpace(test.want) || e.Code != "selector.invalid" || !strings.Contains(e.Hint, test.hint) {
			t.Errorf("ParseSelector(%q) = %q (%s, hint %q), want %q (hint with %q)", test.text, e, e.Code, e.Hint, test.want, test.hint)
		}
	}
}

const fleet = `
groups:
  web: {hosts: ["web[01-04]"], tags: [web]}
  old: {hosts: [web04, db1]}
  empty: {}
  here: {hosts: [localhost, db1]}
hosts:
  web[01-04]:
  db1: {tags: [db]}
  db2: {tags: [db]}
`

// pick returns the names of the hosts that a selector picks.
func pick(inv *hosts.Inventory, selector string, lookup hosts.Lookup) (names []string, err error) {
	sel, err := hosts.ParseSelector(selector)
	if err != nil {
		return nil, err
	}
	picked, err := inv.Select(sel, lookup)
	for _, h := range picked {
		names = append(names, h.Name)
	}
	return names, err
}

func TestSelect(t *testing.T) {
	inv := parse(t, fleet)
	lookup := hosts.Lookup{
		Host: func(name string) (hosts.Host, error) {
			if name == "alias" || name == "another" {
				return hosts.Host{Name: name}, nil
			}
			return hosts.Host{}, inv.Unknown(name, nil)
		},
		Run: func(id string, outcomes []string) ([]string, error) {
			if id != "last" {
				return nil, fmt.Errorf("no run %s", id)
			}
			if slices.Equal(outcomes, []string{"failed", "unknown"}) {
				return []string{"db1", "alias"}, nil
			}
			return nil, nil
		},
	}
	tests := []struct{ selector, want, code string }{
		{"all", "web[01-04],db[1-2]", ""},
		{"*", "web[01-04],db[1-2]", ""},
		{"localhost", "localhost", ""},
		{"all,localhost", "localhost,web[01-04],db[1-2]", ""},
		{"@here", "localhost,db1", ""},
		{"local*", "", "selector.empty"},
		{"db1,web01", "web01,db1", ""},
		{"db1,db1", "db1", ""},
		{"web?3", "web03", ""},
		{"web[02-03]", "web[02-03]", ""},
		{"*[1-2]", "web[01-02],db[1-2]", ""},
		{"@web,!@old", "web[01-03]", ""},
		{"@web,!@old,web04", "web[01-04]", ""},
		{"@web,&@old", "web04", ""},
		{"tag:db", "db[1-2]", ""},
		{"tag:web,!web[01-02]", "web[03-04]", ""},
		{"@web,&tag:db", "", "selector.empty"},
		{"run:last/failed,unknown", "db1,alias", ""},
		{"run:last/skipped", "", "selector.empty"},
		{"another,alias,db1", "db1,another,alias", ""},
		{"web05", "", "inventory.unknown_host"},
		{"web[03-05]", "", "inventory.unknown_host"},
		{"all,!web05", "", "inventory.unknown_host"},
		{"all,!x*", "", "selector.empty"},
		{"@wbe", "", "selector.invalid"},
		{"@empty", "", "selector.empty"},
		{"tag:x", "", "selector.empty"},
	}
	for _, test := range tests {
		names, err := pick(inv, test.selector, lookup)
		code := ""
		if e, ok := errors.AsType[*hosts.Error](err); ok {
			code = e.Code
		} else if err != nil {
			t.Errorf("Select(%q): %v", test.selector, err)
		}
		if got := hosts.FoldNames(names); got != test.want || code != test.code {
			t.Errorf("Select(%q) = %q, %v, want %q, %q", test.selector, got, err, test.want, test.code)
		}
	}
}

func TestSelectHints(t *testing.T) {
	inv := parse(t, fleet)
	tests := []struct{ selector, hint string }{
		{"wbe01", "did you mean web01?"},
		{"web", "did you mean the group @web?"},
		{"@wbe", "did you mean @web?"},
		{"@db1", "did you mean the host db1?"},
		{"tag:wbe", "did you mean tag:web?"},
		{"@db", "did you mean tag:db?"},
		{"@all", "did you mean all?"},
		{"@nothing", "gateway hosts list shows what there is"},
		{"local*", "patterns do not match localhost: name it"},
	}
	for _, test := range tests {
		_, err := pick(inv, test.selector, hosts.Lookup{})
		if e, ok := errors.AsType[*hosts.Error](err); !ok || e.Hint != test.hint {
			t.Errorf("Select(%q): %v, hint %q, want %q", test.selector, err, e.ErrorHint(), test.hint)
		}
	}
	for name, want := range map[string]string{"web": "did you mean the group @web?", "wbe01": "did you mean web01?"} {
		_, err := inv.Host(name)
		if e, ok := errors.AsType[*hosts.Error](err); !ok || e.Hint != want {
			t.Errorf("Host(%q): %v, want the hint %q", name, err, want)
		}
	}
}

// Where there is nothing to list, the list is no help.
func TestSelectWithoutInventory(t *testing.T) {
	for _, selector := range []string{"all", "web*", "@web", "tag:eu", "web1"} {
		_, err := pick(hosts.New(), selector, hosts.Lookup{})
		if e, ok := errors.AsType[*hosts.Error](err); !ok || !strings.HasPrefix(e.Hint, "the inventory has only localhost: ") {
			t.Errorf("Select(%q) = %v, want the hint that there is no inventory", selector, err)
		}
	}
}
