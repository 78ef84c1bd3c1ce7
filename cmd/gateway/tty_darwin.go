package main

import "golang.org/x/sys/unix"

const (
	ioctlGetTermios      = unix.TIOCGETA
	ioctlSetTermios      = unix.TIOCSETA
	ioctlSetTermiosFlush = unix.TIOCSETAF // drops what is typed already
	ioctlReadable        = 0x4004667f     // FIONREAD of sys/filio.h, which x/sys lacks
)
