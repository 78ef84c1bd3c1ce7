// Package socket is the door of the daemon: where its socket is, who may come
// in, and that only one daemon stands behind it.
//
// Its errors are *[transport.Error] with the code daemon.unreachable.
package socket

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"gateway/internal/phrase"
	"gateway/transport"
)

// name is the socket's file.
const name = "gateway.sock"

// longest is the longest path that a socket can have: sun_path without its NUL
// (unix(7)), 107 bytes on Linux and 103 on macOS.
const longest = len(syscall.RawSockaddrUnix{}.Path) - 1

// Path returns where the socket is: the named file; if that is empty,
// gateway/gateway.sock in $XDG_RUNTIME_DIR; and where there is no such
// directory, gateway-UID/gateway.sock in $TMPDIR.
func Path(named string, getenv func(string) string) (string, error) {
	var path string
	switch runtime := getenv("XDG_RUNTIME_DIR"); {
	case named != "":
		var err error
		if path, err = filepath.Abs(named); err != nil {
			return "", fail(err, "", "%s: %v", named, err)
		}
	case ours(runtime):
		path = filepath.Join(runtime, "gateway", name)
	default:
		tmp := getenv("TMPDIR")
		if !filepath.IsAbs(tmp) {
			tmp = "/tmp"
		}
		path = filepath.Join(tmp, "gateway-"+strconv.Itoa(os.Geteuid()), name)
	}
	return path, checkLength(path)
}

// ours reports whether dir is a directory of this user. su and sudo may leave
// the variable of somebody else, and the XDG specification calls that invalid.
func ours(dir string) bool {
	if !filepath.IsAbs(dir) {
		return false
	}
	info, err := os.Stat(dir)
	return err == nil && info.IsDir() && owner(info) == os.Geteuid()
}

func checkLength(path string) error {
	if len(path) <= longest {
		return nil
	}
	return fail(syscall.ENAMETOOLONG, elsewhere, "%s: the path has %d bytes, a socket's can have %d", path, len(path), longest)
}

// elsewhere is the remedy where the place is the problem.
const elsewhere = "name another file in a directory of your own, with the mode 0700, by the key socket of the configuration or by GATEWAY_SOCKET"

// elsewhereRecorded is elsewhere for the daemon's records.
const elsewhereRecorded = "set XDG_STATE_HOME to a directory of your own that can be written to, on a file system that has locks"

// unusable says what the system has against a path.
func unusable(path string, err error) error {
	return fail(err, elsewhere, "%s: %v", path, phrase.WithoutPath(err))
}

func fail(cause error, hint, format string, args ...any) error {
	return &transport.Error{Code: "daemon.unreachable", Message: "daemon: " + fmt.Sprintf(format, args...), Hint: hint, Err: cause}
}
