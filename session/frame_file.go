package session

import (
	"cmp"
	"regexp"
)

// stored reports whether a frame file can do it. A shell that traces would show
// the file's lines.
func (f frame) stored() bool {
	c := f.command
	plain := c.Stdin == nil && !c.TTY && !c.Merge && c.Cwd == "" && len(c.Env) == 0 && len(c.Text) <= maxTyped && !isSpecial(c.Text) && !forks(c.Text)
	return plain && !f.typed && f.status == 0 && !f.modes && !f.unclosed() && f.dialect.stored != "" && f.once == "" && f.keeper != nil && closed(f.keeper.stored) && !f.uploaded && !f.traced
}

// special matches what the frame file is not for: a return would leave it, and
// it stands on its variables and on words that the text may take away.
var special = regexp.MustCompile(`return|unset|_gw|` + masking)

func isSpecial(text string) bool {
	return mentions(text, special, "return", "unset", "_gw", "command", "builtin", "function")
}

// stays matches what may leave a subshell behind, which would hold the frame
// file's own descriptors of the streams: "&", but not "&&" or ">&", and "<(".
var stays = regexp.MustCompile(`(?:^|[^&<>])&(?:$|[^&>])|[<>]\(|coproc|\|&`)

func forks(text string) bool { return mentions(text, stays, "&", "(", "coproc") }

// frameFile returns the frame of a plain command whose nonce is in _gwn and
// whose text is in _gw. It is one line: what a text says about lines counts
// from there.
//
// Behind the marks quiet takes the nonce away, and the prompt says nothing: it
// is the sentinel of a line that was left before its marks. A loud frame leaves
// it there, and has the dialect's regain behind them.
//
// To open a stream by name costs ten times what a copy of a descriptor does, so
// the group opens each once, as 0 and 1. The eval has copies, and whatever its
// text does to them, exec too, ends with it, but for one thing: a program may leave
// a stream non-blocking, and full. The marks then take one of their own.
func frameFile(d dialect, k *keeper, quiet, regain string, reopen bool) string {
	open := d.frame + "case $- in *a*) " + d.unexport + ";;esac;"
	run := ` "$_gw" 2>&1 >&0 </dev/null;`
	if d.evalInFile == "" {
		open, run = open+"{ ", d.eval+run
	} else {
		open, run = "{ ", "case $_gwd in 1)_gws=$?;;*)_gwd=1;"+open+d.evalInFile+run+"_gws=$?;;esac;_gwd=;"+d.checked
	}
	out, err := d.storedMark('E', "$_gws:"+d.lastJob()+":${PWD-}"), d.storedMark('E', "")
	marks := "_gws=" + d.status() + ";{ " + out + " >&0&&" + err + ";} " + cmp.Or(d.hush, "2>&-") + "||{ " + out + " >|" + k.stdout + "&&" + err + " >|" + k.stderr + ";} 2>/dev/null" + quiet
	end := regain + d.behind() + "PS2=;" + setPrompt
	if reopen {
		end += d.saveExports(k)
	}
	return open + run + marks + ";} 0>|" + k.stdout + " >|" + k.stderr + ";" + end + "\n"
}

// saveExports returns what keeps the exported variables, and behind them a word that only
// what is whole has; see [Session.Reopen].
func (d dialect) saveExports(k *keeper) string {
	return "{ { \\export -p&&" + cmp.Or(d.print, d.printf) + " _gwe=1;} >|" + k.exports() + "||:;} 2>/dev/null;"
}

// inheritExports returns the control line that keeps what another keeper has kept,
// unless a command was faster.
func (k *keeper) inheritExports(old *keeper) string {
	return "ln " + old.exports() + " " + k.exports() + " || [ -e " + k.exports() + " ] || cp " + old.exports() + " " + k.exports()
}
