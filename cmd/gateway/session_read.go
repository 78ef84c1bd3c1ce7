package main

import (
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"gateway/session"
)

// readFlags are what the command line says about what is to be read.
type readFlags struct {
	since            int64
	follow, cursor   bool
	grep, stream     string
	context          int
	head, tail       int
	headSet, tailSet bool
}

func (a *app) sessionReadCommand() *cobra.Command {
	var f readFlags
	cmd := &cobra.Command{
		Use:   "read NAME | ID",
		Short: "Read what a session has said, or one command of it",
		Long: `Read the output of a session or, with the ID of a command, of that command: byte
for byte, with stderr and the terminal on stderr unless --stream picks one. At a
terminal, sequences other than colours that would draw on it, or make it answer,
are left out: to see what a program draws, use gateway session screen. Sessions
that are over can be read, too, as long as their records are kept.

A cursor counts bytes from the session's beginning. --cursor prints on stderr
where to go on, and -o json has it in "next"; -o json gives at most 4 MiB, which
end at "next". With --grep and --since, a line that begins before the cursor and
goes on after it is searched as a whole. Of a line over 1 KiB --grep shows the
part around the match, with … where the line goes on; -o json says so in "cut":
before, behind or both.`,
		Example: `  gateway session read work --tail 20
  gateway session read work --since 51200 --cursor
  gateway session read work --follow
  gateway session read s-d3kv440gy7.4 --stream stderr
  gateway session read work --grep 'error|warn' --context 2`,
		Args:              exactly("NAME"),
		ValidArgsFunction: a.completeSessions(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.headSet, f.tailSet = cmd.Flags().Changed("head"), cmd.Flags().Changed("tail")
			return a.sessionRead(cmd, args[0], &f)
		},
	}
	flags := cmd.Flags()
	flags.Int64Var(&f.since, "since", 0, "from this `CURSOR` on")
	flags.BoolVar(&f.follow, "follow", false, "go on until the session or the command is over")
	flags.StringVar(&f.grep, "grep", "", "only lines that match `REGEX` (RE2)")
	flags.IntVar(&f.context, "context", 0, "with --grep: and `N` lines before and behind each")
	flags.IntVar(&f.head, "head", 0, "the first `N` lines")
	flags.IntVar(&f.tail, "tail", 0, "the last `N` lines")
	flags.StringVar(&f.stream, "stream", "", "`STREAM`: stdout, stderr or terminal")
	flags.BoolVar(&f.cursor, "cursor", false, "tell on stderr where to go on")
	completeWords(cmd, "stream", []string{"stdout", "stderr", "terminal"})
	return cmd
}

func (f *readFlags) check(cmd *cobra.Command) error {
	switch {
	case f.headSet && f.tailSet, f.grep != "" && (f.headSet || f.tailSet):
		return usage(cmd, "", "--head, --tail and --grep exclude each other")
	case f.follow && (f.headSet || f.grep != ""):
		return usage(cmd, "to wait for a line there is gateway session wait --until match=REGEX", "--follow goes with --tail and --since only")
	case !isRegexp(f.grep):
		return usage(cmd, "expressions are RE2: no backreferences, no lookaround", "--grep: %q is no regular expression", f.grep)
	case f.context != 0 && f.grep == "":
		return usage(cmd, "", "--context is for --grep")
	case f.since < 0 || f.head < 0 || f.tail < 0 || f.context < 0:
		return usage(cmd, "", "--since, --context, --head and --tail: at least 0")
	case f.stream != "" && f.stream != session.Terminal.String() && streamOf(f.stream) == session.Terminal:
		return usage(cmd, "", "--stream: %q is not one of stdout, stderr or terminal", f.stream)
	}
	return nil
}

func isRegexp(text string) bool {
	_, err := regexp.Compile(text)
	return err == nil
}

// commandID is what the daemon calls a command: its session's id and a number.
var commandID = regexp.MustCompile(`^s-[0-9a-z]{10}\.[0-9]+$`)

// sessionOf splits what names a session, or a command of one.
func sessionOf(word string) (name, command string) {
	if commandID.MatchString(word) {
		name, _, _ = strings.Cut(word, ".")
		return name, word
	}
	return word, ""
}

func (a *app) sessionRead(cmd *cobra.Command, word string, f *readFlags) error {
	if err := f.check(cmd); err != nil {
		return err
	}
	c, err := a.daemon(cmd)
	if err != nil {
		return err
	}
	r := &reader{app: a, client: c, one: f.stream != ""}
	r.session, r.query.Command = sessionOf(word)
	r.query.Stream, r.query.Since, r.query.Grep, r.query.Context = f.stream, f.since, f.grep, f.context
	ctx := cmd.Context()
	if err := r.bounds(ctx); err != nil {
		return err
	}
	switch {
	case f.headSet:
		err = r.first(ctx, f.head)
	case f.tailSet:
		err = r.last(ctx, f.tail)
	default:
		err = r.pages(ctx, r.write)
	}
	if err == nil && f.follow {
		err = r.follow(ctx)
	}
	if err != nil {
		return err
	}
	return r.end(f.cursor)
}
