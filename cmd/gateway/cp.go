package main

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gateway/fleet"
	"gateway/hosts"
	"gateway/internal/phrase"
	"gateway/session"
	"gateway/transfer"
)

// cpFlags are what the command line says about a copy.
type cpFlags struct {
	recursive, preserve, checksum bool
	resume, dryRun, noDaemon      bool
	mode                          *fs.FileMode
	links                         transfer.Links
	exclude                       []string
	user                          string
	plan                          fleet.Plan
}

func (a *app) cpCommand() *cobra.Command {
	var f cpFlags
	cmd := &cobra.Command{
		Use:   "cp SRC... DST",
		Short: "Copy files to hosts, from hosts, or between them",
		Long: `Copy files to hosts, from hosts, or between them. HOST:PATH is a path on a host,
or on many: any selector may stand before the colon. A path without a colon is
local; ./a:b is a local file with a colon in its name.

As with cp, DST is the directory to copy into if it exists, and otherwise the
name of the copy; missing parent directories are not created. Several sources
need a directory. From a SELECTOR of many hosts, copies go into DST/HOST/, which
are created. *, ? and [] in the path of a source on a host match the host's
files.

A file gets its name only when it is complete and the machine has stored what
was sent. A copy that fails leaves what was there before. --resume continues a
large file that was cut short, after comparing what is there.

Status: 0 all was copied, 1 something was not, 2 nothing was tried, 3 some host
was not reached, 5 the link was lost while a file got its name, 6 stopped by
--max-fail or --fail-fast; if several apply, the first of 5, 3, 6, 1.
130/143/129 interrupted, 141 stdout was closed.`,
		Example: `  gateway cp app.tgz web1:/srv/
  gateway cp -r conf.d @web:/etc/nginx/
  gateway cp 'web1:/var/log/nginx/*.log' logs/
  gateway cp '@web:/var/log/syslog' logs/
  gateway cp -rp --checksum --exclude .git site web1:/var/www
  gateway cp --resume disk.img web1:/var/images/
  gateway cp db1:dump.sql db2:`,
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     a.completePlaces,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.cp(cmd, args, &f)
		},
	}
	flags := cmd.Flags()
	flags.BoolVarP(&f.recursive, "recursive", "r", false, "copy directories with all that is in them")
	flags.BoolVarP(&f.preserve, "preserve", "p", false, "keep permissions and times")
	flags.Func("mode", "give every file the permissions `MODE`, such as 0644", func(s string) error {
		mode, err := strconv.ParseUint(s, 8, 9)
		if err != nil {
			return fmt.Errorf("%q is no mode such as 0644", s)
		}
		f.mode = new(fs.FileMode(mode))
		return nil
	})
	flags.Func("links", "what becomes of symlinks in directories, a `WORD`: keep, follow or skip (default keep)", func(s string) (err error) {
		f.links, err = transfer.ParseLinks(s)
		return err
	})
	flags.StringArrayVar(&f.exclude, "exclude", nil, "leave out what `PATTERN` matches: a name, or with a slash a path below SRC; may be repeated")
	flags.BoolVar(&f.checksum, "checksum", false, "leave alone what is equal already")
	flags.BoolVar(&f.resume, "resume", false, "go on with large files that were cut short")
	flags.BoolVar(&f.dryRun, "dry-run", false, "say what would be copied, and change nothing")
	flags.StringVarP(&f.user, "user", "u", "", "enter hosts as `USER`")
	flags.BoolVar(&f.noDaemon, "no-daemon", false, "use no connection that the daemon has open")
	a.planFlags(flags, &f.plan)
	completeWords(cmd, "links", transfer.LinkWords)
	completeFiles(cmd, "exclude")
	return cmd
}

