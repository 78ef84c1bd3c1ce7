package session

import "regexp"

// dialects maps the base name of a shell to its dialect. What is plain "sh" is
// told apart on the machine itself, in the prelude.
var dialects = map[string]dialect{
	"sh":   posix,
	"dash": posix,
	"ash":  ash,
	"bash": {
		// After one interrupt in fifteen it takes its input for ended (ignoreeof).
		options: "--noprofile --norc --noediting -i +H -o ignoreeof",
		// Run before the first prompt: without it bash would write the frames to
		// ~/.bash_history when it ends. It would also say before a prompt that there is mail.
		environment: `PROMPT_COMMAND="unset HISTFILE MAILCHECK PROMPT_COMMAND; set +o history"`,
		eval:        `\command eval`, dot: `\command .`, printf: `\command printf`, cd: `\command cd`,
		stored: `\command . %s`, unexport: `\export -n _gwn _gw`,
		// With job control, a child that was interrupted while it is being forked
		// takes the terminal behind the shell's back, which then reads EIO and
		// leaves (one in ten); and the end of a job is told on any command's stderr.
		//
		// A PROMPT_COMMAND before the first command leaves PIPESTATUS without a value, and
		// 5.2 gives it none any more.
		//
		// From 5.3 on, an interrupt ends a shell that is in its own wait in a file, but under
		// job control; and an array without an end, as in "a=(", leaves it without assignments
		// and [[ until the next syntax error.
		setup: `\command history -c;\command unset PIPESTATUS;set +m;` + regains(`\command read`, "am", `\command set -m;(:);\command set +m`) +
			`case $BASH_VERSION in [0-4].*|5.[0-2].*);;*)wait() { \local -;\set -m;\builtin wait "$@";};_gwf=$'\\command eval ")" 2>/dev/null||:\n'$_gwf;;esac;`,
		regain: `\command eval "${_gwf-}"||:;`,
		// A PROMPT_COMMAND that sets PS1 would hide the prompt, and so does line editing
		// behind --noediting. Whoever has made it readonly keeps it.
		frame:   `[[ ${PROMPT_COMMAND[@]+x} ]]&&\command unset PROMPT_COMMAND 2>&-||:;\command set +o vi +o emacs;`,
		sourced: true,
		unmask:  unmaskBash,
		profile: `[ -r /etc/profile ] && . /etc/profile; ` +
			`for f in ~/.bash_profile ~/.bash_login ~/.profile; do [ -r "$f" ] && { . "$f"; break; }; done; unset f`,
	},
	"ksh":   ksh,
	"ksh93": ksh,
	"mksh": {
		options:     "-i +o emacs +o vi -o ignoreeof",
		environment: "ENV=/dev/null HISTFILE=",
		// With command in front, eval and dot lose what "set --" set; with builtin, they
		// keep assignments.
		eval: `\builtin eval`, evalWith: `\command eval`, dot: `\builtin .`, dotWith: `\command .`, cd: `\command cd`,
		print:  `\builtin print -nr --`,
		stored: `\builtin eval "$(<%s)"`, unexport: unexport,
		setup: "unset ENV HISTFILE;HISTSIZE=1;" + regains(`\builtin read`, "a", "(:)"),
		// With line editing, it completes a TAB. With noexec it runs what is typed, but no texts.
		frame:  `\builtin set +no emacs +o vi;`,
		forget: `\builtin print -s;`,
		// A job that has ended is counted again at every prompt, and behind 25 of them
		// the next one begins with a warning, which then is said here. The last one
		// goes on as such; one that is stopped would go on in earnest.
		recount: `\builtin read -r _gws 2>/dev/null </proc/$!/stat||_gws=;case $_gws in *") T "*);;*) _gws=$!;{ : & \builtin wait $!;\builtin bg $_gws;} >/dev/null 2>&1||:;;esac;`,
		// Of two signals that met it at once, it keeps one for the next program.
		settles: " (:)",
		regain:  `\builtin eval "${_gwf-}"||:;`,
		leaves:  true,
		untrace: `case $- in *v*) _gwx="${_gwx:-\builtin unset _gwx;\builtin set -}v";\builtin set +v;;esac;` +
			`case $- in *x*) _gwx="${_gwx:-\builtin unset _gwx;\builtin set -}x";\builtin set +x;;esac;`,
		retrace: `\builtin eval "${_gwx-}"; `, traceStays: true,
		unmask:  unmask,
		profile: posixProfile,
		unkept:  "(unset HISTFILE) 2>/dev/null && unset HISTFILE",
	},
	"yash": {
		options: "-i --noprofile --norcfile +o vi -o ignoreeof -o histspace",
		// It takes a PS1 of its own, but not of this name.
		environment: `YASH_PS1="$PS1" YASH_PS2=`,
		setup:       "unset YASH_PS1 YASH_PS2 MAILCHECK;" + wakes,
		// Either would hide the prompt.
		frame:  `\unset YASH_PS1 PROMPT_COMMAND;`,
		forget: `\command history -c;`,
		draws:  true,
		// Where a line goes on, a ^C says nothing to it, and the end of input does.
		gives: "\x04", heedsLate: true,
		noise: regexp.MustCompile("Use `exit' to leave the shell\\.\n|syntax error: .+ (is missing|is not closed.*)\n"),
		eval:  `\command eval`, dot: `\command .`, printf: `\command -p printf`, cd: `\command cd`,
		stored: `\command . %s`, unexport: unexport,
		returns: true,
		unmask:  unmask,
		profile: `[ -r ~/.yash_profile ] && . ~/.yash_profile`,
	},
	"zsh": {
		// PROMPT_SP and PROMPT_CR would draw around the prompt; CHECK_JOBS refuses
		// the first exit while jobs run; HUP kills them; NOTIFY says which have ended
		// amid what a command writes to the terminal.
		options: "-f -i +Z +o prompt_sp +o prompt_cr +o bang_hist -o prompt_subst -o interactive_comments +o check_jobs +o hup +o notify -o hist_ignore_space",
		eval:    `\builtin eval`, dot: `\builtin .`, printf: `\builtin printf`, cd: `\builtin cd`, byWay: `\builtin cd -q`,
		stored: `\builtin eval "$(<%s)"`, unexport: unexport,
		// There is always one; and in the clothes of ksh ${!-} is a variable whose name - has.
		job: "$!",
		// The line that runs is in the history as long as nothing else is.
		setup: `\builtin print -s "";\builtin typeset +x PS1 PS2;MAILCHECK=0;` + wakesAmid,
		// A hook that sets PS1, as themes have, would hide the prompt.
		frame: `[[ ${(t)precmd_functions} = *readonly* ]]||precmd_functions=();` +
			`case ${+functions[precmd]} in 1)\builtin unfunction precmd;;esac;`,
		// So would options that emulate -R sets. With the quotes of csh, no quoted word has
		// two lines: the second one of a text would be run by itself.
		reads: `\builtin setopt promptsubst nopromptsp nopromptcr nocshjunkiequotes nozle nobanghist;`,
		// A text that is not begun, for a syntax error, leaves it to the next.
		untrace: `case $- in *x*) _gwx='\builtin unset _gwx;\builtin set -x';\builtin set +x;;esac;`,
		retrace: `\builtin eval "${_gwx-}"; `,
		exports: true,
		leaves:  true,
		hush:    "2>/dev/null",
		unmask:  unmask,
		profile: `for f in /etc/zsh/zshenv /etc/zshenv ~/.zshenv /etc/zsh/zprofile /etc/zprofile ~/.zprofile /etc/zsh/zlogin /etc/zlogin ~/.zlogin; ` +
			`do [ -r "$f" ] && . "$f"; done; unset f`,
	},
}

