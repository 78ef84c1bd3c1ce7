package peer

import (
	"context"
	"os/exec"
	"strconv"
	"strings"

	"gateway/bench/lab"
)

// crowds are for many hosts; what needs a connection open makes it with
// ControlMaster.
var crowds = []Peer{
	crowd("pssh", "`parallel-ssh -p 20 -i -h hosts command`", func(s *lab.Site, config string, n, forks int, command string) *exec.Cmd {
		return s.Command("parallel-ssh", "-x", "-F "+s.Path(config), "-p", strconv.Itoa(forks), "-t", "600", "-i", "-H", names(s, n, " "), command)
	}, says("parallel-ssh", "--version"), "parallel-ssh"),
	crowd("clush", "`clush -f 20 -w hosts command`", func(s *lab.Site, config string, n, forks int, command string) *exec.Cmd {
		return s.Command("clush", "-o", "-F "+s.Path(config), "-f", strconv.Itoa(forks), "-w", names(s, n, ","), command)
	}, says("clush", "--version"), "clush"),
	crowd("pdsh", "`pdsh -R ssh -f 20 -w hosts command`", func(s *lab.Site, config string, n, forks int, command string) *exec.Cmd {
		cmd := s.Command("pdsh", "-R", "ssh", "-f", strconv.Itoa(forks), "-w", names(s, n, ","), command)
		cmd.Env = append(cmd.Env, "PDSH_SSH_ARGS_APPEND=-F "+s.Path(config))
		return cmd
	}, says("pdsh", "-V"), "pdsh"),
	crowd("xargs ssh", "`xargs -P 20 -I{} ssh {} command <hosts`", func(s *lab.Site, config string, n, forks int, command string) *exec.Cmd {
		cmd := s.Command("xargs", "-P", strconv.Itoa(forks), "-I{}", "ssh", "-n", "-F", s.Path(config), "{}", command)
		cmd.Stdin = strings.NewReader(names(s, n, "\n") + "\n")
		return cmd
	}, says("ssh", "-V"), "xargs"),
	crowd("ansible, raw, many hosts", "`ansible -f 20 -m raw -a command hosts`", func(s *lab.Site, config string, n, forks int, command string) *exec.Cmd {
		return play(s, config, "raw", n, forks, command)
	}, says("ansible", "--version"), "ansible"),
}

// crowd is a peer that is a program for many hosts.
func crowd(name, how string, command func(s *lab.Site, config string, n, forks int, text string) *exec.Cmd, version func(*lab.Lab) string, program string) Peer {
	return Peer{
		Name: name, How: how, Version: version, Missing: needs(program, "ssh"),
		Fan: func(ctx context.Context, s *lab.Site, n, forks int, text string) (Crowd, error) {
			return crowdOf(ctx, command(s, "ssh_config", n, forks, text))
		},
		FanWarm: func(ctx context.Context, s *lab.Site, n int) (WarmFan, error) {
			// The masters are the program's own, made by a first call.
			if _, err := crowdOf(ctx, command(s, "ssh_shared", n, Forks, "true")); err != nil {
				endMasters(s, n)
				return WarmFan{}, err
			}
			return WarmFan{
				Run: func(ctx context.Context, text string) (Crowd, error) {
					return crowdOf(ctx, command(s, "ssh_shared", n, Forks, text))
				},
				Close: func() { endMasters(s, n) },
			}, nil
		},
	}
}

func names(s *lab.Site, n int, separator string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = s.Hosts[i].Name
	}
	return strings.Join(all, separator)
}
