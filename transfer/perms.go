package transfer

import (
	"errors"
	"fmt"
	"io/fs"
)

// onlyOwner is what nobody else may read.
const onlyOwner fs.FileMode = 0o600

// perms are the permissions of a part: those that it has, and those that it is to have
// when it gets its name.
type perms struct{ has, ends fs.FileMode }

// begins returns the permissions that a part is made with: its owner writes to it, and
// reads it to compare it. One that is to have exact ones is nobody else's before.
func (s Spec) begins() fs.FileMode {
	if s.Final != nil {
		return onlyOwner
	}
	return s.Perm.Perm() | onlyOwner
}

// ends returns those that it is to have when it gets its name, where the umask leaves less of
// Perm. It is still to be compared, for which its owner reads it.
func (s Spec) ends(less fs.FileMode) fs.FileMode {
	if s.Final != nil {
		less = s.Final.Perm()
	}
	return less | 0o400
}

// unreadable reports whether the owner is not to read it once it has its name.
func (s Spec) unreadable() bool {
	if s.Final != nil {
		return *s.Final&0o400 == 0
	}
	return s.Perm&0o400 == 0
}

// lessUmask returns what the umask leaves of perm: it took so much from a file that was
// made. One that was made for nobody to run says nothing of that: who reads it may.
func lessUmask(perm, made fs.FileMode) fs.FileMode {
	if made&0o111 == 0 {
		made |= made & 0o444 >> 2
	}
	return perm & made.Perm()
}

// chmod gives a file permissions, if it can have other ones than it has, and returns
// those that it has then.
func (s Spec) chmod(machine string, file partFile, perm fs.FileMode) (fs.FileMode, error) {
	err := file.Chmod(perm)
	if !errors.Is(err, fs.ErrPermission) {
		return perm, err
	}
	info, failed := file.Stat()
	if failed != nil {
		return 0, err
	}
	has := info.Mode().Perm()
	return has, s.kept(machine, has, err)
}

// kept is the error of a file that can't get other permissions than it has: none where
// these are as good. A disk such as FAT has the same ones for all files.
func (s Spec) kept(machine string, has fs.FileMode, err error) error {
	// Nobody else reads it who should not, and it can be run. Who may write to it is the
	// disk's matter, which says so of all files: those of Windows are 0777 in WSL.
	fine := has&^s.Perm&0o044 == 0 && s.Perm&^has&0o100 == 0
	if s.Final != nil {
		fine = has == *s.Final
	}
	if fine {
		return nil
	}
	return refuse(codePermission, fmt.Sprintf("with --mode %04o it may have them", has), "%s cannot have other permissions than %04o there: %s", Show(machine, s.Path), has, told(err))
}
