package ssh_test

import (
	"io"
	"net"
	"os"
)

// relayed is true in a process that only carries its standard input and output
// to an address: a ProxyCommand that every machine has.
func relayed() bool {
	address := os.Getenv("GWTEST_RELAY")
	if address == "" {
		return false
	}
	conn, err := net.Dial("tcp", address)
	if err != nil {
		os.Stderr.WriteString("relay: " + err.Error() + "\n")
		return true
	}
	go func() {
		_, _ = io.Copy(conn, os.Stdin) // the other direction ends the process
		_ = conn.(*net.TCPConn).CloseWrite()
	}()
	_, _ = io.Copy(os.Stdout, conn) // as above
	return true
}
