package local

import "golang.org/x/sys/unix"

const (
	ioctlGetTermios = unix.TIOCGETA
	ioctlSetTermios = unix.TIOCSETA
	vdisable        = 0xff // _POSIX_VDISABLE
)
