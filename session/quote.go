package session

import "strings"

// Quote returns s as one word of any POSIX shell: within single quotes every
// byte but the single quote stands for itself (POSIX XCU 2.2.2).
func Quote(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// typable reports whether the terminal hands s to the shell unchanged. Control
// bytes other than newline and TAB are commands to the line discipline, and so
// is 0xff on dropbear, which takes the 255 of "no such character" (RFC 4254
// section 8) for one.
func typable(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' && c != '\n' && c != '\t' || c == 0x7f || c == 0xff {
			return false
		}
	}
	return true
}

// longestLine returns the length of the longest line of s.
func longestLine(s string) int {
	longest := 0
	for line := range strings.SplitSeq(s, "\n") {
		longest = max(longest, len(line))
	}
	return longest
}
