package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"gateway/hosts"
	"gateway/script"
	"gateway/script/report"
)

// reports are the files that a script's run leaves. They are opened before
// anything runs: what can't be written is told then.
type reports struct {
	name    string
	files   []reportFile
	events  *scriptEvents // of jsonl; nil: there is none
	github  *report.GitHub
	summary string // the file for GitHub's summary
}

type reportFile struct {
	kind string
	io.Writer
	io.Closer
}

func (a *app) openReports(cmd *cobra.Command, list []string, s *script.Script, file string) (*reports, error) {
	entries, wanted, err := parseReports(cmd, list, file)
	if err != nil {
		return nil, err
	}
	r := &reports{name: cmp.Or(s.Name, file)}
	for i, e := range entries {
		// Behind a symlink a file may be there only once the one before is open.
		err := reportsOnce(cmd, entries[:i+1])
		var f *os.File
		if err == nil {
			f, err = before(cmd.Context(), func() (*os.File, error) { // a FIFO waits for who reads it
				f, err := os.OpenFile(e.path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
				if err != nil {
					return nil, usage(cmd, "", "--report: %v", err)
				}
				return f, nil
			})
		}
		if err != nil {
			return nil, errors.Join(err, r.close())
		}
		w := &hasty{file: f, ctx: cmd.Context()}
		r.files = append(r.files, reportFile{e.kind, w, f})
		if e.kind == "jsonl" {
			r.events = &scriptEvents{newEventLog(w)}
		}
	}
	if wanted {
		// The runner reads its commands on both streams.
		w := io.Writer(a.out)
		if a.out.format != "text" {
			w = a.out.errors()
		}
		r.github = &report.GitHub{W: w, File: relative(file, os.Getenv("GITHUB_WORKSPACE"))}
		r.summary = os.Getenv("GITHUB_STEP_SUMMARY")
	}
	return r, nil
}

// A reportEntry is one of --report with a file.
type reportEntry struct{ kind, path string }

// parseReports returns what --report says beside the script in file, and whether GitHub's is wanted.
func parseReports(cmd *cobra.Command, list []string, file string) (entries []reportEntry, wanted bool, err error) {
	wanted = onGitHub()
	for _, entry := range list {
		kind, path, hasPath := strings.Cut(entry, "=")
		switch {
		case kind == "github" && !hasPath:
			wanted = true
			continue
		case !slices.Contains(kinds, kind):
			err = usage(cmd, cmp.Or(hosts.DidYouMean(kind, "", kinds), "one of "+strings.Join(kinds, ", ")), "--report: unknown kind %q", kind)
		case kind == "github":
			err = usage(cmd, "--report github", "--report: github has no file")
		case path == "":
			err = usage(cmd, "--report "+kind+"=FILE", "--report: no file for %s", kind)
		case path == "-":
			err = usage(cmd, "-o json and -o jsonl write to stdout; a file of that name is ./-", "--report: %s: a report needs a file", entry)
		case sameFile(path, file):
			err = usage(cmd, "give the report a file of its own", "--report: %s is the script", entry)
		}
		if err != nil {
			return nil, false, err
		}
		entries = append(entries, reportEntry{kind, path})
		if err := reportsOnce(cmd, entries); err != nil {
			return nil, false, err
		}
	}
	return entries, wanted, nil
}

// reportsOnce refuses the last of some reports if it goes where another one goes:
// one would be written over the other.
func reportsOnce(cmd *cobra.Command, entries []reportEntry) error {
	last := entries[len(entries)-1]
	for _, e := range entries[:len(entries)-1] {
		if sameFile(e.path, last.path) {
			return usage(cmd, "give each report a file of its own", "--report: %s=%s and %s=%s are one file", e.kind, e.path, last.kind, last.path)
		}
	}
	return nil
}

// sameFile reports whether two paths lead to one file. A device, such as
// /dev/null, may take several.
func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err == nil {
		if one.Mode()&os.ModeDevice != 0 {
			return false
		}
		if other, err := os.Stat(b); err == nil {
			return os.SameFile(one, other)
		}
	}
	a, errA := filepath.Abs(a)
	b, errB := filepath.Abs(b)
	return errA == nil && errB == nil && a == b
}

// tellMasks tells GitHub's runner the secrets, where it is one that listens. It
// reads both streams. stdout is what people keep (>deploy.log), and a stderr
// that is a file is read by nobody now.
func (a *app) tellMasks(secrets map[string]string) {
	if info, err := a.out.stderr.Stat(); !onGitHub() || err != nil || info.Mode().IsRegular() {
		return
	}
	_ = report.Mask(a.out.errors(), secrets) // stderr never says that it can't be written to
}

// wantOutput reports whether write needs what steps wrote.
func (r *reports) wantOutput() bool {
	return r.github != nil || slices.ContainsFunc(r.files, func(f reportFile) bool { return f.kind != "jsonl" })
}

// write writes what is known only at the end.
func (r *reports) write(results []script.Result) error {
	var all []error
	for _, f := range r.files {
		var err error
		switch f.kind {
		case "junit":
			err = report.JUnit(f, r.name, results)
		case "json":
			encoder := json.NewEncoder(f)
			encoder.SetEscapeHTML(false)
			encoder.SetIndent("", "  ")
			err = encoder.Encode(append([]script.Result{}, results...))
		}
		all = append(all, wrap(err))
	}
	if r.github != nil {
		all = append(all, wrap(r.github.Annotate(results)))
	}
	if r.github != nil && r.summary != "" {
		f, err := os.OpenFile(r.summary, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			err = errors.Join(report.Summary(f, r.name, results), f.Close())
		}
		all = append(all, wrap(err))
	}
	return errors.Join(all...)
}

func wrap(err error) error {
	if err == nil {
		return nil
	}
	return outputError("report", err, hintFile)
}

func (r *reports) close() error {
	var all []error
	for _, f := range r.files {
		all = append(all, wrap(f.Close()))
	}
	if r.events != nil {
		all = append(all, wrap(r.events.failed()))
	}
	return errors.Join(all...)
}

// relative returns a file's path below the directory that GitHub has the
// repository in, else as it is.
func relative(file, root string) string {
	abs, err := filepath.Abs(file)
	if err != nil || root == "" {
		return file
	}
	if path, err := filepath.Rel(root, abs); err == nil && filepath.IsLocal(path) {
		return path
	}
	return file
}

func onGitHub() bool { return os.Getenv("GITHUB_ACTIONS") == "true" }

// kinds are what --report knows.
var kinds = []string{"junit", "json", "jsonl", "github"}
