package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"sync/atomic"

	gossh "golang.org/x/crypto/ssh"
	"golang.org/x/sync/errgroup"

	"gateway/bench/lab"
)

// ChannelName is what the others are compared with where there is no live shell.
const ChannelName = "x/crypto, a channel per command"

// Forks is how many hosts at a time every fan-out has, whoever does it.
const Forks = 20

var bare = []Peer{
	{
		Name: ChannelName, InProcess: true,
		How: "`client.NewSession().Output(…)`; in a fan-out, goroutines", Version: module("golang.org/x/crypto"),
		Warm: warmBare(func(c *gossh.Client) (Shell, error) { return channels{c}, nil }),
		Cold: func(_ context.Context, s *lab.Site, command string) (Cold, error) {
			client, err := dial(s)
			if err != nil {
				return Cold{}, err
			}
			out, err := channel(client, command)
			return Cold{out, func() { client.Close() }}, err
		},
		Again: againBare(true, func(c *gossh.Client) (Shell, error) { return channels{c}, nil }),
		Stream: func(_ context.Context, s *lab.Site) (Stream, error) {
			client, err := dial(s)
			if err != nil {
				return Stream{}, err
			}
			return Stream{
				Run: func(_ context.Context, command string, to io.Writer) error {
					s, err := client.NewSession()
					if err != nil {
						return err
					}
					defer s.Close()
					s.Stdout = to
					return s.Run(command)
				},
				Pids:  ourselves,
				Close: func() { client.Close() },
			}, nil
		},
		Fan: func(_ context.Context, s *lab.Site, n, forks int, command string) (Crowd, error) {
			return everywhere(n, forks, func(i int) (string, error) {
				client, err := gossh.Dial("tcp", s.Hosts[i].Address(), s.Client())
				if err != nil {
					return "", err
				}
				defer client.Close()
				return heard(channel(client, command))
			})
		},
		FanWarm: func(_ context.Context, s *lab.Site, n int) (WarmFan, error) {
			clients, err := dialAll(s, n)
			if err != nil {
				return WarmFan{}, err
			}
			return WarmFan{
				Run: func(_ context.Context, command string) (Crowd, error) {
					return everywhere(n, Forks, func(i int) (string, error) { return heard(channel(clients[i], command)) })
				},
				Close: func() { closeAll(clients) },
			}, nil
		},
		Idle: func(_ context.Context, s *lab.Site, connections, each int) (Idle, error) {
			clients, err := dialAll(s, connections)
			if err != nil {
				return Idle{}, err
			}
			_, err = everywhere(connections*each, 8, func(i int) (string, error) {
				_, err := live(clients[i/each])
				return "up", err
			})
			return Idle{Pids: ourselves(), Close: func() { closeAll(clients) }}, err
		},
	},
}

func dial(s *lab.Site) (*gossh.Client, error) {
	return gossh.Dial("tcp", s.First().Address(), s.Client())
}

func dialAll(s *lab.Site, n int) ([]*gossh.Client, error) {
	clients := make([]*gossh.Client, n)
	_, err := everywhere(n, 8, func(i int) (_ string, err error) {
		clients[i], err = gossh.Dial("tcp", s.Hosts[i%len(s.Hosts)].Address(), s.Client())
		return "in", err
	})
	if err != nil {
		closeAll(clients)
	}
	return clients, err
}

func closeAll(clients []*gossh.Client) {
	for _, c := range clients {
		if c != nil {
			c.Close()
		}
	}
}

// channels is a Shell with a channel for each command.
type channels struct{ client *gossh.Client }

func (c channels) Run(_ context.Context, command string) (string, error) {
	return channel(c.client, command)
}

func (channels) Close() {}

func channel(client *gossh.Client, command string) (string, error) {
	s, err := client.NewSession()
	if err != nil {
		return "", err
	}
	defer s.Close()
	out, err := s.Output(command)
	return string(out), err
}

// An owner is a shell that ends with the connection that it is on.
type owner struct {
	Shell
	client *gossh.Client
}

func (o owner) Close() { o.client.Close() }

// warmBare opens a shell on a connection of x/crypto.
func warmBare(open func(*gossh.Client) (Shell, error)) func(context.Context, *lab.Site) (Shell, error) {
	return func(_ context.Context, s *lab.Site) (Shell, error) {
		client, err := dial(s)
		if err != nil {
			return nil, err
		}
		shell, err := open(client)
		if err != nil {
			client.Close()
			return nil, err
		}
		return owner{shell, client}, nil
	}
}

// againBare opens shells on one connection of x/crypto.
func againBare(none bool, open func(*gossh.Client) (Shell, error)) func(context.Context, *lab.Site) (Again, error) {
	return func(_ context.Context, s *lab.Site) (Again, error) {
		client, err := dial(s)
		if err != nil {
			return Again{}, err
		}
		return Again{
			Ready: func(context.Context) (Shell, error) { return open(client) },
			None:  none,
			Close: func() { client.Close() },
		}, nil
	}
}

// everywhere does something for n hosts, some at a time. It counts those that
// said something, and returns the first error.
func everywhere(n, forks int, do func(i int) (string, error)) (Crowd, error) {
	var group errgroup.Group
	group.SetLimit(forks)
	var said atomic.Int64
	for i := range n {
		group.Go(func() error {
			out, err := do(i)
			switch {
			case err != nil:
				return err
			case out == "":
				return errors.New("no output")
			}
			said.Add(1)
			return nil
		})
	}
	err := group.Wait()
	return Crowd{OK: int(said.Load())}, err
}

// heard makes an error of what is not what the commands of a fan-out say.
func heard(out string, err error) (string, error) {
	if err == nil && strings.TrimSpace(out) != Said {
		err = fmt.Errorf("%.100q came", out)
	}
	return out, err
}

// ourselves says that the memory is this process's.
func ourselves() []int { return []int{0} }

// module is the version of a dependency of this program.
func module(path string) func(*lab.Lab) string {
	return func(*lab.Lab) string {
		info, ok := debug.ReadBuildInfo()
		if !ok {
			return "unknown"
		}
		for _, m := range info.Deps {
			if m.Path == path {
				return path[strings.LastIndex(path, "/")+1:] + " " + m.Version
			}
		}
		return "unknown"
	}
}
