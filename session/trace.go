package session

import "bytes"

// mksh writes its trace to what stderr was at "set -x", whatever stderr is by
// then, and shows what takes the option away. So behind a text, without a
// command that would be shown, a variable comes into being that makes PS4 write
// mark T: the rest of that stream is no more the command's.
const cutString = "${_gwt:+\x1eT${_gwt}:\x1e${_gwt};}"

// cuts reports whether mark T ends the trace.
func (f frame) cuts() bool {
	return f.traced && f.dialect.traceStays && f.keeper != nil
}

// untrace stands in front of a text that may be traced; see [dialect.untrace].
func (f frame) untrace() string {
	switch {
	case !f.traced:
		return ""
	case f.cuts():
		return f.dialect.untrace + "_gws=;_gwt=;_gwp='" + cutString + `';PS4=$_gwp${PS4#"$_gwp"};`
	}
	return f.dialect.untrace
}

// cut stands behind such a text, whose status it leaves in _gws. The marks then
// are another text, which is not traced, and runs behind "set -n" as well.
func (f frame) cut() string {
	return "case ${_gws:=$?}${_gwt:=" + f.nonce + "} in *);;esac;" + f.dialect.untrace + `PS4=${PS4#"${_gwp-}"};unset _gwp _gwt;` + f.dialect.frame
}

// showsFrame reports whether a command's stderr has what a shell shows of the frame, because
// a file or a function has set that: mksh traces to there, and others repeat the line of the
// file that evaluates a text.
func (r *run) showsFrame(result Result) bool {
	said := result.Stderr
	if r.command.Merge {
		said = result.Stdout
	}
	return bytes.Contains(said, []byte(`\036E`+r.nonce)) || bytes.HasPrefix(said, []byte(runnerLine))
}
