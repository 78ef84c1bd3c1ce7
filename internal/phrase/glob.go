package phrase

import "path"

// Glob is [path.Match] where, as in a shell, [!x] is what [^x] is. A class such as
// [[:digit:]] is no pattern: it would be read as those letters.
func Glob(pattern, name string) (bool, error) {
	p := []byte(pattern)
	within := false // of the brackets
	for i := 0; i < len(p); i++ {
		switch {
		case p[i] == '\\':
			i++
		case within && p[i] == '[' && i+1 < len(p) && p[i+1] == ':':
			return false, path.ErrBadPattern
		case p[i] == ']':
			within = false
		case p[i] == '[' && !within:
			if within = true; i+1 < len(p) && p[i+1] == '!' {
				p[i+1] = '^'
			}
		}
	}
	return path.Match(string(p), name)
}
