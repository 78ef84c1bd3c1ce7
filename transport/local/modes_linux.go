package local

import "golang.org/x/sys/unix"

const (
	ioctlGetTermios = unix.TCGETS
	ioctlSetTermios = unix.TCSETS
	vdisable        = 0 // _POSIX_VDISABLE
)
