package session

// What a keeper is told to look for among the processes of its machine, and to signal.

import (
	"fmt"
	"strings"
	"time"
)

// listed returns a substitution of the files in /proc, as 123/stat, that have a
// pattern in them. One grep looks at the processes of the whole machine: a shell's
// read takes a system call for each byte, which makes 0.3 ms for each process in
// dash, and 15 times as much for all of them. A program may have put into its name
// or environment what it likes, so the pattern is no proof. Where no grep can be
// started (127), or not with so many words (126), it is all stat files. Those come
// last in files: what is forked meanwhile is to be found as its session's.
//
// Behind "set -- ${l##*\) }" the parameters are the fields of proc_pid_stat(5) from
// the third on: $1 state, $2 parent, $3 process group, $4 session, $6 foreground
// group, ${20} start time.
func listed(files, patterns string) string {
	return `$(cd /proc && { LC_ALL=C grep -l ` + patterns + ` ` + files + ` || [ $? -lt 126 ] || echo [0-9]*/stat; })`
}

// ofSession is the pattern, for stat files, of a session's processes that are in a
// state.
func ofSession(id, state string) string { return `-e ") ` + state + ` [0-9]* [0-9]* ` + id + ` "` }

// A scope is what the processes of a command are known by.
type scope struct {
	run string // the command's nonce
	pid int    // the shell's
	id  string // the session's
	age time.Duration
}

// signalLine returns the control line that sends sig to what a command has
// started: the processes of the shell's session, and those that carry its name
// in their environment. The shell is spared, and so are older jobs, together
// with what they start (their process group's leader or an ancestor is older).
//
// A process is the command's if it is no older than the command, whose age the scope
// has, and younger than the keeper: a command that left a job behind
// is followed by a new keeper, and process numbers tell apart what the clock's
// ticks of 10 ms can't. The age is subtracted from the far clock there, so both
// clocks may differ. A keeper that is busy with earlier lines comes late to this
// one, so the earliest beginning counts that a line of the same run came to. A link
// that has become slower since makes the age too short by as much; the caller adds
// what it may be. Without the shell nobody knows its session, and nothing is signaled.
//
// It is a subshell that looks: its variables are none of the keeper's.
func signalLine(sig string, of scope) string {
	return noted(sig, of) + `; ( ` + signalWhere("", all, sig, of) + ` )`
}

// killLine is signalLine for SIGKILL, behind a command that has ended of an interrupt. What
// handles that may be cleaning up still, though nobody waits for it any more: the program
// that has started it is gone at once (xargs and find are), or the shell had not come to wait.
// It has about as long as a program has that the shell does wait for; see [Session.climb].
func killLine(of scope) string {
	return noted("KILL", of) + `; ( ` + has(interrupt) + `for w in 0.02 0.03 0.05 0.1 0.1 0.2; do ` + signalWhere(`has C $i || continue; `, all, "0", of) +
		`; [ "$k" ] && sleep $w || break; done; ` + signalWhere("", all, "KILL", of) + ` )`
}

// noted is [sinceLine], and keeps when a signal was sent: how late the line came is not for
// those to pay who look behind it.
func noted(sig string, of scope) string { return sinceLine(of) + `; m0=$u r1=` + of.run + sig }

// interruptLine is signalLine for SIGINT, for the shell too: it and what descends from it
// have theirs in one moment, before the look for what else there is.
func interruptLine(of scope) string {
	return noted("INT", of) + `; ( ` + strike(of) + `; ` + signalWhere(`case " $s " in *" $i "*) continue;; esac; `, all, "INT", of) + ` )`
}

// strikeLine is the first half of interruptLine.
func strikeLine(of scope) string {
	return noted("INT", of) + `; ( ` + strike(of) + ` )`
}

// strike does what ^C does: it interrupts the shell and what descends from it, in this
// order and with nothing in between. bash goes on with its loop if it has the interrupt
// and the program that it waits for has not, or the other way round, and the programs
// of a loop may be shorter than a look at a machine's processes. $s are those that had it.
func strike(of scope) string {
	return strings.Join([]string{
		fmt.Sprintf(`sh=%d`, of.pid), `if read -r l </proc/$sh/stat; then set -- ${l##*\) }; ` + itself + ` || exit; fi`, younger, tree,
		`s=$sh; for i in $c; do read -r l </proc/$i/stat && set -- ${l##*\) } && case " $s " in *" $2 "*) younger $i ${20} && s="$s $i";; esac; done`,
		`kill -INT $s`,
	}, "; ")
}

// tree sets $c to the shell and what descends from it, parents first, where the kernel
// tells the children (proc_tid_children(5)), and else to the shell.
const tree = `c=; set -- $sh; while [ $# -gt 0 ]; do c="$c $1"; l=; ` +
	`for x in /proc/$1/task/*/children; do m=; read -r m <$x; l="$l $m"; done; shift; set -- "$@" $l; done`

