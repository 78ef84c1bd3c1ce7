package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The two ends of the wire. They are addresses of benchmarks (RFC 2544), and
// stand in namespaces of this run's own.
const (
	nearAddr = "198.18.0.1"
	farAddr  = "198.18.0.2"
	farPort  = 2222
)

// marker is set in the environment of a process that is in a namespace of its own.
const marker = "GATEWAY_BENCH_ISOLATED"

// Isolate runs this program again in a network namespace of its own, where its
// devices and addresses are nobody else's. ran says that it did, and that err is
// how that ended. Where the system refuses a namespace it does nothing.
func Isolate(ctx context.Context) (ran bool, err error) {
	if os.Getenv(marker) != "" || !mayIsolate() {
		return false, nil
	}
	cmd := exec.CommandContext(ctx, "unshare", append([]string{"-n", "sh", "-c", `ip link set lo up && exec "$@"`, "sh", "/proc/self/exe"}, os.Args[1:]...)...)
	if cmd.Args[6], err = os.Executable(); err != nil {
		return false, err
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // it cleans up
	cmd.Env = append(os.Environ(), marker+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return true, cmd.Run()
}

func mayIsolate() bool {
	return exec.Command("unshare", "-n", "ip", "link", "set", "lo", "up").Run() == nil
}

// A wire connects this namespace with another one, by a TUN device in each. This
// process carries the packets between them, and lets each wait.
type wire struct {
	enter []string // starts a command in the other namespace
	delay atomic.Int64
}

func (w *wire) setDelay(d time.Duration) { w.delay.Store(int64(d)) }

func newWire(b *bed) (*wire, error) {
	if os.Getenv(marker) == "" {
		return nil, errors.New("no network namespace of its own")
	}
	near, err := openTun(nearAddr)
	if err != nil {
		return nil, err
	}
	b.Cleanup(func() { near.Close() })
	w := &wire{}
	far := make(chan any)
	over := make(chan struct{})
	b.Cleanup(func() { close(over) })
	go func() { // ends with the bed, and its thread with it: that is in the other namespace
		runtime.LockOSThread()
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			far <- fmt.Errorf("unshare: %w", err)
			return
		}
		w.enter = []string{"nsenter", fmt.Sprintf("--net=/proc/%d/task/%d/ns/net", os.Getpid(), unix.Gettid()), "--"}
		f, err := openTun(farAddr)
		if err != nil {
			far <- err
			return
		}
		far <- f
		<-over
		f.Close()
	}()
	switch other := (<-far).(type) {
	case error:
		return nil, other
	case *os.File:
		go w.carry(near, other) // both end when the devices are closed
		go w.carry(other, near)
	}
	return w, nil
}

// openTun makes a device in the namespace of the calling thread.
func openTun(addr string) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("/dev/net/tun: %w", err)
	}
	const name = "gwbench0"
	request, err := unix.NewIfreq(name)
	if err == nil {
		request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("TUNSETIFF: %w", err)
	}
	for _, args := range [][]string{{"link", "set", "lo", "up"}, {"addr", "add", addr + "/30", "dev", name}, {"link", "set", name, "up", "mtu", "1500", "txqueuelen", "10000"}} {
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			unix.Close(fd)
			return nil, fmt.Errorf("ip %v: %w: %s", args, err, out)
		}
	}
	return os.NewFile(uintptr(fd), "tun "+addr), nil
}

// packets bounds what is under way in one direction.
const packets = 1 << 14

// carry takes packets from one end to the other.
func (w *wire) carry(from, to *os.File) {
	type packet struct {
		bytes []byte
		due   time.Time
	}
	queue := make(chan packet, packets)
	go func() { // ends with the reader below
		runtime.LockOSThread() // for as long as the sleep is a system call of its own
		defer runtime.UnlockOSThread()
		for p := range queue {
			if left := time.Until(p.due); left > 0 {
				// Go's timers may be a millisecond late, a twentieth of the trip.
				span := unix.NsecToTimespec(int64(left))
				_ = unix.Nanosleep(&span, nil) // too early is no harm
			}
			if _, err := to.Write(p.bytes); errors.Is(err, os.ErrClosed) || errors.Is(err, syscall.EBADFD) {
				continue // until the queue ends
			}
		}
	}()
	defer close(queue)
	buffer := make([]byte, 1<<16)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		queue <- packet{append([]byte(nil), buffer[:n]...), time.Now().Add(time.Duration(w.delay.Load()))}
	}
}
