package session

import "testing"

func TestWithoutShards(t *testing.T) {
	cut := func(n int) string { return typed('E', "130::/usr")[:n] }
	for _, test := range []struct{ name, said, want string }{
		{"what begins every mark", cut(1) + "\n", "\n"},
		{"half a nonce", cut(9) + "\n", "\n"},
		{"half a payload", "a\n" + cut(25) + "\nb\n", "a\n\nb\n"},
		{"no new line yet", "a" + cut(30), "a"},
		{"a prompt with half a nonce", "a\x1eP012345:0:#\x1e012345;b", "ab"},
		{"a prompt of somebody else's", "\x1eP12345:0:#\x1e12345;", "\x1eP12345:0:#\x1e12345;"},
		{"a prompt that is closed by another nonce", "\x1eP012345:0:#\x1e01234;", "\x1eP012345:0:#\x1e01234;"},
		{"a mark of somebody else's", "\x1eEfed\n", "\x1eEfed\n"},
		{"a separator in a text", "a\x1eb\n", "a\x1eb\n"},
		{"a text", "Password: ", "Password: "},
	} {
		if got := string(withoutShards([]byte(test.said), testNonce)); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}
