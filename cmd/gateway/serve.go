package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"gateway/daemon"
	"gateway/daemon/api"
	"gateway/daemon/client"
	"gateway/internal/config"
	"gateway/internal/socket"
	"gateway/transport"
)

type serveFlags struct {
	foreground, detached, stop, force bool
	idle                              duration
}

// listenTime is how long a daemon waits for one that is ending. It is shorter
// than what its caller waits, so that it can still say why.
const listenTime = 4 * time.Second

func (a *app) serveCommand() *cobra.Command {
	f := serveFlags{idle: duration(15 * time.Minute)}
	cmd := &cobra.Command{
		Use:   "serve [--foreground | --stop]",
		Short: "Run the daemon that keeps sessions between calls",
		Long: `Start the daemon in the background, unless it runs, and say where it listens.

It listens on a socket that only you can use: the setting "socket", else
gateway/gateway.sock in $XDG_RUNTIME_DIR, else gateway-UID/gateway.sock in
$TMPDIR or /tmp. It ends when it had no session and no request for a while, and
on TERM; then commands have ten seconds to end, and its sessions are closed. A
second signal ends it at once. Its log is daemon.log in $XDG_STATE_HOME/gateway,
else in ~/.local/state/gateway.

--stop is refused while it has sessions, or calls that do something. An agent
that is only there, or "gateway session events", is no reason to stay. --force
waits for none of them, and kills a daemon that does not answer or end within
five seconds.`,
		Example: `  gateway serve
  gateway serve --foreground --idle 0
  gateway serve --stop`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case f.stop && f.foreground:
				return usage(cmd, "", "--stop and --foreground exclude each other")
			case f.force && !f.stop:
				return usage(cmd, "", "--force is for --stop")
			}
			if err := a.load(); err != nil {
				return err
			}
			path, err := a.socket()
			switch {
			case err != nil:
				return err
			case f.stop:
				return a.stopDaemon(cmd.Context(), path, f.force)
			case f.foreground || f.detached:
				return a.serve(cmd.Context(), path, f)
			}
			return a.startDaemon(cmd, path, f)
		},
	}
	cmd.Flags().BoolVar(&f.foreground, "foreground", false, "stay, and log to stderr (for systemd)")
	cmd.Flags().Var(&f.idle, "idle", "end after that long without sessions and requests; 0 for never")
	cmd.Flags().BoolVar(&f.stop, "stop", false, "end the daemon that runs, unless it has sessions or a command uses it")
	cmd.Flags().BoolVar(&f.force, "force", false, "with --stop: close its sessions, and end what runs in them; kill it if it hangs")
	cmd.Flags().BoolVar(&f.detached, "detached", false, "what the daemon in the background is started with")
	if err := cmd.Flags().MarkHidden("detached"); err != nil {
		panic(err) // there is no such flag
	}
	return cmd
}

// socket returns where the daemon listens.
func (a *app) socket() (string, error) { return socket.Path(a.config.Socket, os.Getenv) }

// startOptions say how a daemon is started in the background. It gets the
// settings that are in force here, as far as they are of use to it.
func (a *app) startOptions(path string, args ...string) (client.StartOptions, error) {
	program, err := executable()
	if err != nil {
		return client.StartOptions{}, err
	}
	o := client.StartOptions{
		Path: path, Executable: program, Log: stateDir("daemon.log"),
		Args: append([]string{"serve", "--detached", "--log-level", a.config.LogLevel}, args...),
		Env: []string{
			"GATEWAY_SOCKET=" + path,
			fmt.Sprintf("GATEWAY_MAX_SESSIONS=%d", a.config.MaxSessions),
			fmt.Sprintf("GATEWAY_MAX_SESSIONS_PER_HOST=%d", a.config.MaxSessionsPerHost),
			"GATEWAY_SESSION_TTL=" + a.config.SessionTTL.String(),
		},
	}
	if o.Log == "" { // no home
		o.Log = filepath.Join(filepath.Dir(path), "daemon.log")
	}
	if file := a.source.Files()[0]; file.Named {
		named, err := filepath.Abs(file.Path)
		if err != nil {
			return client.StartOptions{}, err
		}
		o.Env = append(o.Env, "GATEWAY_CONFIG="+named)
	}
	return o, nil
}

// executable returns this program's file. Linux has it below /proc, which is not in every
// chroot: there it is the file that the call names.
func executable() (string, error) {
	program, unknown := os.Executable()
	if unknown == nil {
		return program, nil
	}
	called, err := exec.LookPath(os.Args[0])
	if err != nil {
		return "", unknown
	}
	return filepath.Abs(called)
}

