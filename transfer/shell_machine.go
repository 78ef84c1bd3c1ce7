package transfer

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/pkg/sftp"

	"gateway/gateway"
	"gateway/transport"
)

// Shell is the files of a machine that serves no sftp but runs programs: its
// own cat, stat, mv and the like do the work.
type Shell struct {
	name       string
	connection *gateway.Connection
	hasher     *hasher
	shells     chan *shell   // nil in it: a shell that may be begun
	feeds      chan struct{} // has one for each program that moves a file
	stalled    time.Duration // how long nobody reads what one gives until it is not counted
	umask      fs.FileMode
	stat       string       // the program that prints mode, size and times
	umasked    perDir[bool] // whether the umask does what it should: not with a default ACL (acl(5))
}

// How many shells, and programs that move a file, work at the same time. A server
// has room for ten channels on a connection.
const (
	maxShells = 3
	maxFeeds  = 3
)

// openShellMachine looks whether the shell has what it takes.
func openShellMachine(ctx context.Context, c *gateway.Connection, why error) (*Shell, error) {
	s := &Shell{name: c.Host.Name, connection: c, hasher: newHasher(c.Pipe), shells: make(chan *shell, maxShells), feeds: make(chan struct{}, maxFeeds), stalled: 10 * time.Second}
	for range maxShells {
		s.shells <- nil
	}
	err := s.probe(ctx)
	if err == nil {
		return s, nil
	}
	s.Close()
	if errors.Is(err, errNoShell) {
		return nil, &transport.Error{
			Code: "file.no_subsystem", Message: why.Error() + "; and no shell answers", Err: why,
			Hint: "the account may run no program at all, as with nologin, a menu or a password that has expired: see gateway hosts check " + s.name,
		}
	}
	return nil, err
}

func (s *Shell) probe(ctx context.Context) error {
	out, err := s.run(ctx, `umask; for s in "stat -c %f:%s:%X:%Y" "stat -f %Xp:%z:%a:%m"; do $s / >/dev/null 2>&1 && { echo "$s"; break; }; done; :`)
	if err != nil {
		return err
	}
	mask, stat, _ := strings.Cut(strings.TrimSuffix(string(out), "\n"), "\n")
	bits, err := strconv.ParseUint(mask, 8, 12)
	if err != nil || stat == "" {
		return &transport.Error{
			Code: "file.no_subsystem", Message: "transfer: " + s.name + " serves no sftp, and its shell has no stat that could do instead",
			Hint: "install an sftp-server there",
		}
	}
	s.umask, s.stat = fs.FileMode(bits), stat
	return nil
}

// About implements [Machine].
func (s *Shell) About() About { return About{Name: s.name, Via: viaShell} }

// Close implements [Machine].
func (s *Shell) Close() error {
	for len(s.shells) > 0 { // the connection may be a session's, and stay
		if sh := <-s.shells; sh != nil {
			sh.close()
		}
	}
	s.hasher.close()
	return s.connection.Close()
}

// run has a shell run a script. What it writes is an error if its status is not
// 0. With the context it ends only once the shell is through, or has taken too long: of
// what comes behind, nothing is to be undone by what a script does yet.
func (s *Shell) run(ctx context.Context, script string) ([]byte, error) {
	var sh *shell
	select {
	case sh = <-s.shells:
	case <-ctx.Done():
		return nil, transport.Cause(ctx)
	}
	if sh != nil && sh.over() {
		sh.close()
		sh = nil
	}
	var err error
	if sh == nil {
		if sh, err = openShell(ctx, s.connection.Pipe, greeting); err != nil {
			s.shells <- nil
			return nil, err
		}
	}
	last, stop := outlast(ctx, finishing)
	defer stop()
	found, err := sh.collect(last, script, maxAnswer)
	if err != nil {
		sh.close()
		s.shells <- nil
		if ctx.Err() != nil {
			return nil, transport.Cause(ctx)
		}
		if errors.Is(err, errEnded) { // nobody knows how far it came
			err = gone{err}
		}
		return nil, err
	}
	if last.Err() != nil { // which has closed its pipe, or is about to
		sh.close()
		sh = nil
	}
	s.shells <- sh
	if found.status != 0 {
		return nil, spoken(string(found.out))
	}
	return found.out, nil
}

