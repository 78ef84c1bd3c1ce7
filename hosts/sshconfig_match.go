package hosts

import (
	"errors"
	"fmt"
	"strings"

	"gateway/internal/phrase"
)

const sshBlank = " \t\r\n\f"

// cutWord takes one word, which may be quoted, and the blanks and the one "="
// after it (misc.c, strdelim).
func cutWord(s string) (word, rest string) {
	if strings.HasPrefix(s, `"`) {
		word, rest, _ = strings.Cut(s[1:], `"`)
	} else {
		end := strings.IndexAny(s, sshBlank+`="`)
		if end < 0 {
			return s, ""
		}
		word, rest = s[:end], s[end:]
	}
	rest = strings.TrimLeft(rest, sshBlank)
	if after, ok := strings.CutPrefix(rest, "="); ok {
		rest = strings.TrimLeft(after, sshBlank)
	}
	return word, rest
}

// splitArgs splits the arguments of a line at blanks. Quotes of both kinds
// group, a backslash takes the meaning from a quote, a backslash or a blank,
// and a word that starts with "#" ends the line (misc.c, argv_split).
func splitArgs(s string) ([]string, error) {
	var (
		args  []string
		word  strings.Builder
		open  bool // a word has begun
		quote byte
	)
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '\\' && i+1 < len(s) && (strings.IndexByte(`'"\`, s[i+1]) >= 0 || quote == 0 && s[i+1] == ' '):
			i++
			word.WriteByte(s[i])
			open = true
		case quote == 0 && (c == ' ' || c == '\t'):
			if open {
				args = append(args, word.String())
				word.Reset()
				open = false
			}
		case quote == 0 && c == '#' && !open:
			return args, nil
		case quote == 0 && (c == '"' || c == '\''):
			quote, open = c, true
		case quote != 0 && c == quote:
			quote = 0
		default:
			word.WriteByte(c)
			open = true
		}
	}
	if quote != 0 {
		return nil, errors.New("a quote is not closed")
	}
	if open {
		args = append(args, word.String())
	}
	return args, nil
}

// host applies the patterns of a Host line, and notes the names that it spells
// out. The pass for Match final is about the address (ssh.c, where it calls
// process_config_files again).
func (s *sshScan) host(patterns []string) bool {
	name := s.name
	if s.final {
		name = s.hostName()
	}
	for _, pattern := range patterns {
		if nameForm.MatchString(pattern) && !s.final {
			s.aliases = append(s.aliases, pattern)
		}
	}
	return phrase.MatchList(patterns, name)
}

// names reports whether a pattern of a Host line that applies says something
// about this very name, which "*" does not.
func (s *sshScan) names(pattern string) bool {
	return strings.Trim(pattern, "*?") != "" && phrase.Match(pattern, s.name)
}

// match applies the criteria of a Match line (readconf.c, match_cfg_line).
func (s *sshScan) match(rest string) (verdict, error) {
	result, count := surely, 0
	for rest != "" {
		var word string
		word, rest = cutWord(rest)
		if word == "" || word[0] == '#' {
			break
		}
		criterion, negated := strings.CutPrefix(strings.ToLower(word), "!")
		count++
		switch criterion {
		case "all":
			// One criterion before it is let pass; they are meant to be canonical
			// and final.
			if count > 2 || rest != "" && rest[0] != '#' {
				return never, errors.New("match all goes with no other criterion")
			}
			return min(result, verdictOf(!negated)), nil
		case "final":
			s.wantFinal = true
			result = min(result, verdictOf(s.final != negated))
			continue
		case "canonical":
			result = min(result, verdictOf(s.final != negated))
			continue
		}
		var pattern string
		pattern, rest = cutWord(rest)
		if pattern == "" || pattern[0] == '#' {
			return never, fmt.Errorf("match %s has no argument", brief(word))
		}
		matches, known := s.criterion(criterion, pattern)
		if !known {
			if result == surely {
				s.warnings = append(s.warnings, fmt.Sprintf("Match %s is taken as not matching without ssh", brief(word)))
			}
			result = min(result, maybe)
			continue
		}
		result = min(result, verdictOf(matches != negated))
	}
	if count == 0 {
		return never, errors.New("match without a criterion")
	}
	return result, nil
}

// criterion applies one criterion; known is false for those that take ssh.
func (s *sshScan) criterion(criterion, pattern string) (matches, known bool) {
	switch criterion {
	case "host":
		return matchList(strings.ToLower(pattern), strings.ToLower(s.hostName())), true
	case "originalhost":
		return matchList(strings.ToLower(pattern), strings.ToLower(s.name)), true
	case "user":
		account := s.local
		if v := s.values["user"]; v != nil {
			account = v[0]
		}
		return matchList(pattern, account), true
	case "localuser":
		return matchList(pattern, s.local), true
	}
	return false, false
}

// matchList matches a comma-separated list of patterns.
func matchList(list, name string) bool { return phrase.MatchList(strings.Split(list, ","), name) }
