package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"gateway/internal/config"
)

// newLog returns the log, on stderr where no file is set: for finding out why, not for
// results.
func (a *app) newLog(to io.Writer) (*slog.Logger, error) {
	c := a.config
	if c.LogFile != "" {
		// Without waiting for who reads it, where it is a FIFO.
		f, err := os.OpenFile(c.LogFile, os.O_WRONLY|os.O_APPEND|os.O_CREATE|unix.O_NONBLOCK, 0o600)
		if err != nil {
			wrong := &config.Error{Code: config.CodeInvalid, Message: fmt.Sprintf("log_file: %v", err), Err: err}
			if errors.Is(err, unix.ENXIO) {
				wrong.Hint = "name a file; of a FIFO, who reads it has to be there first"
			}
			return nil, wrong
		}
		to = &logFile{file: f, lost: func(err error) {
			if !c.Quiet {
				a.out.warn(fmt.Sprintf("log_file: %v: the log ends here", err))
			}
		}}
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.LogLevel)); err != nil {
		return nil, err
	}
	return slog.New(slog.NewTextHandler(to, &slog.HandlerOptions{Level: level})), nil
}

// logTime is how long a line of the log waits for who reads it.
const logTime = time.Second

// A logFile is the log in a file of its own. One that can't be written to stops nothing:
// that is told, and the log ends. The file is closed by the end of the process.
type logFile struct {
	file *os.File
	lost func(error) // is told why
	over bool        // the handler's lock guards it
}

func (l *logFile) Write(b []byte) (int, error) {
	if l.over {
		return len(b), nil
	}
	_ = l.file.SetWriteDeadline(time.Now().Add(logTime)) // what can't wait has none
	n, err := l.file.Write(b)
	if err != nil {
		l.over = true
		l.lost(err)
	}
	return n, err
}
