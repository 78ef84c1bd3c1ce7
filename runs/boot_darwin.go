package runs

import "syscall"

// boot names the boot of this machine; empty where that is not known.
func boot() string {
	id, _ := syscall.Sysctl("kern.bootsessionuuid")
	return id
}
