package report

import (
	"fmt"
	"time"

	"gateway/bench/peer"
	"gateway/bench/rounds"
	"gateway/bench/work"
)

// A target is what gateway is to reach, as a figure that is computed from one run.
type target struct {
	What string
	// Most or Least is the limit; the other one is 0.
	Most, Least float64
	Unit        string
	value       func(figures) (float64, bool)
}

// A Verdict is how a target came out.
type Verdict struct{ What, Want, Got, Verdict string }

// figures are the rows of a run, by table and contender.
type figures map[[2]string]rounds.Summary

func (f figures) row(title, peer string) (rounds.Summary, bool) {
	s, ok := f[[2]string{title, peer}]
	return s, ok && s.N > 0
}

type stat func(rounds.Summary) float64

func middle(s rounds.Summary) float64 { return s.Median }
func slow(s rounds.Summary) float64   { return s.P99 }

// times is ours in multiples of theirs, over how many times faster it is with the
// arguments swapped.
func times(title, ours, theirs string, of stat) func(figures) (float64, bool) {
	return func(f figures) (float64, bool) {
		a, ok := f.row(title, ours)
		b, found := f.row(title, theirs)
		if !ok || !found || of(b) == 0 {
			return 0, false
		}
		return of(a) / of(b), true
	}
}

// above is how much more ours takes, in units of scale.
func above(title, ours, theirs string, scale float64) func(figures) (float64, bool) {
	return func(f figures) (float64, bool) {
		a, ok := f.row(title, ours)
		b, found := f.row(title, theirs)
		return (a.Median - b.Median) * scale, ok && found
	}
}

// itself is a row as it stands.
func itself(title, peer string) func(figures) (float64, bool) {
	return func(f figures) (float64, bool) {
		s, ok := f.row(title, peer)
		return s.Median, ok
	}
}

// worst is the highest value of a row, where a limit is for every one.
func worst(title, peer string) func(figures) (float64, bool) {
	return func(f figures) (float64, bool) {
		s, ok := f.row(title, peer)
		return s.Max, ok
	}
}

// fastest compares with the best of several contenders.
func fastest(title, ours string, theirs ...string) func(figures) (float64, bool) {
	return func(f figures) (best float64, found bool) {
		for _, t := range theirs {
			if v, ok := times(title, t, ours, middle)(f); ok && (!found || v < best) {
				best, found = v, true
			}
		}
		return best, found
	}
}

// most is the highest of several values that all have to be known.
func most(values ...func(figures) (float64, bool)) func(figures) (float64, bool) {
	return func(f figures) (highest float64, ok bool) {
		for _, value := range values {
			v, known := value(f)
			if !known {
				return 0, false
			}
			highest = max(highest, v)
		}
		return highest, true
	}
}

const (
	engine  = peer.EngineName
	floor   = peer.FloorName
	channel = peer.ChannelName
)

