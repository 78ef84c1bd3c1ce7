package daemon_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"gateway/daemon/api"
	"gateway/daemon/client"
	"gateway/gateway"
	"gateway/internal/sshdtest"
	"gateway/session"
	"gateway/transport"
	"gateway/transport/local"
)

// roleVar makes the test binary another process of a test: a borrower or a
// lender on the socket that socketVar names.
const (
	roleVar   = "GWTEST_ROLE"
	socketVar = "GWTEST_SOCKET"
)

// playRole plays the process's part, if it has one.
func playRole() bool {
	var err error
	switch os.Getenv(roleVar) {
	case "":
		return false
	case "borrower":
		err = playBorrower(os.Getenv(socketVar))
	case "lender":
		err = playLender(os.Getenv(socketVar))
	}
	fmt.Println(err)
	return true
}

// playBorrower runs a command that tells its process and does not end.
func playBorrower(path string) error {
	t, err := client.Borrow(context.Background(), dialer(path), api.Lend{Key: "web1"})
	if err != nil {
		return err
	}
	s, err := session.Open(context.Background(), t, session.Config{})
	if err != nil {
		return err
	}
	_, err = s.Run(context.Background(), session.Command{
		Text:   "sh -c 'echo $$; exec sleep 1000'",
		Output: func(_ session.Stream, b []byte) { os.Stdout.Write(b) },
	})
	return err
}

func playLender(path string) error {
	l, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	fmt.Println("up")
	return lender(context.Background(), local.New(local.Config{})).Serve(l)
}

// play starts this binary in a role and returns its first line.
func play(t *testing.T, role, path string) (cmd *exec.Cmd, first string) {
	t.Helper()
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVar+"="+role, socketVar+"="+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	must(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	if first, err = bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("the %s says nothing: %v", role, err)
	}
	return cmd, strings.TrimSpace(first)
}

// gone reports whether a process has ended.
func gone(t *testing.T, pid string) bool {
	t.Helper()
	n, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatalf("%q is no process", pid)
	}
	return errors.Is(syscall.Kill(n, 0), syscall.ESRCH)
}

// TestBorrowerKilled: a borrower that is killed ends its command on the far
// side, as a direct connection does, and the connection is given back.
func TestBorrowerKilled(t *testing.T) {
	s := sshdtest.Start(t, sshdtest.Options{})
	path, _ := serveLoans(t, dialSSH(t, s, s.Port))
	cmd, far := play(t, "borrower", path)
	if gone(t, far) {
		t.Fatal("the command does not run")
	}
	cmd.Process.Kill()
	cmd.Wait()
	eventually(t, "the command's end", func() bool { return gone(t, far) })
	eventually(t, "the connection given back", func() bool { return loans.Load() == 0 })
}

// TestLenderKilled: what nobody knows any more is unknown, as after the loss of
// a link of one's own.
func TestLenderKilled(t *testing.T) {
	path := socketPath(t)
	lender, _ := play(t, "lender", path)
	tr := borrow(t, path)
	s, err := session.Open(t.Context(), tr, session.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	pipe, err := tr.Pipe(t.Context(), "echo kept; exec cat")
	if err != nil {
		t.Fatal(err)
	}
	read(t, pipe.Stdout, "kept\n")
	r, err := s.Run(t.Context(), session.Command{Text: "sleep 1000", Started: func() { lender.Process.Kill() }})
	if r.Verdict != session.Unknown || gateway.Code(err) != "link.lost" || !errors.Is(err, session.ErrLost) {
		t.Errorf("Run = %s, %v, want unknown and link.lost", r.Verdict, err)
	}
	wantLost(t, pipe)
	if _, err := tr.Pipe(t.Context(), "true"); gateway.Code(err) != "ssh.closed" || !errors.Is(err, transport.ErrUnreachable) {
		t.Errorf("Pipe = %v, want ssh.closed", err)
	}
}

// read wants text, and nothing else so far.
func read(t *testing.T, r interface{ Read([]byte) (int, error) }, text string) {
	t.Helper()
	b := make([]byte, len(text))
	for have := 0; have < len(b); {
		n, err := r.Read(b[have:])
		if have += n; err != nil {
			t.Fatalf("read: %v after %q", err, b[:have])
		}
	}
	if string(b) != text {
		t.Fatalf("read %q, want %q", b, text)
	}
}

// wantLost wants every end of a pipe to say that the link is lost.
func wantLost(t *testing.T, pipe *transport.Pipe) {
	t.Helper()
	check := func(what string, err error) {
		if !errors.Is(err, transport.ErrLost) || gateway.Code(err) != "link.lost" {
			t.Errorf("%s = %v (%s), want link.lost", what, err, gateway.Code(err))
		}
	}
	for i, r := range []interface{ Read([]byte) (int, error) }{pipe.Stdout, pipe.Stderr} {
		_, err := r.Read(make([]byte, 1))
		check([]string{"Read of stdout", "Read of stderr"}[i], err)
	}
	_, err := pipe.Wait()
	check("Wait", err)
	eventually(t, "an error of Write", func() bool {
		_, err = pipe.Stdin.Write([]byte("x"))
		return err != nil
	})
	check("Write", err)
}
