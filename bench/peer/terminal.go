package peer

import "syscall"

// onTerminal makes a program the leader of a session on its standard input.
func onTerminal() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true, Setctty: true} }
