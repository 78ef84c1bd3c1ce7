package session

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Both exec requests of a session are one line that any login shell reads the
// same way: a script for /bin/sh within single quotes, with no single quote and
// no control byte in it, and an exclamation mark only before = or ; (tcsh). Under
// eight login shells, fish and tcsh among them, the bytes that come back are equal.

// shellPrelude returns the exec request for the session's shell. It reports
// what it found with mark S (payload: its terminal if it has one, its pid and
// session, its mounts, the shell's family, its path, the directory) and becomes the shell,
// whose first prompt, mark P, is the proof that it reads commands.
func shellPrelude(config Config, nonce string) string { return inSh(shellScript(config, nonce)) }

// inSh returns the exec request that runs a script of the kind described above.
func inSh(script string) string { return `exec /bin/sh -c '` + script + `'` }

func shellScript(config Config, nonce string) string {
	script := found(shellChoice(config.Shell)) + `f=${s##*[/ ]}; ` +
		// What is called sh or ksh says itself what it is. That of busybox has no name for itself,
		// but what ends dash.
		`case $f in sh|ksh) f=$($s -c "case \$KSH_VERSION in *MIRBSD*|*LEGACY*) echo mksh;; *93*) echo ksh;; *) x=\${BASH_VERSION:+bash}\${ZSH_VERSION:+zsh}\${YASH_VERSION:+yash}; [ \$x ] || { x=\$; eval : \${x}{PWD:0:1}; x=ash; } 2>/dev/null; echo \$x;; esac"); f=${f:-sh};; esac; ` +
		statFields + mountField + `t=; v=; g=; i=$$; q=$4; if [ -t 0 ] && [ "$5$6" != 0-1 ]; then ` + ownOutput + terminalName + ownModes + `else exec 2>&1; TERM=dumb; export TERM; ` + ownSession + `fi; ` +
		`become() { printf ` + controlMark('S', nonce, "%s:%s:%s:%s:%s:%s:%s") + ` "$t" "$i" "$q" "$m" "$f" "$p" "$PWD"; ` +
		`unset ENV BASH_ENV; PS2=; _gwn=` + nonce + `; ` +
		`GATEWAY_SESSION=` + config.ID + `; export PS1 PS2 _gwn GATEWAY_SESSION; `
	if config.Term == "" {
		script += `PAGER=cat; GIT_PAGER=cat; MANPAGER=cat; SYSTEMD_PAGER=cat; export PAGER GIT_PAGER MANPAGER SYSTEMD_PAGER; `
	}
	script += `case $f in `
	for _, name := range slices.Sorted(maps.Keys(dialects)) {
		d := dialects[name]
		script += name + `) `
		if d.environment != "" {
			script += `export ` + d.environment + `; `
		}
		script += `exec $v $s ` + d.options + `;; `
	}
	return script + `esac; exit 127; }; [ -z "$g" ] || { ( ` + forked + `; q=$i; become ); exit; }; become`
}

// found sets s to the first of the words whose program is there, p to its path, and PS1.
// It forks once for all of them. What parts them is no |, which in mksh parts patterns.
func found(words string) string {
	return `x=$(for s in ` + words + `; do command -v "${s%% *}" && break; s=none; done; printf "=%s@` + octal(promptString) + `" "$s"); ` +
		`PS1=${x##*@}; x=${x%@*}; s=${x##*=}; p=${x%=*}; p=${p%?}; `
}

// statFields makes the fields of proc_pid_stat(5) from the third on the
// parameters, or none where there is no /proc. A tty_nr of 0 and a tpgid of -1 say that a
// terminal on stdin is another session's, as that is whose account is changed by su -c: a ^C
// would end what is in between, and not reach what the shell has started.
const statFields = `l=; { read -r l </proc/$$/stat; } 2>/dev/null; set -- ${l##*\) }; `

// mountField sets m to the number of the first mount in proc_pid_mountinfo(5), which no two mount
// namespaces share, or to nothing where there is no /proc.
const mountField = `m=; { read -r m l </proc/self/mountinfo; } 2>/dev/null; `

// serverField sets c to a word if the server is dropbear, and else to nothing.
const serverField = `c=; { read -r c </proc/$PPID/comm; } 2>/dev/null; case $c in dropbear*) ;; *) c=;; esac; `