var posix = dialect{
	options: "-i -o ignoreeof",
	eval:    `\command eval`, dot: `\command .`, printf: `\command printf`, cd: `\command cd`,
	stored: `\command . %s`, unexport: unexport,
	// A place for mail that is empty has none, whatever MAIL says.
	setup:   "MAILPATH=;",
	anew:    `{ \command [ -t 0 ]&&\command exec <%s;} 2>/dev/null||:;`,
	returns: true,
	speaks:  true,
	unmask:  unmask,
	profile: posixProfile,
}

// ksh93 loses a ^C that meets a pipeline into a subshell if jobs are controlled.
// Without ENV or HISTFILE it takes files in the home.
var ksh = dialect{
	options:     "-i +o emacs +o vi +o gmacs -o ignoreeof",
	environment: "ENV=/dev/null HISTFILE=/dev/null HISTSIZE=1",
	eval:        `\command eval`, dot: `\command .`, printf: `\command printf`, cd: `\command cd`,
	// VISUAL or EDITOR, once set, switch line editing on, and vi mode ends it at the next line.
	frame: `\command set +o vi +o emacs +o gmacs;`,
	setup: "unset ENV;MAILPATH=;set +m;" + regains(`\command read`, "am", `\command set -m;/bin/sh -c :;\command set +m`),
	// A pipeline that is interrupted leaves it in the belief that it is within
	// one: of what follows, it waits for no last program. The next one ends that.
	// An interrupt may also leave SIGINT blocked, until it starts a program.
	mend:         ":|/bin/sh -c :;",
	leads:        true,
	marksSignals: true,
	regain:       `\command eval "${_gwf-}"||:;`,
	rouse:        "VTALRM",
	strayBody:    true,
	debugs:       true,
	// Of a quoted word of two lines at the terminal, it evaluates what the memory
	// happens to hold.
	oneLine: true,
	masks:   true,
	returns: true,
	unmask:  unmask,
	profile: posixProfile,
	unkept:  "(HISTFILE=/dev/null) 2>/dev/null && HISTFILE=/dev/null",
}

