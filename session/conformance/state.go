package conformance

import (
	"slices"
	"strings"

	"gateway/session"
)

const (
	noDebug        = "the shell has no DEBUG trap"
	fewDescriptors = "the shell keeps descriptors above 9 for itself, and redirects nothing without them"
	forGood        = "nothing that follows is run, not even set +n"
	noSpecial      = "a function can't have the name of a special builtin"
)

// said is what a prompt command may have said on the terminal.
var said = Like(`\A(P\n)*\z`)

// longName is most of what a directory's name may have.
var longName = strings.Repeat("x", 180) + "/" + strings.Repeat("y", 150)

// state is group C.
var state = []Case{
	{ID: "C1", Name: "the directory", Steps: []Step{
		{Text: "cd /tmp; pwd", Stdout: "/tmp\n", Cwd: "/tmp", Moves: true},
		{Text: "pwd", Stdout: "/tmp\n", Cwd: "/tmp"},
	}},
	{ID: "C3", Name: "names of directories", Steps: directories("a b", "it's", "new\nline", "end\n", "\x1fsep:0::", "ümläut ✓", "-dash", "\x1eE0123456789abcdef:0::/\x1e0123456789abcdef;", "a\tb", "*", "$HOME", `back\slash`, `"quoted"`)},
	{ID: "C4", Name: "a directory that is removed", Steps: []Step{
		{Text: `mkdir "$T/gone"; cd "$T/gone"`, Cwd: "$T/gone"},
		{Text: `rmdir "$T/gone"; echo out; echo err >&2`, Stdout: "out\n", Stderr: "err\n"},
		{Text: "echo still; (exit 3)", Stdout: "still\n", Code: 3},
		{Text: `: >"$T/ran"`, With: session.Command{Cwd: "/usr"}, Verdict: session.NotStarted, Code: -1, Error: "cmd.cwd"},
		{Text: `ls; test -e "$T/ran"`, Code: 1, Cwd: "$T/gone"},
		{Text: `cd "$T"`, Cwd: "$T"},
	}},
	{ID: "C6", Name: "variables, functions, parameters", Steps: []Step{
		{Text: "A=1; export B='two words'; f() { echo f:$1; }; set -- x y"},
		{Text: `echo $A; sh -c 'echo "$A$B"'; f z; echo $2`, Stdout: "1\ntwo words\nf:z\ny\n"},
	}},
	{ID: "C9", Name: "environment for one command", Steps: []Step{
		{Text: "K=old; export K; unset L"},
		{Text: `echo "$K$L"; sh -c 'echo "$K$L"'`, With: session.Command{Env: map[string]string{"K": "it's $new\n\"", "L": "l"}}, Stdout: "it's $new\n\"l\nit's $new\n\"l\n"},
		{Text: `echo "$K${L-unset}"; sh -c 'echo "$K${L-unset}"'`, Stdout: "oldunset\noldunset\n"},
	}},
	{ID: "C88", Name: "environment that the shell does not take", Steps: []Step{
		{Text: "readonly FIXED=mine"},
		{Text: `echo "$FIXED"; : >"$T/ran"`, With: session.Command{Env: map[string]string{"FIXED": "theirs", "OTHER": "x"}}, Verdict: session.NotStarted, Code: -1, Error: "usage"},
		{Text: `: >"$T/ran"`, With: session.Command{Cwd: "/usr", Env: map[string]string{"A": "", "FIXED": ""}}, Verdict: session.NotStarted, Code: -1, Error: "usage"},
		{Text: `echo "$FIXED${OTHER-}"; pwd; test -e "$T/ran"`, Stdout: "mine\n$T\n", Code: 1},
		{Text: `echo "$FIXED$OTHER"; pwd`, With: session.Command{Cwd: "/", Env: map[string]string{"OTHER": "x"}}, Stdout: "minex\n/\n"},
	}},
	{ID: "C10", Name: "names that no variable has", Steps: []Step{
		refusedEnv("A B"), refusedEnv("1A"), refusedEnv("A=B"), refusedEnv(""), refusedEnv("Ä"), refusedEnv("A;b"),
	}},
	{ID: "C12", Name: "directory for one command", Steps: []Step{
		{Text: "pwd", With: session.Command{Cwd: "/usr"}, Stdout: "/usr\n"},
		{Text: "pwd", Stdout: "$T\n", Cwd: "$T"},
		{Text: "cd /; pwd", With: session.Command{Cwd: "/usr"}, Stdout: "/\n"},
		{Text: "pwd", Stdout: "$T\n", Cwd: "$T"},
		{Text: "cd /tmp; cd \"$T\"", Cwd: "$T"},
		{Text: "pwd", With: session.Command{Cwd: "/usr"}, Stdout: "/usr\n"},
		{Text: "cd - >/dev/null; pwd; cd \"$T\"", Stdout: "/tmp\n", Cwd: "$T"},
	}},
	{ID: "C86", Name: "directory for one command that leaves its line", Steps: []Step{
		{Text: "sleep 60", With: session.Command{Cwd: "/usr", Timeout: ms(300)}, Verdict: session.TimedOut, Codes: endings, Error: "cmd.timeout", StderrLike: Like(""), Most: ms(2300)},
		{Text: "pwd", Stdout: "$T\n", Cwd: "$T"},
		{Text: "cd /tmp; echo on; sleep 60", With: session.Command{Timeout: ms(500)}, Stdout: "on\n", Verdict: session.TimedOut, Codes: endings, Error: "cmd.timeout", StderrLike: Like("")},
		{Text: "pwd; cd \"$T\"", Stdout: "/tmp\n", Cwd: "$T"},
		{Text: "echo on; sleep 60", With: session.Command{Cwd: "/usr"}, React: []Reaction{{After: "on", Interrupt: session.Int}}, Stdout: "on\n", Verdict: session.Interrupted, Codes: endings, Error: "cmd.interrupted", StderrLike: Like("")},
		{Text: "pwd", With: session.Command{Cwd: "/"}, Stdout: "/\n"},
		{Text: "pwd", Stdout: "$T\n", Cwd: "$T"},
		{Text: ": ${none?no such}", With: session.Command{Cwd: "/usr"}, Code: Failure, StderrLike: Like("no such")},
		{Text: "pwd", Stdout: "$T\n", Cwd: "$T"},
		{Text: "echo )", With: session.Command{Cwd: "/usr"}, Code: Failure, StderrLike: Like("")},
		{Text: "pwd", Stdout: "$T\n", Cwd: "$T"},
	}},
	{ID: "C81", Name: "directories with long names", Steps: []Step{
		{Text: `mkdir -p "$T/` + longName + `/a" "$T/` + longName + `/b"; cd "$T/` + longName + `/a"`, Cwd: "$T/" + longName + "/a"},
		{Text: "pwd; (exit 3)", With: session.Command{Cwd: "$T/" + longName + "/b"}, Stdout: "$T/" + longName + "/b\n", Code: 3},
		{Text: "read -r x; echo \"$x\"; pwd", With: session.Command{Cwd: "$T/" + longName + "/b", Env: map[string]string{"K": "v"}}, Stdout: "\n$T/" + longName + "/b\n"},
		{Text: "pwd", With: session.Command{Cwd: "$T/" + longName + "/none"}, Verdict: session.NotStarted, Code: -1, Error: "cmd.cwd"},
		{Text: "pwd", Stdout: "$T/" + longName + "/a\n", Cwd: "$T/" + longName + "/a"},
		{Text: `cd "$T"`, Cwd: "$T"},
	}},
	{ID: "C13", Name: "a directory that is not there", Steps: []Step{
		{Text: `: >"$T/side effect"`, With: session.Command{Cwd: "/nonexistent"}, Verdict: session.NotStarted, Code: -1, Error: "cmd.cwd"},
		{Text: `ls "$T/side effect" 2>/dev/null; test -e "$T/side effect"`, Code: 1, Cwd: "$T"},
	}},
	{ID: "C15", Name: "set -u", Steps: []Step{
		{Text: "set -u"},
		{Text: "echo on", Stdout: "on\n"},
		{Text: "echo ${unset_variable-none}; sleep 0 & wait >/dev/null 2>&1", Job: true, Stdout: "none\n"},
		{Text: "set +u"},
	}},
	{ID: "C16", Name: "set -eu, and a failure", Steps: []Step{
		{Text: "set -eu"},
		{Text: "echo on; true", Stdout: "on\n"},
		{Text: "echo last; false; echo never", Stdout: "last\n", Code: 1, Ended: true},
	}},
	{ID: "C18", Name: "set -x, set -v", Steps: []Step{
		{Text: "set -x", StderrLike: Like(""), TerminalLike: Without("_gw")},
		{Text: "echo hi; (exit 3)", Stdout: "hi\n", StderrLike: Like(`echo hi`), Code: 3, TerminalLike: Without("_gw")},
		{Text: "set +x", StderrLike: Without("_gw", "printf"), TerminalLike: Without("_gw")},
		{Text: "set -v", TerminalLike: Without("_gw")},
		{Text: "echo hi; (exit 3)", Stdout: "hi\n", StderrLike: Without("_gw", "printf"), Code: 3, TerminalLike: Without("_gw")},
		{Text: "set +v", StderrLike: Without("_gw", "printf"), TerminalLike: Without("_gw")},
	}},
	{ID: "C19", Name: "trap DEBUG", Except: on("dash, busybox ash, mksh, yash", noDebug), Steps: []Step{
		{Text: "trap 'echo D' DEBUG", StdoutLike: Like(`\A(D\n)*\z`), TerminalLike: Like(`\A(D\n)*\z`)},
		{Text: "echo hi; (exit 3)", StdoutLike: Like(`\A(D\n)*hi\n(D\n)*\z`), Code: 3, TerminalLike: Like(`\A(D\n)*\z`)},
		{Text: "trap - DEBUG", StdoutLike: Like(`\A(D\n)*\z`), TerminalLike: Like(`\A(D\n)*\z`)},
	}},
	{ID: "C21", Name: "modes of the terminal", Needs: Terminal, Steps: []Step{
		{Text: "stty sane </dev/tty"},
		{Text: "echo a; echo b >&2", Stdout: "a\n", Stderr: "b\n"},
		{Text: "stty echo </dev/tty"},
		{Text: "echo a; (exit 2)", Stdout: "a\n", Code: 2},
		{Text: "stty raw </dev/tty"},
		{Text: "echo a; (exit 2)", Stdout: "a\n", Code: 2},
		{Text: "stty -icanon min 1 time 0 </dev/tty"},
		{Text: "echo a; (exit 2)", Stdout: "a\n", Code: 2},
		{Text: `stty sane -echo -onlcr </dev/tty; printf '\033c\033[!p' >/dev/tty`, Terminal: "\x1bc\x1b[!p"},
		{Text: "echo a", Stdout: "a\n"},
		{Text: "stty rows 5 cols 20 </dev/tty; echo " + lettered(300), Stdout: lettered(300) + "\n"},
	}},
	{ID: "C22", Name: "functions named like builtins", Steps: []Step{
		{Text: `printf() { :; }; cat() { :; }; test() { :; }; true() { (exit 4); }`},
		{Text: "echo hi; true", Stdout: "hi\n", Code: 4},
		{Text: "unset -f printf cat test true"},
		{Text: `echo() { printf 'my %s\n' "$*"; }; alias() { (exit 4); }; pwd() { :; }; cd() { (exit 5); }; kill() { (exit 6); }`},
		{Text: "echo hi; (exit 3)", Stdout: "my hi\n", Code: 3},
		{Text: "echo hi; (exit 3)", With: session.Command{Cwd: "/"}, Stdout: "my hi\n", Code: 3},
		{Text: "unset -f echo alias pwd cd kill"},
	}},
	{ID: "C80", Name: "functions named command and builtin", Steps: []Step{
		{Text: `command() { (exit 7); }; builtin() { (exit 8); }`},
		{Text: "echo hi; (exit 3)", Stdout: "hi\n", Code: 3},
		{Text: "echo hi; (exit 3)", With: session.Command{Cwd: "/"}, Stdout: "hi\n", Code: 3},
		{Text: "unset -f command builtin 2>/dev/null; true"},
	}},
	{ID: "C23", Name: "a function named like a special builtin", Except: on("dash, busybox ash, ksh, mksh, yash", noSpecial), Steps: []Step{
		{Text: `eval() { (exit 9); }; .() { (exit 9); }; :() { (exit 9); }`},
		{Text: "echo hi; (exit 3)", Stdout: "hi\n", Code: 3},
		{Text: "unset -f eval . :"},
	}},
	{ID: "C60", Name: "aliases named like builtins", Steps: []Step{
		{Text: `alias printf=false cat=false eval=false command=false echo='echo aliased'; alias .=false test=false builtin=false 2>/dev/null; true`, StderrLike: Like("")},
		{Text: "echo hi; (exit 3)", Stdout: "aliased hi\n", Code: 3},
		{Text: `unalias printf; unalias cat; unalias eval; unalias command; unalias echo; unalias . test builtin 2>/dev/null; true`},
		{Text: "echo hi", Stdout: "hi\n"},
	}},
	{ID: "C24", Name: "no PATH", Steps: []Step{
		{Text: "P=$PATH; unset PATH"},
		{Text: "echo a; echo b >&2; (exit 3)", Stdout: "a\n", Stderr: "b\n", Code: 3},
		{Text: "PATH="},
		{Text: "echo a; (exit 3)", Stdout: "a\n", Code: 3},
		{Text: "PATH=/nonexistent; export PATH"},
		{Text: "echo " + lettered(5000) + "; (exit 3)", Stdout: lettered(5000) + "\n", Code: 3},
		{Text: "read a; echo $a", Stdin: new("line\n"), Stdout: "line\n"},
		{Text: "PATH=$P; export PATH"},
	}},
	{ID: "C25", Name: "IFS, options and locale", Steps: []Step{
		{Text: "old=$IFS; IFS=xX0369abcdef:/"},
		{Text: "echo axb; (exit 3)", Stdout: "axb\n", Code: 3},
		{Text: "read a b; echo $b", Stdin: new("1x2\n"), Stdout: "2\n"},
		{Text: "IFS=; sleep 0"},
		{Text: "echo a; (exit 3)", Stdout: "a\n", Code: 3},
		{Text: "IFS=$old; set -C"},
		{Text: `: >"$T/c"; echo a >&2; (exit 3)`, Stderr: "a\n", Code: 3},
		{Text: `(: >"$T/c") 2>/dev/null`, Code: Failure},
		{Text: "set +C; set -a"},
		{Text: "echo a; (exit 3)", Stdout: "a\n", Code: 3},
		{Text: "set +a; old=${LC_ALL-}; LANG=C; LC_ALL=POSIX"},
		{Text: "echo a; (exit 3)", Stdout: "a\n", Code: 3},
		{Text: "unset LANG; LC_ALL=$old; [ \"$old\" ] || unset LC_ALL; unset old"},
	}},
	{ID: "C77", Name: "UTF-8 in a locale without it", Except: on("yash", charsOnly), Steps: []Step{
		{Text: "LC_ALL=POSIX"}, {Text: "echo ✓; (exit 3)", Stdout: "✓\n", Code: 3}, {Text: "unset LC_ALL"},
	}},
	{ID: "C26", Name: "set -f", Steps: []Step{
		{Text: "case $ZSH_VERSION in '') set -f;; *) set -F;; esac"},
		{Text: "echo *; (exit 3)", Stdout: "*\n", Code: 3},
		{Text: "case $ZSH_VERSION in '') set +f;; *) set +F;; esac"},
	}},
	{ID: "C61", Name: "set -n", Except: on("dash, busybox ash", forGood), Steps: []Step{
		{Text: "set -n", StderrLike: Like(""), Codes: []int{0, Failure}},
		{Text: "set +n; echo on", Stdout: "on\n", StderrLike: Like("")},
	}},
	{ID: "C78", Name: "set -n, where it is for good: an end, and no status", Needs: Terminal, Except: on("bash, zsh, ksh, mksh, yash", "the session goes on: C61"), Steps: []Step{
		{Text: "set -n", Verdict: session.Unknown, Codes: []int{-1, 0}, Error: "link.lost", Either: true},
		{Text: "echo on", Verdict: session.Interrupted, Codes: endings, Error: "cmd.needs_input", TerminalLike: Like(""), Ended: true},
	}},
	{ID: "C79", Name: "set -n in a file that is sourced", Except: on("dash, busybox ash", forGood), Steps: []Step{
		{Text: "t=$(mktemp); echo 'set -n' >$t; . $t", StderrLike: Like(""), Codes: []int{0, Failure}},
		{Text: "rm $t; unset t; echo on; (exit 3)", Stdout: "on\n", Code: 3},
		{Text: "echo on", Stdout: "on\n"},
	}},
	{ID: "C62", Name: "options of one shell", Except: on("dash, busybox ash, ksh, mksh, yash", "the shell has no shopt and no setopt"), Steps: []Step{
		{Text: "shopt -s extglob nullglob 2>/dev/null || setopt ksh_glob null_glob sh_word_split"},
		{Text: "echo a; (exit 3)", Stdout: "a\n", Code: 3},
		{Text: "shopt -u extglob nullglob 2>/dev/null || unsetopt ksh_glob null_glob sh_word_split"},
	}},
	{ID: "C63", Name: "set -o posix", Except: on("dash, zsh, busybox ash, ksh, yash", "the shell has no such option"), Steps: []Step{
		{Text: "set -o posix"}, {Text: "echo a; (exit 3)", Stdout: "a\n", Code: 3}, {Text: "set +o posix"},
	}},
	{ID: "C27", Name: "exit with a status", Steps: []Step{{Text: "exit 7", Code: 7, Ended: true}}},
	{ID: "C28", Name: "a program in place of the shell", Steps: []Step{{Text: "echo last; exec sh -c 'sleep 0.1; exit 4'", Stdout: "last\n", Code: 4, Ended: true}}},
	{ID: "C29", Name: "exec true", Steps: []Step{{Text: "exec true", Ended: true}}},
	{ID: "C30", Name: "a session that is opened again", Config: &session.Config{Reopen: true, Env: map[string]string{"A": "config"}}, Steps: []Step{
		{Text: `cd /usr; export B='two "words" $x' C=3; D=4; unset A; export A=changed`, Cwd: "/usr", Moves: true},
		{Text: "true"},
		{Text: "export B=lost; exit 7", Code: 7, Ended: true, Reopens: true},
		{Text: `pwd; printf '%s|' "$A" "$B" "$C" "${D-}"; sh -c 'echo $A'`, Stdout: "/usr\nchanged|two \"words\" $x|3||changed\n", Cwd: "/usr"},
	}},
	{ID: "C84", Name: "a session that is opened again after its shell was killed", Config: &session.Config{Reopen: true}, Steps: []Step{
		{Text: "cd /usr; export B=kept; f() { echo gone; }", Cwd: "/usr", Moves: true},
		{Text: "echo last; kill -KILL $$", Stdout: "last\n", Verdict: session.Signaled, Code: 137, Signal: "KILL", Ended: true, Reopens: true},
		{Text: `pwd; sh -c 'echo $B'; f 2>/dev/null`, Stdout: "/usr\nkept\n", Code: 127},
	}},
	{ID: "C85", Name: "a session that is opened again after set -e", Config: &session.Config{Reopen: true}, Steps: []Step{
		{Text: "cd /usr; export B=kept; set -e", Cwd: "/usr", Moves: true},
		{Text: "echo last; false; echo never", Stdout: "last\n", Code: 1, Ended: true, Reopens: true},
		{Text: `pwd; sh -c 'echo $B'; false; echo on`, Stdout: "/usr\nkept\non\n"},
	}},
	{ID: "C64", Name: "exec of a shell, whose input is at its end", Steps: []Step{{Text: "exec sh", Ended: true}}},
	{ID: "C65", Name: "exec >file", Steps: []Step{
		{Text: `exec >"$T/away" 2>&1; echo lost`},
		{Text: `echo here; echo there >&2; cat "$T/away"`, Stdout: "here\nlost\n", Stderr: "there\n"},
		{Text: "exec >/dev/null 2>/dev/null"},
		{Text: "echo here; echo there >&2", Stdout: "here\n", Stderr: "there\n"},
		{Text: "exec >&- 2>&-"},
		{Text: "echo here; echo there >&2", Stdout: "here\n", Stderr: "there\n"},
		{Text: "exec </dev/null"},
		{Text: "echo here", Stdout: "here\n"},
	}},
	{ID: "C66", Name: "descriptors of the user's", Steps: []Step{
		{Text: `exec 9>"$T/lock"; echo held >&9`},
		{Text: `echo more >&9; exec 9>&-; cat "$T/lock"`, Stdout: "held\nmore\n"},
		{Text: `exec 8>&- 7>&- 6>&- 5>&- 4>&- 3>&-`},
		{Text: "echo a; echo b >&2; (exit 3)", Stdout: "a\n", Stderr: "b\n", Code: 3},
		{Text: `exec 3>"$T/3" 4>"$T/4"; echo three >&3`},
		{Text: `echo four >&4; cat "$T/3" "$T/4"; exec 3>&- 4>&-`, Stdout: "three\nfour\n"},
		{Text: `exec 5>"$T/5" 6>"$T/6" 7>"$T/7" 8>"$T/8"`},
		{Text: `echo five >&5; echo six >&6; echo seven >&7; echo eight >&8; exec 5>&- 6>&- 7>&- 8>&-; cat "$T"/[5-8]`, Stdout: "five\nsix\nseven\neight\n"},
	}},
	{ID: "C89", Name: "statuses of a pipeline", Except: on("dash, ksh, mksh, yash, busybox ash", "the shell does not keep them"), Steps: slices.Repeat([]Step{
		{Text: `false | true | (exit 3); eval 'echo "${PIPESTATUS[*]:-${pipestatus[*]}}"'`, Stdout: "1 0 3\n"},
	}, 3)},
	{ID: "C83", Name: "positional parameters", Steps: []Step{
		{Text: "set -- x y"},
		{Text: `echo $#; f() { return 4; }; set -- 1 2 3`, Stdout: "2\n"},
		{Text: `echo $#; : ` + lettered(5000) + `; set -- 1 2 3 4`, Stdout: "3\n"},
		{Text: `echo $#; set --`, Stdout: "4\n"},
	}},
	{ID: "C82", Name: "a lock that is held", Except: on("ksh, mksh", "the shell keeps descriptors above 2 from its programs"), Steps: []Step{
		// Whoever else held the descriptor would hold the lock.
		{Text: `exec 9>"$T/lock"; flock 9; flock -n "$T/lock" true`, Code: 1},
		{Text: `flock -n "$T/lock" true`, Code: 1},
		{Text: `exec 9>&-; flock -n "$T/lock" true`},
	}},
	{ID: "C67", Name: "trap EXIT", Steps: []Step{
		{Text: `trap 'echo bye >"$T/bye"' EXIT`},
		{Text: `echo on; test ! -e "$T/bye"`, Stdout: "on\n"},
		{Text: "trap - EXIT"},
		{Text: `trap 'echo bye >"$T/bye"; exit 6' EXIT`},
		{Text: "exit 5", Codes: []int{5, 6}, Ended: true},
	}},
	{ID: "C68", Name: "trap INT, TERM, HUP, CHLD, USR1", Steps: []Step{
		{Text: "trap 'echo T' INT TERM HUP USR1; kill -USR1 $$; trap '' CHLD 2>/dev/null; echo on", Stdout: "T\non\n"},
		{Text: "(exit 3)", Code: 3},
		{Text: "trap - INT TERM HUP USR1 CHLD"},
	}},
	{ID: "C69", Name: "ten descriptors", Except: on("dash, zsh, busybox ash, ksh, mksh, yash", fewDescriptors), Steps: []Step{
		{Text: "n=$(ulimit -S -n); ulimit -S -n 10"},
		{Text: "echo a; echo b >&2; (exit 3)", Stdout: "a\n", Stderr: "b\n", Code: 3},
		{Text: "ulimit -S -n $n"},
	}},
	{ID: "C76", Name: "twenty descriptors", Except: on("yash", fewDescriptors), Steps: []Step{
		{Text: "n=$(ulimit -S -n); ulimit -S -n 20"},
		{Text: "echo a; echo b >&2; (exit 3)", Stdout: "a\n", Stderr: "b\n", Code: 3},
		{Text: "cat", Stdin: new("in\n"), Stdout: "in\n"},
		{Text: "ulimit -S -n $n"},
	}},
	{ID: "C70", Name: "a TMPDIR of nonsense", Steps: []Step{
		{Text: "TMPDIR=/nonexistent; export TMPDIR"},
		{Text: "echo a; (exit 3)", Stdout: "a\n", Code: 3},
		{Text: "echo " + lettered(5000), Stdout: lettered(5000) + "\n"},
		{Text: "TMPDIR='a b\n*'"},
		{Text: "cat <<E\n" + lettered(3000) + "\nE", StdoutLike: Like(""), StderrLike: Like(""), Codes: []int{0, Failure}},
		{Text: "unset TMPDIR"},
	}},
	{ID: "C71", Name: "umask 777", Steps: []Step{
		{Text: `u=$(umask); umask 777`},
		{Text: "echo a; echo b >&2; (exit 3)", Stdout: "a\n", Stderr: "b\n", Code: 3},
		{Text: "echo " + lettered(5000), Stdout: lettered(5000) + "\n"},
		{Text: "cat", Stdin: new("in\n"), Stdout: "in\n"},
		{Text: "umask $u"},
	}},
	{ID: "C72", Name: "a script that sets the prompts", Steps: []Step{
		{Text: `_OLD_PS1="${PS1-}"; PS1="(venv) ${PS1-}"; export PS1; PS2='more> '; PS4='trace '; PROMPT='% '; RPROMPT=right; PROMPT_COMMAND='echo P'`, TerminalLike: said},
		{Text: "echo a; (exit 3)", Stdout: "a\n", Code: 3, TerminalLike: said},
		{Text: `PS1='$ '; unset PS2 PROMPT_COMMAND`, TerminalLike: said},
		{Text: "echo a; (exit 3)", Stdout: "a\n", Code: 3},
		{Text: `unset PS1 PS4 PROMPT RPROMPT _OLD_PS1`},
		{Text: "echo a; (exit 3)", Stdout: "a\n", Code: 3},
		// Themes set it in a hook, before each prompt.
		{Text: `precmd() { PS1='theme> '; }; precmd_functions=precmd; YASH_PS1='theme> '; PROMPT_COMMAND="PS1='theme> '"`, TerminalLike: Like(`\A(theme> )?\z`)},
		{Text: "echo a; (exit 3)", Stdout: "a\n", Code: 3, TerminalLike: said},
		timedOut("echo part; sleep 60"),
		{Text: "echo a; (exit 3)", Stdout: "a\n", Code: 3},
	}},
	{ID: "C73", Name: "its own variables", Steps: []Step{
		{Text: "unset _gwn _gw PWD OLDPWD"},
		{Text: "echo a; (exit 3)", Stdout: "a\n", Code: 3},
		{Text: `_gwn=x; _gw='echo never'`},
		{Text: "echo a; (exit 3)", Stdout: "a\n", Code: 3},
		{Text: `cd "$T"`, Cwd: "$T"},
	}},
	{ID: "C74", Name: "history and job control", Steps: []Step{
		{Text: "set -m", StderrLike: Like(""), Codes: []int{0, Failure}},
		{Text: "echo a | cat; (exit 3)", Stdout: "a\n", Code: 3},
		{Text: "set +m", StderrLike: Like(""), Codes: []int{0, Failure}},
		{Text: "echo a | cat; (exit 3)", Stdout: "a\n", Code: 3},
		{Text: "echo a\necho b", Stdout: "a\nb\n"},
		{Text: "history", StdoutLike: Without("_gw", "kept="), StderrLike: Like(""), Codes: []int{0, Failure}},
		{Text: "history 1", StdoutLike: Without("_gw", "kept="), StderrLike: Like(""), Codes: []int{0, Failure}},
		{Text: "fc -l", StdoutLike: Without("_gw", "kept="), StderrLike: Like(""), Codes: []int{0, Failure}},
	}},
	{ID: "C75", Name: "a shell within", Steps: []Step{
		{Text: "sh -i -c 'echo in; exit 3'", Stdout: "in\n", StderrLike: Like(""), Code: 3, TerminalLike: Without("_gw")},
		{Text: "sh -c 'cd /; V=lost; exit 4'", Code: 4},
		{Text: "sh -l -c 'echo login' 2>/dev/null | tail -n 1", Stdout: "login\n"},
	}},
}

func refusedEnv(name string) Step {
	return Step{Text: `: >"$T/never"`, With: session.Command{Env: map[string]string{name: "x"}}, Verdict: session.NotStarted, Code: -1, Error: "usage"}
}

// directories goes into a directory of each name.
func directories(names ...string) (steps []Step) {
	for _, name := range names {
		quoted := session.Quote(name)
		steps = append(steps,
			Step{Text: `cd "$T" && mkdir -p ./` + quoted + ` && cd ./` + quoted, Cwd: "$T/" + name},
			Step{Text: "pwd", Stdout: "$T/" + name + "\n", Cwd: "$T/" + name})
	}
	return append(steps, Step{Text: `cd "$T"`, Cwd: "$T"})
}
