package script

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"gateway/internal/document"
	"gateway/internal/phrase"
	"gateway/transfer"
)

// CheckCopies finds what would fail, or be overwritten, on this machine before
// anything runs on the hosts: sources that are not there or can't be read, and
// copies from several hosts to the same place. What a step registers, or an
// earlier one fetches, can't be looked at. The error is an *[Error], of what is wrong for
// the first of the hosts for which something is.
func (r *Runner) CheckCopies(names []string) error {
	c := &copyCheck{Runner: r, looked: map[string]bool{}, taken: map[*Copy]map[string]string{}}
	for _, host := range names {
		c.host(host)
		if err := c.problems.Err(); err != nil {
			return err
		}
	}
	return nil
}

type copyCheck struct {
	*Runner
	problems document.Problems

	looked map[string]bool             // the sources that are fine
	taken  map[*Copy]map[string]string // where fetched files go, and from which host

	fetched []string // by earlier steps of the host
	unknown bool     // one of them is not known
}

func (c *copyCheck) host(host string) {
	values := c.Script.values(host, c.Given)
	maps.Copy(values, c.Secrets)
	c.fetched, c.unknown = nil, false
	for _, step := range slices.Concat(c.Script.Steps[c.first(host):], c.Script.Always) {
		if step.Copy != nil {
			c.step(host, values, &step)
		}
	}
}

func (c *copyCheck) step(host string, values map[string]string, s *Step) {
	if !s.Copy.Fetch {
		if path, ok := known(s.Copy.Src, values); ok && path != "" {
			c.source(s, local(c.Script.dir, path))
		}
		return
	}
	path, ok := known(s.Copy.Dst, values)
	if !ok || path == "" {
		c.unknown = true
		return
	}
	path = local(c.Script.dir, path)
	c.fetched = append(c.fetched, filepath.Clean(path))
	if s.When != "" {
		return // it may be for one of the hosts
	}
	if isDirectory(path) && !s.Copy.glob() {
		src, ok := known(s.Copy.Src, values)
		if !ok {
			return // it may have another name on each host
		}
		path = named(path, src)
	}
	path = filepath.Clean(path)
	if c.taken[s.Copy] == nil {
		c.taken[s.Copy] = map[string]string{}
	}
	if other := c.taken[s.Copy][path]; other != "" {
		c.fail(s, "dst", s.Copy.dstAt, "put ${{ host }} into it: logs/${{ host }}/", "what comes from %s and from %s would go to the same place, %s", other, host, path)
	}
	c.taken[s.Copy][path] = host
}

// isDirectory reports whether what is fetched goes into path, and not in its place.
func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return strings.HasSuffix(path, "/") || err == nil && info.IsDir()
}

// named returns where in a directory the copy of src goes. The contents of one have no
// name of their own.
func named(dir, src string) string {
	switch name := path.Base(src); name {
	case ".", "..", "/":
		return dir
	default:
		return filepath.Join(dir, name)
	}
}

// source looks at what is to be copied.
func (c *copyCheck) source(s *Step, path string) {
	if c.looked[path] || c.unknown {
		return
	}
	for _, dir := range c.fetched {
		if clean := filepath.Clean(path); clean == dir || strings.HasPrefix(clean, dir+"/") {
			return
		}
	}
	info, err := transfer.Look(path)
	switch {
	case info != nil && info.IsDir() && !s.Copy.Recursive:
		c.fail(s, "src", s.Copy.srcAt, "recursive: true copies directories", "%s is a directory", path)
	case info != nil && !info.IsDir() && !info.Mode().IsRegular():
		c.fail(s, "src", s.Copy.srcAt, "", "%s is neither a file nor a directory", path)
	case err != nil:
		c.fail(s, "src", s.Copy.srcAt, "a relative path begins where the script is", "%s: %v", path, phrase.WithoutPath(err))
	default:
		c.looked[path] = true
	}
}

func (c *copyCheck) fail(s *Step, key string, at Place, hint, format string, args ...any) {
	message := fmt.Sprintf("step %s: %s: %s: ", s.Name, s.Copy.verb(), key) + fmt.Sprintf(format, args...)
	c.problems.Add(c.Script.wrong(at, hint, "%s", c.Mask(message)))
}

// known expands a text, if all that it names is known before anything runs.
func known(text string, values map[string]string) (string, bool) {
	all := true
	expanded := expand(text, func(name string) string {
		value, ok := values[name]
		all = all && ok
		return value
	})
	return expanded, all
}
