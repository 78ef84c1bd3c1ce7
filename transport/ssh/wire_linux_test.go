package ssh

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	gossh "golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"

	"gateway/internal/sshdtest"
)

// segments returns how many with data a connection has sent, without those sent again.
func segments(t *testing.T, conn *net.TCPConn) (n uint32) {
	t.Helper()
	raw, err := conn.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) {
			info, failed := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
			if failed != nil {
				t.Error(failed)
				return
			}
			n = info.Data_segs_out - info.Total_retrans // a busy machine may lose time, not data
		})
	}
	if err != nil {
		t.Error(err)
	}
	return n
}

// echoes serves one connection, on which every channel says what it is told.
func echoes(conn net.Conn, key gossh.Signer, cipher string) {
	config := &gossh.ServerConfig{NoClientAuth: true, Config: gossh.Config{Ciphers: []string{cipher}}}
	config.AddHostKey(key)
	_, channels, requests, err := gossh.NewServerConn(conn, config)
	if err != nil {
		return // the client says so
	}
	go gossh.DiscardRequests(requests)
	for c := range channels {
		channel, requests, err := c.Accept()
		if err != nil {
			return
		}
		go gossh.DiscardRequests(requests)
		go io.Copy(channel, channel)
	}
}

// TestPacketInOneSegment: a packet is one segment where its cipher allows that, and
// none waits for the next one, whatever its length.
func TestPacketInOneSegment(t *testing.T) {
	key := sshdtest.NewKey(t, "ed25519").Signer
	for cipher, joined := range map[string]bool{
		gossh.CipherAES128GCM: true, gossh.CipherAES256GCM: true, gossh.CipherChaCha20Poly1305: true, gossh.CipherAES128CTR: false,
	} {
		t.Run(cipher, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			go func() {
				if conn, err := l.Accept(); err == nil {
					echoes(conn, key, cipher)
				}
			}()
			under, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			w := newWire(under)
			defer w.Close()
			mux, channels, requests, err := gossh.NewClientConn(w, "echo", &gossh.ClientConfig{
				HostKeyCallback: gossh.InsecureIgnoreHostKey(), Config: gossh.Config{Ciphers: []string{cipher}},
			})
			if err != nil {
				t.Fatal(err)
			}
			go gossh.DiscardRequests(requests)
			go discardChannels(channels)
			w.join(mux.(gossh.AlgorithmsConnMetadata).Algorithms().Write.Cipher)
			channel, answers, err := mux.OpenChannel("echo", nil)
			if err != nil {
				t.Fatal(err)
			}
			go gossh.DiscardRequests(answers)
			defer time.AfterFunc(time.Minute, func() { mux.Close() }).Stop() // a packet that waits is never answered
			for size := 3900; size < 8400; size++ {
				if size == 4300 {
					size = 8000 // buffers are of 4096, and paddings of 16 bytes
				}
				said := bytes.Repeat([]byte{byte(size)}, size)
				before := segments(t, under.(*net.TCPConn))
				if _, err := channel.Write(said); err != nil {
					t.Fatalf("%d bytes: %v", size, err)
				}
				if n := segments(t, under.(*net.TCPConn)) - before; n != 1 && joined {
					t.Errorf("%d bytes are %d segments, want 1", size, n)
				}
				back := make([]byte, size)
				if _, err := io.ReadFull(channel, back); err != nil || !bytes.Equal(back, said) {
					t.Fatalf("%d bytes: %v, and they are not what was sent", size, err)
				}
			}
		})
	}
}