// ownSession has setsid(1) start the shell where a server gives it none of its own, as
// dropbear does without a terminal: what the session started could not be told from what
// others on the connection did. A leader of a process group, as Go's Setpgid makes one,
// can't have a session, and setsid would fork behind the number that is told: there, $g,
// a subshell becomes the shell.
const ownSession = `case $4 in ""|$$) ;; *) if v=$(command -v setsid); then if [ "$3" != $$ ]; then q=$$; elif ( ` + forked + ` ); then g=1; else v=; fi; fi;; esac; `

// forked sets i to the number of a subshell, and reports whether that is a process: those
// of ksh93 need not be.
const forked = `read -r i l </proc/self/stat && [ "$i" != $$ ]`

// ownOutput has the shell speak to its terminal where a file that the account's login shell
// reads has given its output to somebody else, such as tee: a ^C would end that, and the shell
// with it. Behind sudo, stdin is for reading only.
const ownOutput = `[ -t 1 ] && [ -t 2 ] || exec >&0 2>&0; `

// terminalName sets t to the name of the terminal. Linux tells the number of a
// pseudoterminal (tty_nr), which spares a program.
const terminalName = `n=${5:-0}; t=/dev/pts/$((n & 255 | n >> 12 & 1048320)); [ $t -ef /dev/fd/0 ] 2>/dev/null || t=$(tty); `

// ownModes gives a terminal the modes that the server was asked for, where it is not the
// server's: a program that records an account starts the shell on one of its own, which may
// echo.
const ownModes = `[ "${SSH_TTY:-$t}" = "$t" ] || ` + resetModes + `; `

// promptString is PS1: mark P while there is a nonce in _gwn, else nothing. It
// holds no nonce itself: dash can't take PS1 out of the environment again, and
// a shell that the user starts must not print our prompt. mksh, as root, throws
// away a prompt without a #.
const promptString = "${_gwn:+\x1eP${_gwn}:$?:#\x1e${_gwn};}"

// octal returns s as a printf format that may stand between any quotes. What need not be
// written so is not: for another user some of it is twice, and dropbear takes no request of
// more than 9,000 bytes.
func octal(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte(" /._:;-=<>|&[]{},*?+@", c) >= 0:
			b.WriteByte(c)
		case c == '%':
			b.WriteString("%%")
		default:
			fmt.Fprintf(&b, `\%03o`, c)
		}
	}
	return b.String()
}

// shellChoice returns the words that the prelude tries: bash where there is
// one, else sh.
func shellChoice(shell string) string {
	if shell == "" {
		return "bash sh"
	}
	return `"` + shell + `"`
}

// ready is what the prelude reports.
type ready struct {
	tty          string
	pid          int
	sid, mounts  string // numbers, or nothing where the machine does not say
	family, path string
	cwd          string
}

// parseReady parses the payload of mark S.
func parseReady(payload string) (ready, error) {
	fields := strings.SplitN(payload, ":", 7)
	if len(fields) == 7 {
		pid, err := strconv.Atoi(fields[1])
		if sid := fields[2]; err == nil && strings.Trim(sid, "0123456789") == "" {
			return ready{tty: fields[0], pid: pid, sid: sid, mounts: fields[3], family: fields[4], path: fields[5], cwd: fields[6]}, nil
		}
	}
	return ready{}, failure(codeNoSync, nil, "a forced command, or a login shell that runs nothing, may be in the way; try ssh by hand", "unreadable ready mark %.200q", payload)
}

// keeperPrelude returns the exec request for a keeper; see [keeper]. Mark K
// tells its server, its mounts, and the paths of both streams and of a private directory, or
// of nothing that can't be had.
//
// On Linux the streams of a channel are pipes, and /proc lets the account open
// them by name: what commands write there is in the server's hands at once.
// Where they are sockets, or /proc is missing, FIFOs in the directory do it,
// with a cat each to carry them home.
//
// On a terminal, which programs that record an account start everything on, there is no
// keeper: it would merge the streams, change them, and repeat what the keeper is told.
//
// bash and ksh93 give up a read after TMOUT seconds, which many a machine exports to log out
// who is idle.
//
// mksh R59 never closes what an exec has saved as descriptor 10, nor can anybody else.
// The first exec makes that /dev/null: else it would be the keeper's stdout.
//
// Descriptors 3 and 4 hold the streams open, so that they don't end between two
// commands. 5 and 6 are their far ends, never read while the client is there.
// Once stdin ends, because of a close or because the link is gone, they leave
// the rest to a last process, which nobody waits for: it hangs up what is left, and
// reads into the void what background jobs still write, which would otherwise
// block or die of it. Jobs may go on for months, and that process may be killed, or
// have no process to be had for it. So the keeper itself becomes what removes the
// directory: the client sees how it ends.
// USR1 ends stdin too: it comes from a later session, when the link of this one
// has gone silent; see [endLine]. $z tells. A second one must not meet the last
// process.
func keeperPrelude(nonce string) string { return inSh(keeperScript(nonce)) }

