package transfer

import (
	"context"
	"errors"

	"gateway/gateway"
)

// Open returns the files of a host that is connected to: by sftp, or where the
// machine does not serve it, by its shell. Closing them closes the connection,
// and so does an error.
func Open(ctx context.Context, c *gateway.Connection) (Machine, error) {
	if here, ok := c.Transport.(interface{ Dir() string }); ok { // this machine, where its programs start
		c.Close()
		return &Local{Name: c.Host.Name, Dir: here.Dir()}, nil
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