// targets are what gateway is to reach.
var targets = append([]target{
	{"a warm builtin over SSH, × F", 1.25, 0, "", times(work.Builtin, engine, floor, middle)},
	{"the same, p99 × F's", 1.6, 0, "", times(work.Builtin, engine, floor, slow)},
	{"a warm builtin on this machine, above L", 60, 0, " µs", above(work.LocalBuiltin, engine, peer.LocalFloorName, 1e3)},
	{"a command that forks, over SSH, × F", 1.1, 0, "", times(work.Program, engine, floor, middle)},
	{"a command that forks, on this machine, × L", 1.1, 0, "", times(work.LocalProgram, engine, peer.LocalFloorName, middle)},
	{"round trips of a command at 20 ms", 1.04, 0, "", itself(work.RoundTrips(20*time.Millisecond), engine)},
	{"round trips of a command at 100 ms", 1.02, 0, "", itself(work.RoundTrips(100*time.Millisecond), engine)},
	{"through the daemon, above the engine", 0.2, 0, " ms", above(work.Builtin, peer.APIName, engine, 1)},
	{"through MCP, above the engine", 0.2, 0, " ms", above(work.Builtin, peer.MCPName, engine, 1)},
	{"faster than a channel per command", 0, 12, " ×", times(work.Builtin, channel, engine, middle)},
	{"faster than `ssh` with ControlMaster", 0, 35, " ×", times(work.Builtin, "ssh, ControlMaster", engine, middle)},
	{"faster than paramiko", 0, 250, " ×", times(work.Builtin, "paramiko", engine, middle)},
	{"faster than fabric", 0, 250, " ×", times(work.Builtin, "fabric", engine, middle)},
	{"`gateway mcp`, faster than the fastest MCP server from npm", 0, 7, " ×", fastest(work.Builtin, peer.MCPName,
		"npm ssh-mcp, session", "npm ssh-mcp, one-shot", "npm mcp-ssh-manager, session", "npm mcp-ssh-manager, one-shot", "npm ssh-mcp-server-secured")},
	{"faster than a raw task of Ansible", 0, 120, " ×", times(work.Builtin, "ansible, raw", engine, middle)},
	{"round trips of one more session", 2.2, 0, "", itself(work.ReadyFar, engine)},
	{"round trips to its first result", 3.2, 0, "", itself(work.FirstFar, engine)},
	{"round trips from cold to the first result", 11.5, 0, "", itself(work.ColdFar, engine)},
	{"cold to the first result on loopback", 50, 0, " ms", itself(work.ColdNear, engine)},
	{"output of bytes, of the bare channel's rate", 0, 0.9, " ×", times(work.FloodBytes, engine, channel, middle)},
	{"output of lines, of the bare channel's rate", 0, 0.9, " ×", times(work.FloodLines, engine, channel, middle)},
	{"output of bytes, `gateway exec` of `ssh`'s rate", 0, 1.3, " ×", times(work.FloodBytes, peer.ExecName, "ssh, a new connection", middle)},
	{"growth of memory under much output", 16, 0, " MiB", most(worst(work.FloodMemory, engine), worst(work.FloodMemory, peer.ExecName), worst(work.FloodMemory, peer.SessionExecName))},
	{"64 sessions at once", 0, 12000, " commands/s", itself(work.Crowd, peer.LibraryName)},
	{"500 cold hosts, × bare goroutines", 1.1, 0, "", times(work.FanTitle(500, false), peer.ExecName, channel, middle)},
	{"500 cold hosts, faster than the fastest of pssh, clush, pdsh", 0, 4, " ×", fastest(work.FanTitle(500, false), peer.ExecName, "pssh", "clush", "pdsh")},
	{"500 warm hosts, the library", 0.25, 0, " s", itself(work.FanTitle(500, true), peer.LibraryName)},
	{"hosts of 100 that failed against a default sshd", 0, 0, "", worst(work.Refused, peer.ExecName)},
	{"a connection with a session", 80, 0, " KiB", itself(work.IdleFirst, peer.LibraryName)},
	{"each further session", 25, 0, " KiB", itself(work.IdleMore, peer.LibraryName)},
	{"1,000 idle sessions", 100, 0, " MiB", itself(work.IdleAll, peer.LibraryName)},
	{"`gateway exec localhost` to its first byte, above `sh -c`", 15, 0, " ms", above(work.FirstByte, peer.ExecName, peer.ProcessName, 1)},
}, files()...)

// files are the targets for files, near and far.
func files() (all []target) {
	for _, trip := range append([]time.Duration{0}, work.Trips...) {
		against := ", × `sftp`"
		if trip > 0 {
			against = fmt.Sprintf(" at %d ms", trip.Milliseconds()) + against
		}
		for _, t := range []struct {
			what  string
			least float64
			title string
		}{
			{"a large file there", 1, work.PutBig},
			{"a large file back", 1, work.GetBig},
			{"small files there", 3, work.PutSmall},
			{"small files back", 3, work.GetSmall},
		} {
			all = append(all, target{t.what + against, 0, t.least, " ×", rate(t.title + work.Slow(trip))})
		}
	}
	return all
}

// rate is how many times OpenSSH's own way gateway's rate is.
func rate(title string) func(figures) (float64, bool) {
	return times(title, peer.CopyName, "sftp", middle)
}

// Judge says of each target whether the run met it.
func Judge(results []work.Result) []Verdict {
	f := figures{}
	for _, r := range results {
		for _, t := range r.Tables {
			for _, row := range t.Rows {
				f[[2]string{t.Title, row.Peer}] = row.Summary
			}
		}
	}
	var all []Verdict
	for _, t := range targets {
		v := Verdict{What: t.What, Want: "≤ " + number(t.Most) + t.Unit, Got: "–", Verdict: "not measured"}
		if t.Least > 0 {
			v.Want = "≥ " + number(t.Least) + t.Unit
		}
		if got, ok := t.value(f); ok {
			v.Got, v.Verdict = fmt.Sprintf("%s%s", number(got), t.Unit), "**not met**"
			if t.Least > 0 && got >= t.Least || t.Least == 0 && got <= t.Most {
				v.Verdict = "met"
			}
		}
		all = append(all, v)
	}
	return all
}
