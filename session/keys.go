package session

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Keys returns what a terminal sends for the named keys, one after the other,
// to a program that has not asked for anything special: [KeysIn] without
// application mode.
func Keys(names ...string) ([]byte, error) { return KeysIn(false, names...) }

// KeysIn returns what an xterm sends for the named keys. application says
// whether the program asked for application cursor keys (DECCKM), as curses
// programs do.
//
// A name is a key, such as enter, esc, up, pgdn or f5, or a single character
// that stands for itself. Before it may stand ctrl-, alt- and shift-, in any
// order; short forms are c-, m- (or a-), s- and ^, as in ^c. Case makes no
// difference but in a single character: alt-B is not alt-b.
//
// A name that is none is a usage [transport.Error]. It is never taken for text.
func KeysIn(application bool, names ...string) ([]byte, error) {
	var all []byte
	for _, name := range names {
		bytes, ok := press(name, application)
		if !ok {
			return nil, failure(codeUsage, nil, "keys are enter, tab, esc, backspace, space, delete, insert, home, end, pgup, pgdn, up, down, left, right, f1 to f12, single characters, and ctrl-, alt- or shift- before one",
				"no key %.40q%s", name, nearestKey(name))
		}
		all = append(all, bytes...)
	}
	return all, nil
}

// A key is what xterm sends for it: "XTerm Control Sequences", section PC-Style
// Function Keys, and terminfo's xterm-256color.
type key struct {
	plain  string // without modifiers
	number int    // ESC [ number ~; with modifiers ESC [ number ; modifiers ~
	final  byte   // ESC [ final; with modifiers ESC [ 1 ; modifiers final
	ss3    bool   // ESC O final without modifiers, in every mode
}

var keys = map[string]key{
	"enter": {plain: "\r"}, "tab": {plain: "\t"}, "esc": {plain: "\x1b"}, "space": {plain: " "}, "backspace": {plain: "\x7f"},
	"up": {final: 'A'}, "down": {final: 'B'}, "right": {final: 'C'}, "left": {final: 'D'},
	"home": {final: 'H'}, "end": {final: 'F'},
	"insert": {number: 2}, "delete": {number: 3}, "pgup": {number: 5}, "pgdn": {number: 6},
	"f1": {final: 'P', ss3: true}, "f2": {final: 'Q', ss3: true}, "f3": {final: 'R', ss3: true}, "f4": {final: 'S', ss3: true},
	"f5": {number: 15}, "f6": {number: 17}, "f7": {number: 18}, "f8": {number: 19}, "f9": {number: 20}, "f10": {number: 21},
	"f11": {number: 23}, "f12": {number: 24},
}

// keyAliases are other names of keys, without dashes and underscores.
var keyAliases = map[string]string{
	"return": "enter", "ret": "enter", "cr": "enter", "escape": "esc", "spc": "space", "spacebar": "space",
	"bs": "backspace", "bspace": "backspace", "del": "delete", "dc": "delete", "ins": "insert", "ic": "insert",
	"pageup": "pgup", "ppage": "pgup", "prior": "pgup", "pagedown": "pgdn", "pgdown": "pgdn", "npage": "pgdn", "next": "pgdn",
	"arrowup": "up", "arrowdown": "down", "arrowleft": "left", "arrowright": "right",
	"uparrow": "up", "downarrow": "down", "leftarrow": "left", "rightarrow": "right",
}

// Modifiers, as xterm adds them up.
const (
	shift = 1 << iota
	alt
	ctrl
)

type modifier struct {
	prefix string
	bit    int
}

var modifiers = []modifier{
	{"ctrl-", ctrl},
	{"control-", ctrl},
	{"c-", ctrl},
	{"ctrl+", ctrl},
	{"^", ctrl},
	{"alt-", alt},
	{"meta-", alt},
	{"m-", alt},
	{"a-", alt},
	{"alt+", alt},
	{"shift-", shift},
	{"s-", shift},
	{"shift+", shift},
}

