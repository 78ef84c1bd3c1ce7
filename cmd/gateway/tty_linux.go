package main

import "golang.org/x/sys/unix"

const (
	ioctlGetTermios      = unix.TCGETS
	ioctlSetTermios      = unix.TCSETS
	ioctlSetTermiosFlush = unix.TCSETSF // drops what is typed already
	ioctlReadable        = unix.TIOCINQ // FIONREAD by another name
)