func (a *app) cp(cmd *cobra.Command, args []string, f *cpFlags) error {
	c, err := a.newCopying(cmd, args, f)
	if err != nil {
		return err
	}
	if err := c.lookHere(cmd); err != nil {
		return err
	}
	if err := a.load(); err != nil {
		return err
	}
	// Of several hosts at once nobody knows which one asks.
	ask, policy := a.asker(), policyAsk
	if c.several() {
		ask, policy = nil, policyStrict
	}
	a.borrow(f.noDaemon, ask != nil)
	selector := c.to.Selector
	if c.fromMany || selector == "" {
		selector = c.from.Selector
	}
	var selected []hosts.Host
	if c.gateway, selected, err = a.choose(cmd.Context(), ask, policy, selector); err != nil {
		return err
	}
	defer c.gateway.Close()
	if c.from.Remote() && !c.fromMany {
		if _, err := c.gateway.Resolve(cmd.Context(), c.from.Selector); err != nil {
			return err
		}
	}
	c.names = namesOf(selected)
	a.patience.Store(int64(transfer.Committing + 3*time.Second)) // what is unfinished is to be removed
	return c.run(cmd.Context(), selector, args)
}

// typed returns what does the same copy again, as a shell reads it.
func (f *cpFlags) typed(args []string) string {
	var words []string
	for _, flag := range []struct {
		given bool
		words []string
	}{
		{f.recursive, []string{"-r"}},
		{f.preserve, []string{"-p"}},
		{f.checksum, []string{"--checksum"}},
		{f.resume, []string{"--resume"}},
		{f.links != transfer.KeepLinks, []string{"--links", f.links.String()}},
		{f.user != "", []string{"-u", f.user}},
	} {
		if flag.given {
			words = append(words, flag.words...)
		}
	}
	if f.mode != nil {
		words = append(words, "--mode", fmt.Sprintf("%04o", *f.mode))
	}
	for _, pattern := range f.exclude {
		words = append(words, "--exclude", pattern)
	}
	if strings.HasPrefix(args[0], "-") {
		words = append(words, "--")
	}
	words = append(words, args...)
	for i, word := range words {
		if strings.Trim(word, plain) != "" {
			words[i] = session.Quote(word)
		}
	}
	return strings.Join(words, " ")
}

// plain are the characters that every shell leaves as they are.
const plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789@%+:,./_-"

// newCopying checks what is to be copied where.
func (a *app) newCopying(cmd *cobra.Command, args []string, f *cpFlags) (*copying, error) {
	switch {
	case len(args) < 2:
		return nil, usage(cmd, "", "no %s given", []string{"SRC", "DST"}[len(args)])
	case f.plan.Forks < 1:
		return nil, usage(cmd, "", "--forks: at least 1")
	}
	for _, pattern := range f.exclude {
		if _, err := phrase.Glob(pattern, ""); err != nil || strings.Trim(pattern, "/") == "" {
			return nil, usage(cmd, "", "--exclude: %q is no pattern", pattern)
		}
	}
	c := &copying{app: a, flags: f}
	var places []transfer.Place
	for i, arg := range args {
		if arg == "" { // a variable that is not set
			what := "SRC"
			if i == len(args)-1 {
				what = "DST"
			}
			return nil, usage(cmd, "the working directory is ., and the home directory of a host HOST:", "%s is empty", what)
		}
		place, err := transfer.ParsePlace(arg)
		if err != nil {
			return nil, err
		}
		places = append(places, place)
	}
	last := len(places) - 1
	c.from.Selector, c.to = places[0].Selector, places[last]
	for i, place := range places[:last] {
		if place.Selector != c.from.Selector {
			return nil, usage(cmd, "one call for each", "sources in different places: %s and %s", args[0], args[i])
		}
		c.paths = append(c.paths, place.Path)
	}
	if !c.from.Remote() && !c.to.Remote() {
		return nil, usage(cmd, "HOST:PATH is a path on a host, localhost:PATH one on this machine", "neither %s nor %s is on a host", args[0], args[last])
	}
	var err error
	if c.fromMany, err = many(c.from.Selector); err == nil {
		c.toMany, err = many(c.to.Selector)
	}
	if err == nil && c.fromMany && c.toMany {
		err = usage(cmd, "", "many hosts on both sides")
	}
	return c, err
}

// lookHere refuses sources on this machine that are not there or can't be read:
// else each host is connected to, and blamed.
func (c *copying) lookHere(cmd *cobra.Command) error {
	if c.from.Remote() {
		return nil
	}
	for _, path := range c.paths {
		if _, err := transfer.Look(path); err != nil {
			return usage(cmd, "a path on a host is HOST:PATH", "SRC %s: %v", transfer.Show("", path), phrase.WithoutPath(err))
		}
	}
	return nil
}
