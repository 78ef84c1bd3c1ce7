package socket

import "golang.org/x/sys/unix"

// peerOf returns the effective user of whoever called connect(2) or listen(2)
// at the other end, as it was then (unix(4), LOCAL_PEERCRED).
func peerOf(fd int) (int, error) {
	credentials, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(credentials.Uid), nil
}