// maxAnswer bounds what a script writes: the names in a directory, say.
const maxAnswer = 32 << 20

func (s *Shell) problem(doing, path string, err error) error {
	return problem(s.name, doing, path, err)
}

// word is a path as the shell reads it.
func word(path string) string { return quote(operand(path)) }

// Stat implements [Tree].
func (s *Shell) Stat(ctx context.Context, path string, follow bool) (Info, error) {
	stat := s.stat
	if follow {
		stat = s.statBehind()
	}
	out, err := s.run(ctx, stat+" "+word(path)+" 2>&1")
	var info Info
	if err == nil {
		info, err = parseStat(strings.TrimSuffix(string(out), "\n"))
	}
	if err != nil {
		return Info{}, s.problem("look at", path, err)
	}
	_, info.Name = split(path)
	return info, nil
}

// statBehind is stat that looks behind symlinks.
func (s *Shell) statBehind() string { return strings.Replace(s.stat, "stat ", "stat -L ", 1) }

// parseStat parses mode:size:accessed:modified, the first one in hexadecimal
// digits.
func parseStat(line string) (Info, error) {
	words := strings.Split(line, ":")
	wrong := fmt.Errorf("stat says %.100q", line)
	if len(words) != 4 {
		return Info{}, wrong
	}
	var n [4]int64
	for i, word := range words {
		base := 10
		if i == 0 {
			base = 16
		}
		var err error
		if n[i], err = strconv.ParseInt(word, base, 64); err != nil {
			return Info{}, wrong
		}
	}
	return Info{Mode: (&sftp.FileStat{Mode: uint32(n[0])}).FileMode(), Size: n[1], Accessed: time.Unix(n[2], 0), Modified: time.Unix(n[3], 0)}, nil
}

// List implements [Tree].
func (s *Shell) List(ctx context.Context, dir string, each func(Info) error) error {
	// What stat prints comes first, then the names, with an end that no name has.
	// Where stat does not answer for all it is asked about each: what has gone
	// meanwhile is no more in the directory, and anything else is an error. dash does not
	// say why a directory is not entered.
	script := "(if ! cd -P " + word(dir) + " 2>/dev/null; then " + s.stat + " " + word(Join(dir, ".")) + " 2>&1; exit 1; fi; { find . ! -name . -prune -exec sh -c 'if o=$(" + s.stat + ` "$@" 2>/dev/null); then printf "%s\n" "$o"; printf "%s\000" "$@"
else for f do o=$(` + s.stat + ` "$f") && printf "%s\n%s\000" "$o" "$f"; done; fi' sh {} + 2>&1 >&3 | grep -v 'No such file or directory$' 2>&1; [ $? = 1 ]; } 3>&1)`
	out, err := s.run(ctx, script)
	if err != nil {
		return s.problem("list", dir, err)
	}
	each = once(s.name, dir, each)
	for len(out) > 0 {
		var infos []Info
		for len(out) > 0 && out[0] != '.' {
			line, rest, _ := bytes.Cut(out, []byte("\n"))
			info, err := parseStat(string(line))
			if err != nil {
				return s.problem("list", dir, err)
			}
			infos, out = append(infos, info), rest
		}
		for _, info := range infos {
			name, rest, ok := bytes.Cut(out, []byte{0})
			if !ok {
				return s.problem("list", dir, errors.New("it changed while it was listed"))
			}
			out = rest
			info.Name = strings.TrimPrefix(string(name), "./")
			if err := each(info); err != nil {
				return err
			}
		}
		if len(infos) == 0 {
			return s.problem("list", dir, errors.New("it changed while it was listed"))
		}
	}
	return nil
}

// Readlink implements [Tree].
func (s *Shell) Readlink(ctx context.Context, path string) (string, error) {
	out, err := s.run(ctx, "readlink "+word(path)+" 2>&1")
	return strings.TrimSuffix(string(out), "\n"), s.problem("read the symlink", path, err)
}

