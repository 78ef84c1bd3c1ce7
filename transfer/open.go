package transfer

import (
	"context"
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
	pipe, err := c.Subsystem(ctx, "sftp")
	if gateway.Code(err) == "file.no_subsystem" {
		return openShellMachine(ctx, c, err)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return openRemote(ctx, c, pipe)
}
