package mcpserver

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"gateway/daemon/api"
	"gateway/gateway"
	"gateway/hosts"
	"gateway/internal/phrase"
	"gateway/transport"
)

// hostEntry is a host as an agent sees it: never with a secret.
type hostEntry struct {
	Name      string   `json:"name"`
	Transport string   `json:"transport"`
	Address   string   `json:"address"`
	Groups    []string `json:"groups,omitempty"`
	Tags      []string `json:"tags,omitempty"`
}

// hostEntry describes a host. Its address may stand in ssh_config alone.
func (s *Server) hostEntry(ctx context.Context, h hosts.Host) (hostEntry, error) {
	address := h.Address()
	if h.Addr == "" {
		resolved, err := s.config.Gateway.Resolve(ctx, h.Name)
		if err != nil {
			return hostEntry{}, err
		}
		address = resolved.Address()
	}
	return hostEntry{h.Name, h.Transport, address, h.Groups, h.Tags}, nil
}

// maxHosts is how many hosts an answer describes.
const maxHosts = 100

func (c *call) hosts(in hostsArgs) (any, error) {
	list := c.config.Hosts
	if in.Select != "" {
		selected, err := c.config.Select(in.Select)
		if err != nil {
			return nil, c.selectError(in.Select, err)
		}
		list = slices.DeleteFunc(slices.Clone(selected), func(h hosts.Host) bool {
			_, ok := c.allowed[h.Name]
			return !ok
		})
	}
	answer := struct {
		Hosts   []hostEntry `json:"hosts"`
		Omitted int         `json:"omitted,omitempty"`
		Next    string      `json:"next,omitempty"`
	}{Hosts: []hostEntry{}}
	var more []string
	for i, h := range list {
		if i >= maxHosts {
			more = append(more, h.Name)
			continue
		}
		entry, err := c.hostEntry(c.ctx, h)
		if err != nil {
			return nil, err
		}
		answer.Hosts = append(answer.Hosts, entry)
	}
	switch answer.Omitted = len(more); {
	case len(more) > 0:
		answer.Next = fmt.Sprintf("there are %d more, which hosts with select describes: %s", len(more), phrase.Brief(hosts.FoldNames(more), 2000))
	case len(list) == 0:
		answer.Next = "there is no such host that this server may use: a person sets that in the inventory and with --hosts"
	}
	return answer, nil
}

// selectError replaces a hint that is for the command line, or that may name a host
// which this server may not use.
func (c *call) selectError(selector string, err error) error {
	hint := gateway.Hint(err)
	near := strings.HasPrefix(hint, "did you mean ")
	if !near && !strings.Contains(hint, "gateway ") {
		return err
	}
	hint = "hosts without select lists those that can be used"
	if near {
		hint = cmp.Or(hosts.DidYouMean(selector, "", c.names), hint)
	}
	return &transport.Error{Code: gateway.Code(err), Message: err.Error(), Hint: hint, Err: err}
}

func (c *call) open(in openArgs) (any, error) {
	s, err := c.dial(in.Host, api.Open{Name: in.Name, Cwd: in.Cwd, Env: in.Env, Shell: in.Shell, Cols: in.Cols, Rows: in.Rows, Keep: in.Keep})
	if err != nil {
		if gateway.Code(err) == "usage" && in.Name != "" {
			if open, lookErr := c.find(in.Name); lookErr == nil && !open.State.Over() {
				return nil, usage("use it, close it, or choose another name", "a session named %s is open on %s", in.Name, open.Host)
			}
		}
		return nil, err
	}
	return struct {
		Session string   `json:"session"`
		Host    string   `json:"host"`
		User    string   `json:"user"`
		Shell   string   `json:"shell"`
		Cwd     string   `json:"cwd"`
		Notes   []string `json:"notes,omitempty"`
		Next    string   `json:"next"`
	}{s.Name, s.Host, s.User, s.Shell, s.Cwd, c.notes, "run commands in it with run"}, nil
}

