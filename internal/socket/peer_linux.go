package socket

import "golang.org/x/sys/unix"

// peerOf returns the effective user of whoever called connect(2) or listen(2)
// at the other end, as it was then (unix(7), SO_PEERCRED).
func peerOf(fd int) (int, error) {
	credentials, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(credentials.Uid), nil
}
