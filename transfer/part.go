package transfer

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"gateway/transport"
)

const (
	partMark    = ".gateway-"
	partSuffix  = ".part"
	asideSuffix = ".old"
	partRandom  = 10 // characters that tell parts of a file apart
)

// partPath returns a name that nobody else has, in the directory of path.
func partPath(path string) string { return ownPath(path, partSuffix) }

// asidePath is such a name for what is there while a part takes its place. It is
// not that of a part: nothing is to go on with it.
func asidePath(path string) string { return ownPath(path, asideSuffix) }

func ownPath(path, suffix string) string {
	dir, name := split(path)
	return Join(dir, partPrefix(name)+rand.Text()[:partRandom]+suffix)
}

// partPrefix is how the parts of a file are called up to what tells them apart.
// Names have 255 bytes at most, on most systems; long ones may begin alike.
func partPrefix(name string) string {
	if len(name) > 200 {
		cut := 200
		for cut > 200-utf8.UTFMax && !utf8.RuneStart(name[cut]) { // some disks take no half characters
			cut--
		}
		name = fmt.Sprintf("%s-%.4x", name[:cut], sha256.Sum256([]byte(name)))
	}
	return "." + name + partMark
}

// besides says of a part that could not be made where it was to be.
func besides(machine, path string, err error) error {
	return permitted(machine, path, err, "a copy is made beside the file and then gets its name: %s has to be writable")
}

// inPlace says of a part that could not take the place of what is there.
func inPlace(machine, path string, err error) error {
	return permitted(machine, path, err, "what is there may be somebody else's in a directory with the sticky bit, or immutable: look at it, and at %s")
}

// remains has an error about a file name the part that is left of it, which nobody looks for.
func remains(machine, part string, err error) error {
	e, ok := errors.AsType[*transport.Error](err)
	if !ok || Lost(err) {
		return err
	}
	return &transport.Error{Code: e.Code, Message: fmt.Sprintf("%s; %s could not be removed", e.Message, Show(machine, part)), Hint: e.Hint, Err: err}
}

// permitted has an error that is about permissions say what helps, in the directory of a
// path, if it does not yet.
func permitted(machine, path string, err error, hint string) error {
	if e, ok := errors.AsType[*transport.Error](err); ok && e.Code == codePermission && e.Hint == "" {
		dir, _ := split(path)
		e.Hint = fmt.Sprintf(hint, Show(machine, dir))
	}
	return err
}

// mismatch is the error of a machine that has stored something else.
func mismatch(machine, path string) error {
	return refuse(codeMismatch, "what was there before is untouched; look at the disk and the memory of the machine",
		"%s: what was stored is not what was sent", Show(machine, path))
}

// foreignPart refuses to go on with what is somebody else's, who could write to it for as
// long as it is there.
func foreignPart(machine, path string) error {
	return refuse(codeUnsafe, "remove it, or copy without --resume", "%s belongs to somebody else", Show(machine, path))
}

// Whole returns the path of the file whose part has this path, or which is called so while
// a part takes its place; of any other, and of a name that is too long for that, path itself.
func Whole(path string) string {
	dir, entry := split(path)
	for _, suffix := range []string{partSuffix, asideSuffix} {
		head, ok := strings.CutSuffix(entry, suffix)
		at := strings.LastIndex(head, partMark)
		if ok && at > 1 && head[0] == '.' && len(head) == at+len(partMark)+partRandom {
			return Join(dir, head[1:at])
		}
	}
	return path
}

// isPart reports whether a name is that of a part of the file name, and not of
// one whose name goes on like that of a part.
func isPart(entry, name string) bool {
	rest, ok := strings.CutPrefix(entry, partPrefix(name))
	return ok && strings.HasSuffix(rest, partSuffix) && len(rest) == partRandom+len(partSuffix)
}