// sessionEntry is a session in a list.
type sessionEntry struct {
	Session  string      `json:"session"`
	ID       string      `json:"id"`
	Host     string      `json:"host"`
	User     string      `json:"user"`
	State    api.State   `json:"state"`
	Cwd      string      `json:"cwd"`
	AgeS     int         `json:"age_s"`
	IdleS    int         `json:"idle_s,omitempty"`
	Keep     bool        `json:"keep,omitempty"`
	Running  string      `json:"running,omitempty"`
	Command  string      `json:"command_id,omitempty"` // what runs, or ran last
	ForS     int         `json:"running_s,omitempty"`
	Prompt   *api.Prompt `json:"prompt,omitempty"`
	Attached string      `json:"attached,omitempty"`
	ExitCode *int        `json:"exit_code,omitempty"`
	Reason   string      `json:"reason,omitempty"`
}

func newSessionEntry(s api.Session) sessionEntry {
	since := func(t time.Time) int { return int(api.Since(t).Seconds()) }
	e := sessionEntry{
		Session: s.Name, ID: s.ID, Host: s.Host, User: s.User, State: s.State, Cwd: s.Cwd, AgeS: since(s.OpenedAt),
		Keep: s.Keep, Attached: s.Attached, ExitCode: s.ExitCode, Reason: s.Reason,
	}
	if s.Command != nil {
		e.Command = s.Command.ID
	}
	switch {
	case s.Command != nil && !s.Command.Over() && !s.State.Over():
		e.Running, e.ForS, e.Prompt = phrase.Brief(plain(s.Command.Text), known), since(s.Command.StartedAt), prompt(s.Command.Prompt)
	case !s.State.Over():
		e.IdleS = since(s.UsedAt)
	}
	return e
}

func (c *call) sessions(in sessionsArgs) (any, error) {
	if (in.Action == "list") != (in.Session == "") {
		return nil, usage("", "action %s: session is for close, reset and screen, and needed there", in.Action)
	}
	if in.Action == "list" {
		return c.list()
	}
	s, err := c.find(in.Session)
	switch {
	case err != nil:
		return nil, err
	case s.State == api.Closed, s.State == api.Lost && in.Action != "close":
		return nil, closed(s)
	}
	switch in.Action {
	case "close": // takes a lost one off the list
		if s, err = c.daemon.Close(c.ctx, s.ID); err != nil {
			return nil, c.sessionError(s.ID, err)
		}
		return newSessionEntry(s), nil
	case "reset":
		if err := c.daemon.Reset(c.ctx, s.ID); err != nil {
			return nil, c.sessionError(s.ID, err)
		}
		if s, err = c.find(s.ID); err != nil {
			return nil, err
		}
		return struct {
			sessionEntry
			Next string `json:"next"`
		}{newSessionEntry(s), "a fresh shell: directory and exported variables are as they were; functions, plain variables and jobs are not"}, nil
	}
	return c.screen(s)
}

func (c *call) list() (any, error) {
	list, err := c.visible()
	if err != nil {
		return nil, err
	}
	answer := struct {
		Sessions []sessionEntry `json:"sessions"`
	}{[]sessionEntry{}}
	for _, s := range list {
		answer.Sessions = append(answer.Sessions, newSessionEntry(s))
	}
	return answer, nil
}

func (c *call) screen(s api.Session) (any, error) {
	screen, err := c.daemon.Screen(c.ctx, s.ID)
	if err != nil {
		return nil, c.sessionError(s.ID, err)
	}
	answer := struct {
		Session   string `json:"session"`
		Screen    string `json:"screen"`
		CursorRow int    `json:"cursor_row"`
		CursorCol int    `json:"cursor_col"`
		Alternate bool   `json:"alternate,omitempty"`
		Title     string `json:"title,omitempty"`
		Next      string `json:"next,omitempty"`
	}{s.Name, strings.TrimRight(strings.Join(screen.Rows, "\n"), "\n"), screen.CursorRow, screen.CursorCol, screen.Alternate, screen.Title, ""}
	if len(screen.Rows) == 0 {
		answer.Next = fmt.Sprintf("nothing has run on the terminal of session %s: run with tty true", s.Name)
	}
	return answer, nil
}
