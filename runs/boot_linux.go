package runs

import (
	"os"
	"strings"
)

// boot names the boot of this machine; empty where that is not known. See
// random(4).
func boot() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id))
}