// younger defines a function that reports whether a process, started at that tick, is the
// command's by its age; see [signalLine]. It is younger than the keeper, or than what
// outdated has noted.
// The kernel counts processes to pid_max and goes on from 300 (proc_sys_kernel(5)): of two
// of one tick whose numbers are far apart, the smaller one is the younger.
const younger = `[ "$n0" ] || { read -r l </proc/$$/stat && set -- ${l##*\) } && k0=${20} n0=$$; }; ` +
	`younger() { [ $2 -ge $t0 ] && { [ $2 -gt $k0 ] || { [ $2 -eq $k0 ] && n=$(($1 - n0)) && { [ ${n#-} -lt 16384 ] || n=$((0 - n)); } && [ $n -gt 0 ]; }; }; }`

// outdated has a keeper take all that is there by now for older than the next command.
const outdated = now + `; n0=$1 k0=$u`

// foregroundLine returns the control line that does what a key of the terminal does, whatever
// that key is.
func foregroundLine(sig string, pid int) string {
	return fmt.Sprintf(`read -r l </proc/%d/stat && set -- ${l##*\) } && `, pid) + itself + ` && [ "$6" -gt 1 ] && kill -` + sig + ` -$6`
}

// now sets $u to the tick that it is, as field 22 of a process that has only just started. A
// container has an uptime of its own (lxcfs(1)), and the kernel's ticks.
const now = `set -- $(cat /proc/self/stat); u=${22}`

// sinceLine sets $t0, the tick in which the command began; see [signalLine].
func sinceLine(of scope) string {
	return strings.Join([]string{
		now, fmt.Sprintf(`q=$((u - %d))`, of.age.Milliseconds()/10+1),
		`[ "$r0" = ` + of.run + ` ] && [ $t0 -le $q ] || t0=$q r0=` + of.run,
	}, "; ")
}

// itself reports whether what has the shell's number is the shell, behind a look at it,
// where arm has seen it.
const itself = `[ "${j:-${20}}" = ${20} ]`

// above sets $r to the ancestors of the shell, behind a look at it, that are not of its
// session. An orphan's parent is the first process, or one of those that has asked for
// orphans (PR_SET_CHILD_SUBREAPER(2const)), as systemd --user does.
const above = `r=" "; q=$2; while [ $q -gt 1 ] && read -r m </proc/$q/stat; do set -- ${m##*\) }; [ "$4" = "$sid" ] || r="$r$q "; q=$2; done`

// all is for signalWhere: all that was not passed over is signaled.
const all = `a=$k`

// signalWhere is [signalLine] behind [sinceLine], for those of the processes that a
// piece of shell does not pass over, which may also ask for $f, the foreground. Those
// are $k, and signaled if there is an $a, which that piece sets, or another one behind it.
func signalWhere(condition, behind, sig string, of scope) string {
	return fmt.Sprintf(`a=; y=; sh=%d; if `, of.pid) + strings.Join([]string{
		`read -r l </proc/$sh/stat && set -- ${l##*\) } && sid=$4 pg=$3 && [ "$sid" ] && ` + itself + `; then ` + above, younger,
		`k=; for p in ` + listed("[0-9]*/environ [0-9]*/stat", ofSession("$sid", ".")+` -e GATEWAY_SESSION=`+of.id) + `; do i=${p%/*}; f=${p#*/}; p=/proc/$i; ` +
			`[ $i = $sh ] && continue; read -r l <$p/stat || continue; set -- ${l##*\) }; ` +
			// Who is of the session is listed for that, also where it is for its environment. It
			// may have left it in between.
			`case $f$4 in stat$sid) ;; environ$sid) y="$y $i "; continue;; stat*) case $y in *" $i "*) ;; *) continue;; esac;; esac; ` +
			`[ $2 = $$ ] && continue; f=; [ "$3" = "$6" ] && f=1; younger $i ${20} || continue; ` +
			// The shell's own group has an older leader as well: the shell, or what sudo started it by.
			`q=$2; if [ $3 != $pg ] && [ $3 != $i ] && read -r m </proc/$3/stat; then g=$3; set -- ${m##*\) }; younger $g ${20} || continue; fi; ` +
			`while [ $q -gt 1 ] && ` + descends + ` && read -r m </proc/$q/stat; do set -- ${m##*\) }; younger $q ${20} || { i=; break; }; q=$2; done; [ "$i" ] || continue; ` +
			condition + `k="$k $i"; done`, behind,
		`[ -z "$a" ] || [ -z "$k" ] || kill -` + sig + ` $k`,
	}, "; ") + `; fi`
}