func (a *app) startDaemon(cmd *cobra.Command, path string, f serveFlags) error {
	idle := time.Duration(f.idle).String()
	o, err := a.startOptions(path, "--idle", idle)
	if err != nil {
		return err
	}
	begun := time.Now().Truncate(time.Microsecond) // as precise as what the daemon says
	hello, err := client.Start(cmd.Context(), o)
	if err != nil {
		return err
	}
	if cmd.Flags().Changed("idle") && hello.Started.Before(begun) {
		a.warn(fmt.Sprintf("daemon %d was running and keeps its own --idle: gateway serve --stop, then gateway serve --idle %s", hello.PID, idle))
	}
	return a.showDaemon(hello, path, fmt.Sprintf("daemon %d listens on %s\n", hello.PID, visible(path)))
}

// stopDaemon ends the daemon. One that is not there is ended.
func (a *app) stopDaemon(ctx context.Context, path string, force bool) error {
	ctx, cancel := context.WithTimeout(ctx, daemon.DrainTime+listenTime)
	defer cancel()
	hello, err := client.Stop(ctx, path, force)
	switch {
	case socket.Absent(err):
		return a.showDaemon(api.Hello{}, path, fmt.Sprintf("no daemon listens on %s\n", visible(path)))
	case err != nil:
		return err
	case hello.Protocol == 0:
		return a.showDaemon(hello, path, fmt.Sprintf("daemon %d did not answer and was killed\n", hello.PID))
	}
	return a.showDaemon(hello, path, fmt.Sprintf("daemon %d has ended\n", hello.PID))
}

// showDaemon says who the daemon is or was: null if there is none.
func (a *app) showDaemon(hello api.Hello, path, text string) error {
	if a.out.format == "text" {
		return a.out.printf("%s", text)
	}
	shown := struct {
		Socket string     `json:"socket"`
		Daemon *api.Hello `json:"daemon"`
	}{path, &hello}
	if hello.PID == 0 {
		shown.Daemon = nil
	}
	return a.out.json(shown)
}

// serve is the daemon.
func (a *app) serve(ctx context.Context, path string, f serveFlags) error {
	a.patience.Store(int64(daemon.DrainTime + listenTime))
	if f.detached && a.config.LogFile == "" {
		var err error
		if a.log, err = a.newLog(daemon.NewLog(os.Stderr)); err != nil {
			return err
		}
	}
	bound, cancel := context.WithTimeout(ctx, listenTime)
	defer cancel()
	l, err := a.listen(bound, path)
	if err != nil {
		return err
	}
	defer l.Release()
	cancel()
	a.log.Info("daemon", "pid", os.Getpid(), "socket", path, "version", newVersionInfo().Version)
	defer func() { a.log.Info("daemon ends", "pid", os.Getpid(), "cause", context.Cause(ctx)) }()
	d, err := daemon.New(daemon.Config{
		StateDir: stateDir(""), Log: a.log,
		MaxSessions: a.config.MaxSessions, MaxPerHost: a.config.MaxSessionsPerHost, TTL: a.config.SessionTTL,
	})
	if err != nil {
		return err
	}
	return daemon.Serve(ctx, l, d.Handler(), daemon.Life{
		Version: newVersionInfo().Version, Idle: time.Duration(f.idle), Log: a.log,
		Sessions: d.Sessions, Drain: d.Drain,
	})
}

// hintElsewhere is about a daemon that has the records of sessions, and another socket.
const hintElsewhere = "it listens elsewhere, since XDG_RUNTIME_DIR or TMPDIR differ: name its socket with GATEWAY_SOCKET; or its socket was removed, as at a logout: end it with kill, which closes its sessions"

// listen makes the socket, and takes the records of sessions for this daemon. One that
// listens elsewhere would take ours for those of a dead one.
func (a *app) listen(ctx context.Context, path string) (*socket.Listener, error) {
	records := stateDir("daemon.lock")
	if records == "" {
		return nil, &config.Error{Code: config.CodeInvalid, Message: "no place for the records of sessions", Hint: "set HOME or XDG_STATE_HOME"}
	}
	if err := os.MkdirAll(filepath.Dir(records), 0o700); err != nil {
		return nil, err
	}
	l, err := socket.Listen(ctx, path, records)
	if errors.Is(err, socket.ErrHeld) {
		return nil, &transport.Error{
			Code: "daemon.unreachable", Message: fmt.Sprintf("the records of sessions are another daemon's: %v", err), Err: err,
			Hint: hintElsewhere,
		}
	}
	return l, err
}
