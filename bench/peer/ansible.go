package peer

import (
	"context"
	"os/exec"
	"strconv"
	"strings"

	"gateway/bench/lab"
)

var ansible = []Peer{
	adHoc("ansible, raw", "raw", "`ansible host -m raw -a command`; its ControlPersist keeps the connection"),
	adHoc("ansible, command", "command", "`ansible host -m command -a command` with pipelining"),
}

func adHoc(name, module, how string) Peer {
	return Peer{
		Name: name, Jumps: true, How: how,
		Version: says("ansible", "--version"), Missing: needs("ansible"),
		Warm: func(_ context.Context, s *lab.Site) (Shell, error) {
			return told{each{
				command: func(text string) *exec.Cmd { return play(s, "ssh_shared", module, 1, 1, text) },
				close:   func() { endMasters(s, 1) },
			}}, nil
		},
		Cold: func(ctx context.Context, s *lab.Site, command string) (Cold, error) {
			return whole(told{each{command: func(text string) *exec.Cmd { return play(s, "ssh_config", module, 1, 1, text) }}}.Run(ctx, command))
		},
	}
}

// told takes Ansible's own words out: "host | CHANGED | rc=0 >>".
type told struct{ each }

func (t told) Run(ctx context.Context, text string) (string, error) {
	out, err := t.each.Run(ctx, text)
	_, out, _ = strings.Cut(out, ">>\n")
	return strings.TrimSuffix(out, "\n"), err
}

// play is an ad-hoc call for the first n hosts of a site.
func play(s *lab.Site, config, module string, n, forks int, text string) *exec.Cmd {
	cmd := s.Command("ansible", "-i", s.Path("ansible"), "-f", strconv.Itoa(forks), "-m", module, "-a", text, limit(s, n))
	// Its own -C -o ControlMaster=… would win over the file.
	cmd.Env = append(cmd.Env, "ANSIBLE_SSH_ARGS=-F "+s.Path(config), "ANSIBLE_PIPELINING=True", "ANSIBLE_NOCOLOR=1",
		"ANSIBLE_LOCAL_TEMP="+s.Path("ansible-tmp"), "ANSIBLE_DEPRECATION_WARNINGS=False")
	return cmd
}

// limit is the pattern of the first n hosts.
func limit(s *lab.Site, n int) string {
	if n == 1 {
		return s.First().Name
	}
	return "all[0:" + strconv.Itoa(n-1) + "]"
}
