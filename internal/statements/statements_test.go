package statements

import (
	"slices"
	"strings"
	"testing"
)

// TestSplitUpToRedirection: behind it, the streams of a statement on its own would not
// be where the text has turned them.
func TestSplitUpToRedirection(t *testing.T) {
	for text, want := range map[string][]Statement{
		"a\nexec >x 2>&1\nb\nc":       {{"a\n", 1}, {"exec >x 2>&1\nb\nc", 2}},
		"if a; then exec <x; fi\nb\n": {{"if a; then exec <x; fi\nb\n", 1}},
		"a\nf() { exec >>x; }\nf; b":  {{"a\n", 1}, {"f() { exec >>x; }\nf; b", 2}},
		"cat <<A; exec 2>x\na\nA\nb":  {{"cat <<A; \na\nA\n", 1}, {"exec 2>x\nb", 1}},
	} {
		got, err := Split(text, "bash")
		if err == nil || !strings.Contains(err.Error(), "exec redirects what follows") || !slices.Equal(got, want) {
			t.Errorf("Split(%q) = %+v, %v; want %+v and why", text, got, err, want)
		}
	}
}

func TestSplit(t *testing.T) {
	tests := []struct {
		name, shell, text string
		want              []Statement
	}{
		{name: "empty", text: ""},
		{name: "comments only", text: "#!/bin/sh\n\n# nothing\n"},
		{name: "lines", text: "a\nb\n", want: []Statement{{"a\n", 1}, {"b\n", 2}}},
		{name: "no newline at the end", text: "a\nb", want: []Statement{{"a\n", 1}, {"b", 2}}},
		{name: "one line", text: "a; b & c", want: []Statement{{"a; ", 1}, {"b & ", 1}, {"c", 1}}},
		{name: "shebang and comments", text: "#!/bin/sh\n# one\na # two\n\n# three\nb\n", want: []Statement{{"a # two\n\n# three\n", 3}, {"b\n", 6}}},
		{name: "lists stay whole", text: "a && b ||\n c\nd | e\n", want: []Statement{{"a && b ||\n c\n", 1}, {"d | e\n", 3}}},
		{name: "blocks stay whole", text: "if a\nthen b\nfi\nfor x in 1; do\nc\ndone\nd", want: []Statement{{"if a\nthen b\nfi\n", 1}, {"for x in 1; do\nc\ndone\n", 4}, {"d", 7}}},
		{name: "function", text: "f() {\n  a\n  b\n}\nf x\n", want: []Statement{{"f() {\n  a\n  b\n}\n", 1}, {"f x\n", 5}}},
		{name: "case", text: "case $x in\na) b;;\n*) c\nesac\nd", want: []Statement{{"case $x in\na) b;;\n*) c\nesac\n", 1}, {"d", 5}}},
		{name: "subshell", text: "(a\nb)\n{ c\n}", want: []Statement{{"(a\nb)\n", 1}, {"{ c\n}", 3}}},
		{name: "continued line", text: "a \\\n b\nc", want: []Statement{{"a \\\n b\n", 1}, {"c", 3}}},
		{name: "quotes over lines", text: "echo 'a\nb; c'\nd", want: []Statement{{"echo 'a\nb; c'\n", 1}, {"d", 3}}},
		{name: "escaped blank at the end", text: "echo a\\ \nb", want: []Statement{{"echo a\\ \n", 1}, {"b", 2}}},
		{name: "here-document", text: "cat <<X\na; b\nX\nc\n", want: []Statement{{"cat <<X\na; b\nX\n", 1}, {"c\n", 4}}},
		{name: "empty here-document", text: "cat <<X\nX\nc\n", want: []Statement{{"cat <<X\nX\n", 1}, {"c\n", 3}}},
		{name: "here-document with tabs", text: "cat <<-'X'\n\ta $b\n\tX\nc", want: []Statement{{"cat <<-'X'\n\ta $b\n\tX\n", 1}, {"c", 4}}},
		{name: "here-document in a block", text: "if a; then cat <<X\nb\nX\nfi\nc", want: []Statement{{"if a; then cat <<X\nb\nX\nfi\n", 1}, {"c", 5}}},
		{
			name: "here-documents share a line", text: "cat <<A; cat <<B; c\na\nA\nb\nB\nd",
			want: []Statement{{"cat <<A; \na\nA\n", 1}, {"cat <<B; \nb\nB\n", 1}, {"c\n", 1}, {"d", 6}},
		},
		{name: "here-document before a block", text: "cat <<A; if b; then\na\nA\nc; fi\nd", want: []Statement{{"cat <<A; \na\nA\n", 1}, {"if b; then\nc; fi\n", 1}, {"d", 5}}},
		{name: "empty here-documents share a line", text: "cat <<A <<-'B'; c <<D\nA\n\tB\nD\nd", want: []Statement{{"cat <<A <<-'B'; \nA\n\tB\n", 1}, {"c <<D\nD\n", 1}, {"d", 5}}},
		{name: "here-document in a substitution", text: "a=$(cat <<A\nb\nA\n); c <<B; d\nB\n", want: []Statement{{"a=$(cat <<A\nb\nA\n); ", 1}, {"c <<B; \nB\n", 4}, {"d\n", 4}}},
		{name: "bash", shell: "/usr/bin/bash", text: "[[ a =~ b ]]\nx=(1\n2)\ny", want: []Statement{{"[[ a =~ b ]]\n", 1}, {"x=(1\n2)\n", 2}, {"y", 4}}},
		{name: "no shell known", text: "x=(1\n2)\ny", want: []Statement{{"x=(1\n2)\n", 1}, {"y", 3}}},
		{name: "zsh", shell: "zsh", text: "print ${(j:,:)x}\ny", want: []Statement{{"print ${(j:,:)x}\n", 1}, {"y", 2}}},
		{name: "statuses of a pipeline", shell: "bash", text: "a | b\nexit ${PIPESTATUS[0]}\nc\n", want: []Statement{{"a | b\nexit ${PIPESTATUS[0]}\n", 1}, {"c\n", 3}}},
		{name: "the last word", text: "mkdir -p a\ncd $_; b\n: ${_}\n: $_x ${_y} $__\n", want: []Statement{{"mkdir -p a\ncd $_; ", 1}, {"b\n: ${_}\n", 2}, {": $_x ${_y} $__\n", 4}}},
		{name: "a descriptor of its own", text: "exec 3>x 9<y\n(exec >x)\na=$(exec 2>x)\nexec b >x\nc", want: []Statement{{"exec 3>x 9<y\n", 1}, {"(exec >x)\n", 2}, {"a=$(exec 2>x)\n", 3}, {"exec b >x\n", 4}, {"c", 5}}},
		{name: "streams elsewhere at the end", text: "a\nexec >x", want: []Statement{{"a\n", 1}, {"exec >x", 2}}},
		{name: "busybox", shell: "/usr/bin/busybox", text: "echo $'it\\'s'\nfalse\necho it\\'s\n", want: []Statement{{"echo $'it\\'s'\n", 1}, {"false\n", 2}, {"echo it\\'s\n", 3}}},
		{name: "another encoding", text: "echo 'Gr\xfc\xdfe' # \xe4\nmake \xfc; cat <<X\n\xe9\nX\nb\n", want: []Statement{{"echo 'Gr\xfc\xdfe' # \xe4\n", 1}, {"make \xfc; ", 2}, {"cat <<X\n\xe9\nX\n", 2}, {"b\n", 5}}},
		{name: "half a character", text: "echo \xe2\x82\nb", want: []Statement{{"echo \xe2\x82\n", 1}, {"b", 2}}},
		{name: "many lines", text: strings.Repeat("\n", maxText-1) + "x", want: []Statement{{"x", maxText}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := Split(test.text, test.shell)
			if err != nil {
				t.Fatalf("Split = %v", err)
			}
			if len(got) != len(test.want) {
				t.Fatalf("Split = %+v, want %+v", got, test.want)
			}
			for i := range got {
				if got[i] != test.want[i] {
					t.Errorf("statement %d is %+v, want %+v", i, got[i], test.want[i])
				}
			}
		})
	}
}

