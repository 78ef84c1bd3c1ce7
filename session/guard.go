package session

import (
	"path"
	"strings"
)

// guarded returns the text and the marks, where the shell can run it as it is asked to: it
// takes the command's variables, may enter its directory, and can come back from there. If
// not, nothing is run, and the marks tell what is missing.
func (f frame) guarded() string {
	run := "case $_gwa in *a*) set -a;;esac;" + f.onLines(f.run(), f.marks())
	if f.command.Cwd == "" && len(f.command.Env) == 0 {
		return run
	}
	parts := []string{run, "_gwg="} // not by unset, which may be an alias: what has run would be told as not started
	if f.command.Cwd != "" {
		parts = guard(noCwd, f.dialect.cd+" "+Directory(f.command.Cwd)+" 2>/dev/null", parts)
		test := strings.TrimSuffix(f.dialect.cd, "cd") + "["
		parts = guard(noWayBack, test+" "+Quote(f.cwd)+" -ef . -a -x . ]", append(parts, f.dialect.back(f.cwd)))
	}
	if len(f.command.Env) > 0 {
		parts = guard(noEnv, "("+f.assignments()+") 2>/dev/null", parts)
	}
	parts = append(parts, "case ${_gwg-} in ?*)"+f.ends("$_gwg")+";;esac")
	if together := strings.Join(parts, ";"); len(together) <= f.longest()/2 {
		return together
	}
	return strings.Join(parts, "\n") // with the rest of the frame, it would be too long for one line
}

// guard has what follows done only where a check succeeds; else _gwg says why not.
func guard(why, check string, then []string) []string {
	then[0] = "then " + then[0]
	return append(append([]string{"_gwg=" + why, "if " + check}, then...), "fi")
}

// back returns what goes back behind a command with a directory of its own, and with it
// what "cd -" means.
func (d dialect) back(dir string) string {
	if d.byWay != "" {
		return "{ " + d.byWay + ` "${_gwo-}";` + d.byWay + " " + Quote(dir) + ";} >|/dev/null 2>&1||:"
	}
	return d.cd + " " + Quote(dir) + " 2>/dev/null||:;case ${_gwo-} in ?*)OLDPWD=$_gwo;;esac"
}

// Directory returns a directory as a word for cd. "./" keeps CDPATH and a leading dash
// out of it; "~" means home as it does on a command line.
func Directory(dir string) string {
	switch {
	case dir == "~":
		return `"$HOME"`
	case strings.HasPrefix(dir, "~/"):
		return `"$HOME"` + Quote(dir[1:])
	case path.IsAbs(dir):
		return Quote(dir)
	}
	return Quote("./" + dir)
}
