package session

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// maxLine bounds a typed line. A terminal in canonical mode drops what exceeds
// 4095 bytes on Linux and 1023 on macOS (MAX_CANON), silently.
const maxLine = 900

// maxTyped bounds a typed frame; longer texts travel through the keeper, which
// is also the faster way for them.
const maxTyped = 3 << 10

// maxText bounds a command. bash and zsh need seconds for more.
const maxText = 4 << 20

// A frame is one command as the session's shell reads it, in one of two forms.
//
// The typed one says everything, within one brace group, which the shell reads
// whole before it runs any of it: a program that reads the terminal can't eat
// the end. The stored one types but the nonce and the text, and leaves the rest
// to one of the keeper's frame files; see [frameFile]. It is for the plain command, and
// saves up to half of what a frame costs: zsh reads what is typed a byte per
// system call.
type frame struct {
	dialect dialect
	nonce   string
	keeper  *keeper // whose streams they are; nil: the terminal carries them
	command Command
	// stdin is the FIFO that Command.Stdin comes from, if there is one.
	stdin string
	// once is put before the text; see [Session.once].
	once string
	// cwd is where the session is, to come back to after Command.Cwd.
	cwd string
	// status is what the text finds in $?.
	status int
	// quiet: keep what the shell says of its own off the terminal.
	quiet bool
	// traced: the shell may show what it runs.
	traced bool
	// typed: the frame file won't do; see [Session.frame].
	typed bool
	// limited: the shell may have a limit on the size of files, and die of it.
	limited bool
	// loud: the prompt behind the marks says that what the command wrote to the
	// terminal has come.
	loud bool
	// modes: the terminal's are set anew behind the marks.
	modes bool
	// reopen: what is exported is kept for Session.Reopen.
	reopen bool
	// tty is the terminal's own name: a shell that reads /dev/tty does so for its command.
	tty string
	// rest is the nonce of what reads the rest of what was typed, if that is to be
	// read; see discard.
	rest string
	// uploaded: the text stands in the keeper's directory.
	uploaded bool
	// piped: the shell reads a pipe, of which an interrupt throws nothing away. A frame then is one
	// line: behind one that is interrupted, the shell would run the rest by itself.
	piped bool
}

// longest bounds the lines of a frame.
func (f frame) longest() int {
	if f.piped {
		return maxTyped
	}
	return maxLine
}

// encode returns what is typed.
//
//   - The nonce of the prompt is in a variable: neither set -v nor an echo
//     shows a whole mark. The next prompt then is mark P with the status of the
//     line. A text that changes PS1 may leave its line as well as one that does
//     not: PS1 is set anew before it and behind it.
//   - A simple command stands in front: bash, after a text that ended in an
//     open quote, takes a line that starts with { for a syntax error. A blank
//     keeps the line out of zsh's history.
//   - The text is one quoted word for eval, so that no comment, heredoc, open
//     quote or trailing operator in it reaches the frame.
//   - The streams are named by path, in spite of noclobber. Descriptors 0 to 9
//     are all the user's.
//   - What is assigned is not exported, in spite of allexport: a program could
//     end its own command with the nonce.
//   - The group's own output goes nowhere in a session whose shell traces, or
//     has a DEBUG trap. It costs 15 µs, so the others do without.
func (f frame) encode() string {
	var b strings.Builder
	if f.stored() {
		b.WriteString(" _gwn=" + f.nonce + ";_gw=" + Quote(f.command.Text) + ";")
		if strings.Contains(f.command.Text, "\n") {
			b.WriteString(f.dialect.forget)
		}
		fmt.Fprintf(&b, f.dialect.stored, f.keeper.frames(f.loud))
	} else {
		head, body := f.head(), f.body()+"}"
		b.WriteString(head)
		if len(head)+len(body)+len(nowhere) > f.longest() {
			b.WriteString("\n")
		}
		b.WriteString(body)
	}
	switch {
	case f.quiet && f.command.TTY: // its trace is all that it has to say
		b.WriteString(" 2>|/dev/null")
	case f.quiet:
		b.WriteString(nowhere)
	}
	b.WriteString("\n")
	return b.String()
}

// nowhere is where a group's own output goes in a session whose shell traces.
const nowhere = " >|/dev/null 2>&1"

// head is the typed form up to where the options of the user's are in force.
func (f frame) head() string {
	head := " PS2=;{ " + f.dialect.frame + f.dialect.forget + f.once + "_gwa=$-;set +a;unset _gwn _gw;" + prompt(f.nonce) + ";"
	if f.sourced() {
		head += "_gw=" + Quote(f.inFile(f.command.Text)) + ";"
	}
	if f.dialect.strayBody && strings.Contains(f.command.Text, "<<") {
		head += "case 1 in 2) _gw() { :;};;esac;" // read, and never run
	}
	return head + f.untrace()
}

// body is the rest of the typed form, within the group, on as many lines as it needs.
func (f frame) body() string {
	body, rest := f.guarded(), f.after()
	if f.command.Cwd != "" {
		body = "_gwo=${OLDPWD-};" + body
	}
	if f.reopen && f.keeper != nil && f.keeper.dir != "" {
		save := f.dialect.saveExports(f.keeper)
		if f.limited {
			save = `(\trap "" XFSZ;` + save + ");"
		}
		rest += save
	}
	return f.onLines(body, rest) + f.discard()
}

