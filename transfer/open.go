package transfer

import (
	"context"
	"errors"
	"os"

	"gateway/gateway"
)

// Open returns the files of a host that is connected to: by sftp, or where the
// machine does not serve it, by its shell. Closing them closes the connection,
// and so does an error.
func Open(ctx context.Context, c *gateway.Connection) (Machine, error) {
	if c.Host.Local() {
		home, err := os.UserHomeDir()
		c.Close()
		if err != nil {
			home = "/"
		}
		return &Local{Name: c.Host.Name, Dir: home}, nil
	}
	r, err := openRemote(ctx, c)
	switch {
	case err == nil:
		return r, nil
	case gateway.Code(err) == "file.no_subsystem" && !errors.Is(err, errSilent): // a shell would be no quicker
		return openShellMachine(ctx, c, err)
	}
	c.Close()
	return nil, err
}