// TestIncomplete goes by what bash asks another line for.
func TestIncomplete(t *testing.T) {
	for text, want := range map[string]bool{
		"echo 'a": true, "echo 'a\nb'": false, `echo "$(a`: true, "cat <<X": true, "cat <<X\na": true, "cat <<X\na\nX": false, "cat <<A <<B\nA": true,
		"cat <<'X'": true, "cat <<-\"X\"\na": true, `cat <<\X | wc`: true, "cat <<'X'\na\nX": false, "cat <<'A' <<'B'\nA": true, "a $(cat <<'X'\nb": true,
		"for i in 1 2": true, "for i in 1 2\ndo": true, "for i in 1 2\ndo a\ndone": false, "if a": true, "case x in": true, "f() {": true, "(a": true,
		"a &&": true, "a |": true, "a && b": false, "a # '": false, "": false, "x=(1": true,
		"fi": false, "a )": false, "for": false, "a >": false, "echo 'a\n" + strings.Repeat("b", maxText): false,
	} {
		if got := Incomplete(text, "bash"); got != want {
			t.Errorf("Incomplete(%.40q) = %v, want %v", text, got, want)
		}
	}
	if Incomplete("x=(1", "dash") {
		t.Error("what dash does not read is incomplete")
	}
}

func TestSplitWhole(t *testing.T) {
	tests := []struct{ name, shell, text, want string }{
		{"not closed", "bash", "a\nif b\n", "line 2, column 1: "},
		{"another shell's", "dash", "a\nfor ((i=0;;)); do b; done\n", "line 2, column 5"},
		{"too long", "bash", strings.Repeat("a\n", maxText), "at most 131072"},
		{"empty document", "bash", "<<A && echo '\n' & echo b\nA\n", "here-documents around it"},
		{"too deep", "bash", strings.Repeat("$(", maxOpeners+1), "with at most 5000"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := Split(test.text, test.shell)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Split = %v, want %q", err, test.want)
			}
			if len(got) != 1 || got[0] != (Statement{test.text, 1}) {
				t.Errorf("got %d statements, want the whole text", len(got))
			}
		})
	}
}

