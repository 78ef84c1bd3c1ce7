package hosts

import (
	"fmt"
	"slices"
	"strings"
)

// isFileList reports whether a keyword has several files on one line.
func isFileList(keyword string) bool {
	return keyword == "userknownhostsfile" || keyword == "globalknownhostsfile"
}

// isFile reports whether a keyword has one file, which some versions of ssh -G print as it
// is written, and others expanded.
func isFile(keyword string) bool {
	return keyword == "identityagent" || keyword == "revokedhostkeys"
}

// file reads the path under a keyword of [isFile]. A % that ssh has left in it when it
// expanded the path stands for itself.
func (p *settingsParser) file(key string) (string, bool) {
	value := p.first(key)
	if p.written != nil && strings.Contains(value, "%") {
		lines, err := p.written(key)
		asWritten := func(words []string) bool { return len(words) == 1 && words[0] == value }
		if err == nil && !slices.ContainsFunc(lines, asWritten) {
			return value, true
		}
	}
	return p.path(value)
}

// split makes the words of a list of files out of what ssh -G prints, which is the
// paths without quotes: one with a blank in it looks like two. What is printed is
// what a line of the files says, expanded, so the words are those of that line. A
// list that was split wrongly would name other files: in one that does not exist no
// key is known, and any would be taken for a new one. So would one in which a % is
// left that ssh has expanded: those words are the line's, too.
func (p *settingsParser) split(key string) error {
	printed := p.first(key)
	blanks := strings.ContainsAny(printed, " \t")
	if !blanks && !strings.Contains(printed, "%") {
		p.values[key] = strings.Fields(printed) // none or one
		return nil
	}
	lines, err := p.written(key)
	if err != nil {
		return err
	}
	var found [][]string
	blank := len(lines) == 0 // the words of a line may have blanks
	for _, words := range lines {
		expanded := p.expandAll(words)
		if printed == strings.Join(expanded, " ") || printed == strings.Join(words, " ") {
			found = append(found, words)
		}
		blank = blank || slices.ContainsFunc(expanded, func(word string) bool { return strings.ContainsAny(word, " \t") })
	}
	switch {
	case len(found) > 0 && !slices.ContainsFunc(found[1:], func(words []string) bool { return !slices.Equal(words, found[0]) }):
		p.values[key] = found[0]
	case len(found) == 0 && !(blank && blanks):
		p.values[key] = strings.Fields(printed) // such as %C, which is not expanded here
	default:
		return &Error{
			Code:    codeInventory,
			Message: fmt.Sprintf("ssh_config: host %s: %s %s: ssh -G prints the paths without quotes, and where one ends can't be told", p.tokens.name, key, brief(printed)),
			Hint:    "use paths without spaces there",
		}
	}
	return nil
}

// expandAll expands what can be expanded.
func (p *settingsParser) expandAll(words []string) []string {
	expanded := slices.Clone(words)
	for i, word := range words {
		if path, err := p.expand(word); err == nil {
			expanded[i] = path
		}
	}
	return expanded
}
