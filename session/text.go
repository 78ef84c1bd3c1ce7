package session

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// file returns what is uploaded in place of a text that can't be typed.
func (f frame) file() string {
	if f.keepsStatus() {
		return f.environment() + f.evaluate() + "\n_gws=$?\n"
	}
	if f.typedEnvironment() {
		text := f.inFile(f.opening() + f.command.Text)
		if f.needsNewline() {
			text += "\n"
		}
		return text
	}
	if f.dialect.speaks {
		return f.environment() + f.evaluate() + f.redirections()
	}
	return f.environment() + f.evaluate()
}

// inFile returns a text as it stands in a file, whose reading has the text's
// streams or not.
func (f frame) inFile(text string) string {
	if f.dialect.speaks {
		return cmp.Or(f.dialect.evalInFile, f.dialect.eval) + " " + Quote(text) + f.redirections()
	}
	return text
}

// keepsStatus reports whether a file leaves the text's status in _gws. A shell that traces
// would show that.
func (f frame) keepsStatus() bool { return f.dialect.masks && !f.traced }

// typedEnvironment reports whether the environment stands in front of an
// uploaded text's dot, and not in the file.
func (f frame) typedEnvironment() bool {
	environment := f.environment()
	return f.dialect.typable(environment) && len(environment) < maxLine/2
}

// run returns the text as it runs. A command with a stdin of its own says with
// mark B that it has the FIFO open: only then may the feeder let go of it. One on
// the terminal says with mark S that what comes there is its own from now on: in
// front of it may be what the shell says of jobs that have ended, in as many writes
// as it likes. Where /dev has no tty, which it must not make, the text's stdout is the
// best guess.
func (f frame) run() string {
	var run string
	switch {
	case f.uploaded:
		if f.typedEnvironment() && !f.keepsStatus() {
			run = f.environment()
		}
		run += f.word(f.dialect.dot, f.dialect.dotWith) + " " + f.keeper.text()
	case f.sourced():
		run = f.environment() + f.dialect.dot + " " + f.keeper.runner()
	default:
		run = f.environment() + f.evaluate()
	}
	if !f.dialect.speaks || !f.uploaded && !f.sourced() {
		run += f.redirections()
	}
	run = f.lastStatus() + run
	if f.uploaded && f.keepsStatus() {
		run = "_gws=;" + run
	}
	switch {
	case f.command.Stdin != nil:
		begun := f.dialect.mark('B', f.nonce, "") + " >|" + f.keeper.stdout
		return "{ " + begun + ";" + run + ";} <" + f.stdin
	case f.command.TTY:
		begun := f.dialect.shownMark('S', f.nonce, "")
		begun = "{ " + begun + " </dev/tty >|/dev/tty||" + begun + ";} 2>/dev/null||:;"
		if f.command.Echo {
			begun += "\\command stty " + personModes + ";"
		}
		return begun + run
	}
	return run
}

// lastStatus sets $? for what follows. In front of || neither errexit nor a trap on ERR
// heeds it.
func (f frame) lastStatus() string {
	if f.status == 0 {
		return ""
	}
	return fmt.Sprintf("(%sexit %d)||", strings.TrimSuffix(f.dialect.eval, "eval"), f.status)
}

// asksStatus matches the texts that may begin with a look at $?, or hand it on.
var asksStatus = regexp.MustCompile(`\$\{?\?|\b(exit|return)\b`)

// evaluate returns the eval of the text.
func (f frame) evaluate() string {
	eval := f.word(f.dialect.eval, f.dialect.evalWith)
	text := Quote(f.opening() + f.command.Text)
	if f.needsNewline() {
		text += `$'\n'`
	}
	return eval + " " + text
}

// word returns what runs a text: with, if there is one, behind assignments.
func (f frame) word(plain, with string) string {
	if with != "" && len(f.command.Env) > 0 {
		return with
	}
	return plain
}

// needsNewline reports whether the text does at its end; see [dialect.strayBody].
func (f frame) needsNewline() bool {
	return f.dialect.strayBody && strings.Contains(f.command.Text, "<<") && !strings.HasSuffix(f.command.Text, "\n")
}

// opening returns what stands in front of the text: the exports, where
// assignments alone do not export, and what lets the shell trace.
func (f frame) opening() string {
	var b strings.Builder
	if names := slices.Sorted(maps.Keys(f.command.Env)); f.dialect.exports && len(names) > 0 {
		b.WriteString("export " + strings.Join(names, " ") + "\n")
	}
	if f.traced {
		b.WriteString(f.dialect.retrace)
	}
	return b.String()
}

// exits matches what ends the shell itself, and no subshell.
var exits = regexp.MustCompile(`(?:^|[;\n&|])\s*exit\b`)

// sourced reports whether the text is evaluated by a file. A shell that traces
// would show that file's line too: only an exit, of which bash would speak, is
// worth it.
func (f frame) sourced() bool {
	shown := f.traced && !(f.dialect.sourced && exits.MatchString(f.command.Text))
	return (f.dialect.sourced || f.dialect.returns && strings.Contains(f.command.Text, "return")) && !f.unclosed() && f.keeper != nil && f.keeper.dir != "" && !f.uploaded && !shown
}

// unclosed reports whether the text may end within $( or <(. From a file, that
// makes bash 5.2 read, and soon write, in front of its line buffer (valgrind);
// three such texts end it.
func (f frame) unclosed() bool {
	text := f.command.Text
	return f.dialect.sourced && strings.Count(text, "(") > strings.Count(text, ")")
}

// environment returns the assignments in front of eval. With command (or
// builtin) before a special builtin they last as long as it does (POSIX XCU
// 2.9.1).
func (f frame) environment() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(f.command.Env)) {
		b.WriteString(name + "=" + Quote(f.command.Env[name]) + " ")
	}
	return b.String()
}

// assignments returns what only a shell that takes the variables can do: with their values,
// which may matter to it, unless those are too long to be typed.
func (f frame) assignments() string {
	if f.typedEnvironment() {
		return strings.TrimSpace(f.environment())
	}
	return strings.Join(slices.Sorted(maps.Keys(f.command.Env)), "=&&\n") + "="
}

// redirections returns what stands behind eval.
func (f frame) redirections() string {
	switch {
	case f.command.TTY && f.quiet:
		return " 2>&1" // the group's own goes nowhere
	case f.command.TTY:
		return ""
	case f.keeper == nil:
		return " </dev/null >|/dev/tty 2>&1"
	}
	in, err := " </dev/null", " 2>|"+f.keeper.stderr
	if f.command.Stdin != nil {
		in = "" // the group around it has it
	}
	if f.command.Merge {
		err = " 2>&1"
	}
	return in + " >|" + f.keeper.stdout + err
}