// A stack that overflows ends the process, so that this test passes if it ends.
func TestSplitDeep(t *testing.T) {
	fill := func(s string) string { return strings.Repeat(s, maxText/len(s)) }
	for _, text := range []string{
		strings.Repeat("$(", maxOpeners), strings.Repeat(`"$(`, maxOpeners), strings.Repeat("${a:-", maxOpeners), strings.Repeat("`\\", maxOpeners),
		strings.Repeat("if ", maxOpeners), strings.Repeat("while if ", maxOpeners/2), strings.Repeat("f(){ ", maxOpeners/2), strings.Repeat("case x in x) ", maxOpeners/2),
		"((" + strings.Repeat("!", maxOpeners-2), "[[" + strings.Repeat(" !", maxOpeners-2), "a" + strings.Repeat("[a", maxOpeners),
		fill("a|"), fill("a&&"), fill("a;a&"), "((" + fill("-")[2:], "((" + fill("a=")[2:], "((" + fill("a?")[2:], "((" + fill("a**")[3:], "[[" + fill(" a &&")[5:],
		fill("<<a "), fill("a\\\n"), fill("$$"), fill("a=b "), fill("'"), fill(`"`), fill("\\"),
	} {
		for _, shell := range []string{"bash", "zsh"} { // what others have, bash has
			_, _ = Split(text, shell) // any answer will do
		}
	}
}

// FuzzSplit: the statements, read one after the other, are the text's.
func FuzzSplit(f *testing.F) {
	for _, text := range []string{
		"a\nb", "if a; then cat <<X; fi; b\nx\nX\nc", "cat <<A; cat <<-B\na\nA\n\tb\n\tB\n", "f() { a; }; f &\n", "x=$(cat <<A\nb\nA\n); y",
		"a # b\n\n! c", "echo a\\\n b; `c`", "a&echo $_", "<<A&&'\n'&0\nA", "cat <<A && cat <<B; c\na\nA\nb\nB\nd", "a\r\nb\r\n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		pieces, err := Split(text, "bash")
		if err != nil {
			return
		}
		lines := strings.Split(text, "\n")
		line := 1
		var shapes []string
		for _, piece := range pieces {
			if piece.Line < line || piece.Line > len(lines) {
				t.Errorf("%q: %q is on line %d of %d, after line %d", text, piece.Text, piece.Line, len(lines), line)
			}
			line = piece.Line
			shapes = append(shapes, shapesOf(t, piece.Text)...)
		}
		want := shapesOf(t, text)
		parted := len(shapes) == len(pieces) || len(shapes) > len(pieces) && asksBack.MatchString(text)
		if !slices.Equal(shapes, want) || !parted {
			t.Errorf("%q is split into %+v:\n%s\nwant\n%s", text, pieces, shapes, want)
		}
	})
}

func shapesOf(t *testing.T, text string) []string {
	t.Helper()
	file, err := parse(text, "bash")
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	var shapes []string
	for _, stmt := range file.Stmts {
		shapes = append(shapes, shape(stmt))
	}
	return shapes
}
