package lab

import (
	"time"

	gossh "golang.org/x/crypto/ssh"
)

// Trip measures a round trip: that of a request which sshd refuses at once. The
// best of a few counts, as the machine's noise only ever adds.
func (s *Site) Trip() (time.Duration, error) {
	client, err := gossh.Dial("tcp", s.First().Address(), s.Client())
	if err != nil {
		return 0, err
	}
	defer client.Close()
	best := time.Hour
	for range 5 {
		begun := time.Now()
		if _, _, err := client.SendRequest("keepalive@openssh.com", true, nil); err != nil {
			return 0, err
		}
		best = min(best, time.Since(begun))
	}
	return best, nil
}
