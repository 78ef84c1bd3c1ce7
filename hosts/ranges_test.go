package hosts_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"gateway/hosts"
)

// expand spells a selector out with the hosts of the names themselves.
func expand(t testing.TB, text string) []string {
	t.Helper()
	names, err := pick(hosts.New(), text, hosts.Lookup{
		Host: func(name string) (hosts.Host, error) { return hosts.Host{Name: name}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestRanges(t *testing.T) {
	tests := []struct {
		text string
		want []string
	}{
		{"a[1-3]", []string{"a1", "a2", "a3"}},
		{"a[08-11]", []string{"a08", "a09", "a10", "a11"}},
		{"a[98-101]", []string{"a98", "a99", "a100", "a101"}},
		{"a[098-101]", []string{"a098", "a099", "a100", "a101"}},
		{"a[0,00,2]b", []string{"a0b", "a00b", "a2b"}},
		{"r[1-2]-n[01-02]", []string{"r1-n01", "r1-n02", "r2-n01", "r2-n02"}},
		{"[1-2]a", []string{"1a", "2a"}},
	}
	for _, test := range tests {
		if got := expand(t, test.text); !slices.Equal(got, test.want) {
			t.Errorf("%s = %v, want %v", test.text, got, test.want)
		}
	}
}

func TestFoldNames(t *testing.T) {
	tests := []struct {
		names []string
		want  string
	}{
		{nil, ""},
		{[]string{"a"}, "a"},
		{[]string{"web01", "web02", "web03", "web07", "db1"}, "web[01-03,07],db1"},
		{[]string{"web3", "db", "web1", "web2"}, "web[1-3],db"},
		{[]string{"w8", "w9", "w10", "w11"}, "w[8-11]"},
		{[]string{"w08", "w09", "w10"}, "w[08-10]"},
		{[]string{"w1", "w01"}, "w[1,01]"},
		{[]string{"web01.eu1.example.com", "web02.eu1.example.com"}, "web[01-02].eu1.example.com"},
		{[]string{"a1", "a1"}, "a1"},
		{[]string{"db-", "db-0", "db-1"}, "db-,db-[0-1]"},
		{[]string{"n12345678901234567890", "n12345678901234567891"}, "n12345678901234567890,n12345678901234567891"},
	}
	for _, test := range tests {
		if got := hosts.FoldNames(test.names); got != test.want {
			t.Errorf("FoldNames(%v) = %q, want %q", test.names, got, test.want)
		}
	}
}

// What is folded expands to the same set.
func TestFoldNamesRoundTrip(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	formats := []string{"web", "web%d", "web%02d", "web%03d.eu1.example.com", "r%[1]d-n%[2]d", "r%02[1]d-n%03[2]d", "db-", "db-%02d", "x", "%d", "v%d.%d"}
	for range 2000 {
		set := make(map[string]bool)
		var names []string
		for range 1 + random.IntN(40) {
			name := fmt.Sprintf(formats[random.IntN(len(formats))], random.IntN(120), random.IntN(12))
			if i := slices.Index([]byte(name), '%'); i >= 0 { // a verb had no use for an argument
				name = name[:i]
			}
			names = append(names, name)
			set[name] = true
		}
		got := expand(t, hosts.FoldNames(names))
		slices.Sort(got)
		if want := slices.Sorted(maps.Keys(set)); !slices.Equal(got, want) {
			t.Fatalf("FoldNames(%v) = %s, which is %v", names, hosts.FoldNames(names), got)
		}
	}
}