// Sum implements [Tree].
func (s *Shell) Sum(ctx context.Context, path string, from, to int64) (Sum, error) {
	sum, err := s.hasher.sum(ctx, path, from, to)
	if errors.Is(err, errNoHasher) {
		return sumContent(ctx, s, path, from, to)
	}
	if errors.Is(err, errNotHashed) {
		if _, failed := s.Stat(ctx, path, true); failed != nil {
			return Sum{}, failed
		}
		if out, failed := s.run(ctx, "[ -r "+word(path)+" ] || echo no"); failed == nil && len(out) > 0 {
			err = fs.ErrPermission
		}
	}
	return sum, s.problem("hash", path, err)
}

// Hashes reports whether the machine hashes its files itself.
func (s *Shell) Hashes(ctx context.Context) bool { return s.hasher.works(ctx) }

// Home implements [Machine].
func (s *Shell) Home(ctx context.Context) (string, error) {
	out, err := s.run(ctx, "pwd -P 2>&1")
	return strings.TrimSuffix(string(out), "\n"), s.problem("find", "", err)
}

// Settle implements [Target].
func (s *Shell) Settle(ctx context.Context, dir string) error {
	return s.problem(settling, dir, s.hasher.settle(ctx, dir))
}

// Mkdir implements [Target]. What is made in a group's directory is the group's: the mkdir of
// busybox takes that from it.
func (s *Shell) Mkdir(ctx context.Context, path string, perm fs.FileMode) error {
	dir, _ := split(strings.TrimRight(path, "/"))
	_, err := s.run(ctx, fmt.Sprintf("mkdir -m %o %s 2>&1 && { [ ! -g %s ] || [ -g %[2]s ] || chmod g+s %[2]s 2>/dev/null || :; }", perm&^s.umask, word(path), word(dir)))
	return s.problem("make the directory", path, err)
}

// Symlink implements [Target].
func (s *Shell) Symlink(ctx context.Context, target, path string) error {
	ctx, stop := outlast(ctx, Committing-finishing) // which run adds
	defer stop()
	part := partPath(path)
	_, err := s.run(ctx, "{ ln -s -- "+quote(target)+" "+word(part)+" && { "+place(part, path)+" || { rm -f "+word(part)+"; false; }; }; } 2>&1")
	return s.problem("make the symlink", path, err)
}

// place moves a part to where it belongs: never into a directory, which is what
// mv does where it finds one. Not every mv can be told so; there a symlink to a
// directory has another name meanwhile, and gets its own one back where the part
// does not get it.
func place(part, path string) string {
	p, to, aside := word(part), word(path), word(asidePath(path))
	return "if [ -L " + to + " ] && [ -d " + to + " ]; then mv -fT " + p + " " + to + " 2>/dev/null || { mv -f " + to + " " + aside +
		" && if mv -f " + p + " " + to + "; then rm -f " + aside + "; else mv -f " + aside + " " + to + " || echo what was there is called " + aside +
		"; false; fi; }; elif [ -d " + to + " ]; then echo Is a directory; false; else mv -f " + p + " " + to + "; fi"
}

// Chattr implements [Target].
func (s *Shell) Chattr(ctx context.Context, path string, attr Attr) error {
	_, err := s.run(ctx, "{ "+chattr(path, attr)+"; } 2>&1")
	return s.problem("change the attributes of", path, err)
}

// chattr is a command that sets attributes.
func chattr(path string, attr Attr) string {
	commands := []string{":"}
	if attr.Perm != nil {
		mode := attr.Perm.Perm()
		if *attr.Perm&fs.ModeSetgid != 0 {
			mode |= 0o2000
		}
		if *attr.Perm&fs.ModeSticky != 0 {
			mode |= 0o1000
		}
		commands = append(commands, fmt.Sprintf("chmod %o %s", mode, word(path)))
	}
	if !attr.Modified.IsZero() {
		for flag, t := range map[string]time.Time{"-a": cmp.Or(attr.Accessed, attr.Modified), "-m": attr.Modified} {
			commands = append(commands, fmt.Sprintf("TZ=UTC0 touch %s -t %s %s", flag, t.UTC().Format("200601021504.05"), word(path)))
		}
	}
	return strings.Join(commands, " && ")
}

var _ Machine = (*Shell)(nil)