// What a probe has found.
const (
	probeNobody = "0" // nobody waits for the terminal
	probeReads  = "1" // a process reads it
	probeSleeps = "2" // one of another user sleeps there: setuid programs can't be looked into
	probePolls  = "3" // one waits for it or for something else
	probeShell  = "4" // the shell reads it as it reads commands: this one may not have come
)

// writes matches the numbers of write and writev, and sends those of sendfile, which reads its
// second argument, as the cat of busybox does: on x86-64, on 32-bit x86 and ARM, and in the
// generic table (arm64, riscv64). On none of them is one of these a read.
const (
	writes = `1|20|4|146|64|66`
	sends  = `40|187|239|71`
)

// probeLine returns the control line that answers mark R: whether a process of
// the terminal's foreground group waits for the terminal, and if so its modes: r
// for single keys instead of lines, e for echo; and s if it runs as root, as sudo does.
//
// wchan alone would take a read from a socket for one from a terminal, and a write to a
// terminal that is full (all are wait_woken), so the system call and its descriptor are
// looked at wherever the kernel shows them (proc_pid_syscall(5)). A poll does not
// show what it waits for: there, a stdin that is the terminal decides. The shell
// itself polls for its read alone. What it has from its start it reads commands from; a
// command opens the terminal by the name of /dev/tty, unless the terminal is its own.
//
// What /proc hides, as another user's process may be (proc(5), hidepid), is taken for one
// that sleeps; that it is there, kill tells.
//
// It looks at the shell and what descends from it where the kernel tells that, see
// [tree]: a machine may have many processes, and a command be looked at often.
func probeLine(nonce string, pid int, tty string, own bool) string {
	// says is what a process that reads descriptor $1 says, if it is the shell.
	says := `says() { a=1 o=$p; }`
	if !own {
		says = `says() { o=$p; if [ $i = $sh ] && [ $p/fd/$1 -ef $t ]; then a=4; else a=1; fi; }`
	}
	return answerLine('R', nonce, strings.Join([]string{
		fmt.Sprintf(`sh=%d; a=0; b=; u=" "; t=%s; read -r l </proc/$sh/stat && set -- ${l##*\) }; sid=$4; fg=$6`, pid, Quote(tty)),
		`reads() { [ $p/fd/$1 -ef $t ] || [ $p/fd/$1 -ef /dev/tty ]; }`, says,
		`hidden() { case $(LC_ALL=C; kill -0 $i 2>&1) in *"o such process"*) false;; esac; }`,
		tree, `[ -e /proc/$sh/task/$sh/children ] || c=$(cd /proc && echo [0-9]*)`,
		`for i in $c; do p=/proc/$i; read -r l <$p/stat || { hidden && case $a in [04]) a=2 o=$p;; esac; continue; }; set -- ${l##*\) }; ` +
			// What works for one that can't be looked into is what that one waits for.
			`case $u in *" $2 "*) u="$u$i "; case $1 in [RD]) b=1;; esac;; esac; [ "$3" = "$fg" ] && [ "$4" = "$sid" ] || continue; ` +
			// Any thread may read. Of another one than the first, only what is sure counts.
			`for q in $p/task/*; do w=; read -r w <$q/wchan; ` +
			`case "$w" in *tty_read*|*wait_woken*) ` +
			`n=; read -r n f g x <$q/syscall; ` +
			`if [ -z "$n" ]; then if [ $q = $p/task/$i ]; then says 0; break; fi; continue; fi; ` +
			`case $n in ` + writes + `) continue;; ` + sends + `) f=$g;; esac; case $f in 0x*) if reads $((f)); then says $((f)); break; fi;; esac;; esac; done; [ $a != 1 ] || break; ` +
			`w=; read -r w <$p/wchan; ` +
			`case "$w" in *tty_read*|*wait_woken*) ;; *poll*|*select*) if reads 0; then if [ $i = $sh ]; then says 0; [ $a != 1 ] || break; else a=3 o=$p; fi; fi;; ` +
			// One that has ended meanwhile is nobody's.
			`""|0) read -r l <$p/stat && set -- ${l##*\) } && [ "$1" = S ] && [ ! -O $p ] && u="$u$i " && case $a in [04]) a=2 o=$p;; esac;; esac; done; [ $a$b != 21 ] || a=0`,
		`[ $a = 0 ] || { set -- $(stty -a <$t); case " $* " in *" -icanon "*) a=${a}r;; esac; case " $* " in *" echo "*) a=${a}e;; esac; }`,
		`[ $a = 0 ] || while read -r n x w l; do case $n$w in Uid:0) a=${a}s; break;; Uid:*) break;; esac; done <$o/status`, // the effective user
	}, "; "))
}