// anywhere begins a loop over the places for a private directory, $x: those whose names
// need no quotes. Memory comes before a disk: ext4 writes out at once what replaces a file
// (ext4(5), auto_da_alloc), 0.8 ms for the exports of each command. Without the sticky bit,
// others could put a directory of theirs, with the text of a command, in its place.
const anywhere = `for x in "$XDG_RUNTIME_DIR" /dev/shm /tmp "$HOME"; do ` +
	`y=$x; while case $y in [A-Za-z0-9/._-]*) ;; *) false;; esac; do y=${y#?}; done; [ "$x" ] && [ -z "$y" ] || continue; ` +
	`case $x in /dev/shm|/tmp) [ -k $x ] || continue;; esac; `

// wholeMarks has mksh, whose printf is a program, write in one piece what that may write in
// many, as toybox's does: a mark must not have in it what a command writes.
const wholeMarks = `case $KSH_VERSION in *MIRBSD*|*LEGACY*) printf() { local x=$(command printf "$@"; echo .); print -nr -- "${x%.}"; };; esac; `

// runnerLine is the file that evaluates $_gw.
const runnerLine = `\command eval "$_gw"` + "\n"

// keeperBegin is how a keeper and sudo's relay begin: $d is the directory, if there was
// a place for what makes puts there. An account may be allowed no file at all (XFSZ). What the
// account's login shell has read may have sent stderr to a file or to nowhere: the end of a
// command would never come there.
func keeperBegin(nonce, usr1, makes string) string {
	return wholeMarks + `if [ -t 0 ] || [ -t 1 ]; then printf ` + controlMark('K', nonce, "::::") + `; exit; fi; trap "" HUP INT TERM PIPE XFSZ; trap "` + usr1 + `" USR1; umask 077; o=; e=; a=; b=; d=; z=; w=/proc/$$/fd; ` +
		`if [ -f $w/2 ] || [ -c $w/2 ]; then exec 2>&1; fi; ` + anywhere + `d=$x/.gw-` + nonce + `; mkdir -m 700 $d && { [ -O $d ] && ` + makes + ` && echo $$ >$d/p && exec 8<$d/r && break; rm -rf $d; }; d=; done 2>/dev/null; `
}

func keeperScript(nonce string) string {
	return `TMOUT=0; exec 9</dev/null; exec 9<&-; ` + keeperBegin(nonce, "z=1; exec </dev/null", `printf "`+octal(runnerLine)+`" >$d/r`) +
		`if [ -p $w/1 ] && [ -p $w/2 ] && { { :; } 5<$w/1 6<$w/2 7>$w/1 8>$w/2; } 2>/dev/null; then ` +
		`exec 3>&1 4>&2 5<$w/1 6<$w/2; o=$w/3; e=$w/4; ` +
		`elif [ "$d" ] && mkfifo $d/o $d/e 2>/dev/null; then ` +
		// Opened for reading and writing: such an open never blocks. The readers
		// do not inherit what would keep them from their end.
		`o=$d/o; e=$d/e; exec 3<>$o 4<>$e 5<$o 6<$e; ` +
		`cat <$o 3>&- 4>&- 5<&- 6<&- & a=$!; cat <$e >&2 3>&- 4>&- 5<&- 6<&- & b=$!; ` +
		`else exec 3>&1 4>&2 5</dev/null 6</dev/null; fi; ` +
		serverField + mountField + `printf ` + controlMark('K', nonce, "%s:%s:%s:%s:%s") + ` "$c" "$m" "$o" "$e" "$d" >&3; exec >/dev/null 2>&1; ` + nobody + `; while read -r x; do eval "$x"; done; exec 2>/dev/null; trap "" USR1; ` +
		`( exec 3>&- 4>&- </dev/null; cat <&5 & cat <&6 & gone; wait ) & ` +
		`[ -z "$a" ] || kill -9 $a $b; exec rm -rf "$d"`
}