// onLines returns what runs a and then b, on two lines if one is too long for what
// may stand around them.
func (f frame) onLines(a, b string) string {
	if len(a)+len(b) > f.longest()-100 {
		return a + "\n" + b
	}
	return a + ";" + b
}

// after takes the terminal back, and then its modes, which a program of another group
// than the foreground's may not set. It sets the prompt behind the marks: that says nothing
// any more once they are written, but for a command that may have written to the terminal.
func (f frame) after() string {
	modes := ""
	if f.modes {
		modes = resetModes + ";"
	}
	if f.command.TTY && f.dialect.anew != "" {
		modes = fmt.Sprintf(f.dialect.anew, Quote(f.tty)) + modes
	}
	if f.loud {
		return f.dialect.regain + modes + f.dialect.behind() + prompt(f.nonce) + ";"
	}
	return modes + f.dialect.behind() + setPrompt
}

// behind returns what has the shell read the next frame and show its prompt, whatever the
// text has set.
func (d dialect) behind() string { return d.frame + d.reads }

// prompt returns the assignments that make the next prompt mark P.
func prompt(nonce string) string { return setPrompt + "_gwn=" + nonce }

const setPrompt = "PS1='" + promptString + "';"

// typable reports whether the frame can be typed.
func (f frame) typable() bool {
	_, ok := f.line()
	return ok
}

// line returns what encode does, and whether it may be typed as it is.
func (f frame) line() (string, bool) {
	leaves := f.dialect.leaves && f.keeper != nil && f.keeper.dir != "" && strings.Contains(f.command.Text, "return")
	if !f.uploaded && (leaves || len(f.command.Text) > maxTyped || !f.dialect.typable(f.command.Text) || !f.dialect.typable(f.environment())) {
		return "", false
	}
	if f.command.Cwd != "" && !f.dialect.typable(f.cwd) {
		return "", false
	}
	typed := f.encode()
	return typed, len(typed) <= maxTyped && longestLine(typed) <= f.longest()
}

// typable reports whether the terminal hands s to the shell, and the shell
// reads it.
func (d dialect) typable(s string) bool {
	return typable(s) && !(d.oneLine && strings.Contains(s, "\n"))
}

// marks returns what tells the end: mark E with status, last background job
// and directory behind stdout, an empty one behind stderr. Both streams are
// open before the first of them is written: the far side then finds both at
// once.
//
// What stands between the text and the marks may have a status of its own: what
// takes functions away does, and so may a trap on DEBUG.
func (f frame) marks() string {
	checked := ""
	if f.dialect.checked != "" {
		checked = "_gws=$?;" + f.dialect.checked
	}
	unmask := ""
	if mentions(f.command.Text, masks, "command", "builtin", "unset", "function") {
		unmask = f.dialect.unmask
	}
	switch {
	case f.cuts():
		return f.cut() + unmask + "\n" + f.dialect.eval + " " + Quote(f.ends("$_gws"))
	case unmask == "" && !f.dialect.debugs:
		return checked + f.ends(f.textStatus())
	}
	return checked + "_gws=" + f.textStatus() + ";" + unmask + f.ends("$_gws")
}

// textStatus returns the expansion that is the text's status.
func (f frame) textStatus() string {
	if f.uploaded && f.keepsStatus() {
		return "${_gws:-" + f.dialect.status() + "}"
	}
	return f.dialect.status()
}

func (f frame) ends(status string) string {
	out, err, mark := "/dev/tty", "/dev/tty", f.dialect.shownMark
	if f.keeper != nil {
		out, err, mark = f.keeper.stdout, f.keeper.stderr, f.dialect.mark
	}
	marks := "{ " + mark('E', f.nonce, `"`+status+`:`+f.dialect.lastJob()+`:${PWD-}"`) + "&&" + mark('E', f.nonce, "") + " >&3;} >|" + out + " 3>|" + err
	if f.loud {
		return marks
	}
	// Nobody may be there to read them. Then the prompt says that it is over.
	return marks + "&&unset _gwn||_gwn=" + f.nonce
}

// A command on the terminal itself gets the modes that a person has. The session takes
// its own back behind it, and behind a text that changes modes: with others the terminal
// echoes frames, shells draw them, or characters of theirs are taken for keys. What sane
// leaves alone stands behind it. An stty that does not know one of the words, as iutf8 on
// some BSD, does nothing of it all.
const (
	personModes = "icanon isig iexten icrnl opost onlcr echo echoe echok"
	saneModes   = "\\command stty sane -istrip -parmrk -opost -onlcr -echo -echoe -echok susp undef"
	resetModes  = "{ " + saneModes + " iutf8 -imaxbel||" + saneModes + ";} 2>/dev/null||:"
)

// exports returns the text that exports env. A line that begins with a blank is
// kept out of yash's history (histspace).
func exports(env map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(env)) {
		b.WriteString("export " + name + "=" + Quote(env[name]) + "\n ")
	}
	return b.String()
}
