package local

import (
	"bufio"
	"os"
	"os/user"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// account is what sshd would know of the user who runs this process.
type account struct{ name, home, shell string }

// lookupAccount reads the account from the user database, and from the
// environment what is not there: os/user knows no shells, and macOS keeps its
// users elsewhere than in /etc/passwd.
func lookupAccount() account {
	a := account{name: os.Getenv("USER"), home: os.Getenv("HOME"), shell: os.Getenv("SHELL")}
	if u, err := user.Current(); err == nil {
		a.name, a.home = u.Username, u.HomeDir
	}
	if shell := passwdShell(os.Getuid()); shell != "" {
		a.shell = shell
	}
	if a.shell == "" {
		a.shell = "/bin/sh" // passwd(5): an empty field means /bin/sh
	}
	return a
}

// passwdShell returns the login shell that /etc/passwd names for uid.
func passwdShell(uid int) string {
	f, err := os.Open("/etc/passwd")
	if err != nil {
		return ""
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if fields := strings.Split(lines.Text(), ":"); len(fields) >= 7 && fields[2] == strconv.Itoa(uid) {
			return fields[6]
		}
	}
	return ""
}

// environment returns what a session starts with: the account's own variables,
// and of the caller's those that every login has.
func (a account) environment(caller []string) []string {
	env := []string{"HOME=" + a.home, "USER=" + a.name, "LOGNAME=" + a.name, "SHELL=" + a.shell}
	path := "PATH=/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
	for _, entry := range caller {
		switch name, _, _ := strings.Cut(entry, "="); {
		case name == "PATH":
			path = entry
		case name == "LANG", name == "TZ", strings.HasPrefix(name, "LC_"):
			env = append(env, entry)
		}
	}
	return append(env, path)
}

// signalName returns the name of a signal without SIG, as RFC 4254 section
// 6.10 writes it.
func signalName(sig syscall.Signal) string {
	if name := unix.SignalName(sig); name != "" {
		return strings.TrimPrefix(name, "SIG")
	}
	return strconv.Itoa(int(sig))
}
