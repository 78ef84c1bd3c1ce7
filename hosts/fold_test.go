package hosts_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gateway/hosts"
)

// Folded names, as a selector, are the names again.
func TestFoldedNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`(web|db-|a\.b)[0-9]{0,3}(\.eu[0-9])?`), 1, 40, rapid.ID[string]).Draw(t, "names")
		parsed, err := hosts.ParseSelector(hosts.FoldNames(names))
		if err != nil {
			t.Fatalf("%q: %v", hosts.FoldNames(names), err)
		}
		found, err := hosts.New().Select(parsed, hosts.Lookup{Host: func(name string) (hosts.Host, error) { return hosts.Host{Name: name}, nil }})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, h := range found {
			got = append(got, h.Name)
		}
		slices.Sort(got)
		slices.Sort(names)
		if !slices.Equal(got, names) {
			t.Errorf("%q folded is %q, which is %q", names, hosts.FoldNames(names), got)
		}
	})
}
