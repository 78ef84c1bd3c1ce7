//go:build npm

package compare

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// write puts the table into the file GATEWAY_COMPARE_DOC, and the grades between
// the marks in the file GATEWAY_COMPARE_README.
func write(t *testing.T, table map[string]map[string]cell) {
	t.Helper()
	var doc, grades strings.Builder
	doc.WriteString("# Servers for agents, side by side\n\n" +
		"`make mcp-compare` installs three MCP servers for SSH from npm, runs each of them and `gateway mcp` on the same stories against the same OpenSSH server, through the client of the official Go SDK over stdio, and writes this file. " +
		"Each server is driven the way its own documentation says, with all that it has: `compare/peers_test.go`. " +
		"What stands here was seen in that run; ✓ is all that the story wants, ~ a part, ✗ nothing of use.\n\n")
	doc.WriteString("They were chosen for their downloads: of the servers on npm that run commands over SSH these have the most. They do other things that no story asks for: transfers of files, databases, backups, tunnels, network devices, approval of commands by rules or by a person.\n\n")
	grades.WriteString("| |")
	for _, p := range peers {
		fmt.Fprintf(&grades, " %s |", title(t, p))
	}
	grades.WriteString("\n|---" + strings.Repeat("|---", len(peers)) + "|\n")
	for _, s := range stories {
		fmt.Fprintf(&grades, "| %s |", s.name)
		fmt.Fprintf(&doc, "## %s\n\nWanted: %s.\n\n| | | |\n|---|---|---|\n", strings.ToUpper(s.name[:1])+s.name[1:], s.wants)
		for _, p := range peers {
			c := table[p.name][s.name]
			if c.grade == figure {
				fmt.Fprintf(&grades, " %s |", strings.ReplaceAll(c.seen, ", ", ",<br>"))
			} else {
				fmt.Fprintf(&grades, " %s |", c.grade)
			}
			fmt.Fprintf(&doc, "| %s | %s | %s |\n", title(t, p), c.grade, strings.ReplaceAll(c.seen, "|", "\\|"))
		}
		grades.WriteString("\n")
		doc.WriteString("\n")
	}
	if file := os.Getenv("GATEWAY_COMPARE_DOC"); file != "" {
		put(t, file, strings.TrimRight(doc.String(), "\n")+"\n")
	}
	if file := os.Getenv("GATEWAY_COMPARE_README"); file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		before, rest, ok := strings.Cut(string(text), begins)
		_, after, found := strings.Cut(rest, ends)
		if !ok || !found {
			t.Fatalf("%s has no %s and %s", file, begins, ends)
		}
		put(t, file, before+begins+"\n"+grades.String()+ends+after)
	}
	t.Log("\n" + grades.String())
}

const begins, ends = "<!-- mcp-compare begins -->", "<!-- mcp-compare ends -->"

func title(t *testing.T, p peer) string { return strings.TrimSpace(p.name + " " + p.version(t)) }

func put(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