// ash is busybox's. Its handler of an interrupt jumps to the prompt from
// wherever it is, with glibc also from within stdio, whose lock then is never
// released: one loop in thirty did not come back. With a trap it waits for a
// safe place, and an expansion that fails ends the text. The status is the
// trap's to keep.
var ash = func() dialect {
	d := posix
	d.frame = "_gwi=;"
	const trap = "trap '_gwi=$?;case $_gwi in 0)_gwi=130;;esac;{ : ${_gwx?};} 2>/dev/null' INT"
	d.setup += trap + ";"
	// A text may have taken it away. No other spelling of $(trap) tells what is set here.
	d.retrap = `case $(trap) in *"' INT"*);;*)` + trap + ";;esac;"
	// An error in a subshell of the text goes to the nearest handler, which is a
	// command's of the shell that was forked: the subshell would run the rest of
	// the frame, and then read the terminal beside its parent. Behind such a
	// command in a file it would loop for ever, so there the eval has no handler.
	d.setup += `_gwr=;[ /proc/self -ef /proc/$$ ]&&_gwr=/proc/$$;_gwc='\[ -e "${_gwr-}" -a ! /proc/self -ef "${_gwr-}" ]&&\exit "$_gws";:';`
	d.checked = `\eval "${_gwc-}";`
	d.stored = `_gwd=;\command . %[1]s;case $_gwd in 1)\command . %[1]s;;esac`
	d.evalInFile = `\eval`
	d.returns, d.leaves, d.loses = false, true, true
	// That end leaves the trap without its own: the status that it has kept would be that of
	// every text in which another trap runs. An error at the top forgets it.
	d.settles = "{ : ${_gwx?};} 2>/dev/null"
	// With ECHO off, the end of a background job is the end of its input, and
	// without ignoreeof it would leave at once.
	d.noise = regexp.MustCompile("\nUse \"exit\" to leave shell\\.\n|You have stopped jobs\\.\n")
	d.ended = "${_gwi:-$_gws}"
	return d
}()

// regains is the setup of a dialect's regain. What runs a job under control takes the
// terminal back from a process group that is not the shell's, if proc_pid_stat(5) names
// one. It is for shells without the options; what it assigns must not be exported. It sets
// no IFS, which may be readonly.
func regains(read, options, job string) string {
	return `_gwf='[[ $- != *[` + options + `]* && -r /proc/self/stat ]]&&` + read + ` -r _gwb </proc/self/stat&&{ _gwb=${_gwb##*\) };_gwa=${_gwb#* * };_gws=${_gwb#* * * * * };` +
		`[[ ${_gws%% *} != -1 && ${_gws%% *} != "${_gwa%% *}" ]];}&&{ ` + job + `;} 2>/dev/null';`
}

const posixProfile = `[ -r /etc/profile ] && . /etc/profile; [ -r "$HOME/.profile" ] && . "$HOME/.profile"`

// unexport is for shells that know no other way.
const unexport = "set +a;_gwa=$_gwn;unset _gwn;_gwn=$_gwa;_gwa=$_gw;unset _gw;_gw=$_gwa;unset _gwa;set -a"

// wakes is for shells whose wait goes on after an interrupt: a signal that is
// trapped ends it, and the interrupt the text.
const wakes = "trap : CONT;"

// wakesAmid is the same where the trap runs at once, amid what the shell writes: at the end
// of a builtin zsh writes what stands in its buffer, and does so again where it was
// interrupted.
const wakesAmid = "trap {} CONT;"

// masking matches texts that may define functions named like the words of a
// frame; masks is the same alone. Special builtins, unset among them, come
// before functions (POSIX XCU 2.9.1.4), in bash in its POSIX mode.
const masking = `\b(command|builtin|unset)\s*\(|\bfunction\s`

var masks = regexp.MustCompile(masking)

const (
	unmask     = `\unset -f command builtin 2>/dev/null;`
	unmaskBash = `POSIXLY_CORRECT=1;\unset -f unset command builtin;\unset POSIXLY_CORRECT;`
)