// cutModifiers takes the modifiers off a name. Something is left of it.
func cutModifiers(name string) (string, int) {
	held := 0
	for {
		i := slices.IndexFunc(modifiers, func(m modifier) bool {
			n := len(m.prefix)
			return len(name) > n && strings.EqualFold(name[:n], m.prefix)
		})
		if i < 0 {
			return name, held
		}
		name, held = name[len(modifiers[i].prefix):], held|modifiers[i].bit
	}
}

// named finds a key by its name or alias.
func named(name string) (key, bool) {
	name = strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(name))
	if other, ok := keyAliases[name]; ok {
		name = other
	}
	k, ok := keys[name]
	return k, ok
}

// press returns what one key sends.
func press(name string, application bool) (string, bool) {
	name, held := cutModifiers(name)
	if k, ok := named(name); ok {
		return k.press(held, application)
	}
	if fold := strings.ToLower(name); held == 0 && (fold == "backtab" || fold == "btab") {
		return "\x1b[Z", true
	}
	if r, size := utf8.DecodeRuneInString(name); size == len(name) && r != utf8.RuneError && unicode.IsPrint(r) {
		return character(r, held)
	}
	return "", false
}

// press returns what the key sends together with modifiers. Some have no
// sequence of their own, such as ctrl-enter.
func (k key) press(held int, application bool) (string, bool) {
	switch {
	case k.plain == "\t" && held&^alt == shift:
		return escaped("\x1b[Z", held), true
	case k.plain == " " && held&ctrl != 0:
		return escaped("\x00", held), held&shift == 0
	case k.plain != "":
		return escaped(k.plain, held), held&^alt == 0
	case k.number != 0 && held == 0:
		return fmt.Sprintf("\x1b[%d~", k.number), true
	case k.number != 0:
		return fmt.Sprintf("\x1b[%d;%d~", k.number, 1+held), true
	case held != 0:
		return fmt.Sprintf("\x1b[1;%d%c", 1+held, k.final), true
	case k.ss3 || application:
		return "\x1bO" + string(k.final), true
	}
	return "\x1b[" + string(k.final), true
}

// character returns what a key with a character on it sends.
func character(r rune, held int) (string, bool) {
	if held&shift != 0 {
		if !unicode.IsLetter(r) || held&ctrl != 0 {
			return "", false // which character that is depends on the keyboard, and a control has no case
		}
		r = unicode.ToUpper(r)
	}
	if held&ctrl == 0 {
		return escaped(string(r), held), true
	}
	switch {
	case r >= '@' && r <= '_', r >= 'a' && r <= 'z':
		r &= 0x1f
	case r == '?':
		r = 0x7f
	case r == '/': // xterm and every keyboard before it
		r = 0x1f
	default:
		return "", false
	}
	return escaped(string(r), held), true
}

// escaped puts ESC first when alt is held.
func escaped(s string, held int) string {
	if held&alt != 0 {
		return "\x1b" + s
	}
	return s
}

// nearestKey names the key that somebody most likely meant.
func nearestKey(name string) string {
	candidates := []string{"backtab", "shift-tab", "ctrl-space"}
	for c := 'a'; c <= 'z'; c++ {
		candidates = append(candidates, "ctrl-"+string(c), "alt-"+string(c))
	}
	candidates = slices.AppendSeq(candidates, maps.Keys(keys))
	candidates = slices.AppendSeq(candidates, maps.Keys(keyAliases))
	slices.Sort(candidates)

	base, held := cutModifiers(name)
	prefix := name[:len(name)-len(base)]
	best, least := "", 3 // farther away is a guess, and in a short word two letters are
	consider := func(word, candidate, answer string) {
		if _, ok := press(answer, false); ok && len(word) <= 40 {
			if d := editDistance(strings.ToLower(word), candidate); d < min(least, (len(word)+1)/2) {
				best, least = answer, d
			}
		}
	}
	for _, candidate := range candidates {
		consider(name, candidate, candidate)
		if held != 0 {
			consider(base, candidate, prefix+candidate)
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", best)
}

// editDistance counts the bytes to insert, delete or replace to get from a to b.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			d := diagonal
			if a[i] != b[j] {
				d++
			}
			diagonal = row[j+1]
			row[j+1] = min(d, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
