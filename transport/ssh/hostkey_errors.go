package ssh

import (
	"errors"
	"fmt"

	gossh "golang.org/x/crypto/ssh"

	"gateway/transport"
)

// describe is a key in messages.
func describe(key gossh.PublicKey) string { return key.Type() + " " + gossh.FingerprintSHA256(key) }

// refused returns the error for a key that is not known to be right.
func (h *HostKeys) refused(v verdict) *transport.Error {
	key := describe(v.key)
	switch v.kind {
	case keyRevoked:
		return h.failure(codeHostKeyRevoked, nil, "someone may be using a stolen key; the host needs another one, or the line is wrong",
			"is revoked by %s: it shows %s, the line has %s", v.entry.place(), key, describe(v.entry.key))
	case keyUnchecked:
		return h.failure(codeHostKeyRevoked, v.unchecked, "the file has to be readable and a list of public keys, one a line",
			"may be revoked: RevokedHostKeys %v", v.unchecked)
	case keyUnread:
		return h.failure(codeLimit, v.unchecked, hintNoFile,
			"was not checked: %v", v.unchecked)
	case keyChanged:
		return h.failure(codeHostKeyChanged, nil, fmt.Sprintf("someone may be in between; if the change is expected, remove line %d of %s and run: %s", v.entry.line, v.entry.file, h.recording()),
			"changed: it shows %s, %s has %s%s", key, v.entry.place(), describe(v.entry.key), v.certNote())
	case keyNotPinned:
		return h.unpinned(v.key)
	}
	hint := "compare the fingerprint with the host's own, then run: " + h.recording()
	if h.Why != "" {
		hint = fmt.Sprintf("with %s host keys are strict: compare the fingerprint with the host's own and record it beforehand with %s, or pin it with host_key in the inventory", h.Why, h.recording())
	}
	return h.failure(codeHostKeyUnknown, nil, hint, "is unknown: %s%s", key, v.certNote())
}

// failure makes the error that says what is wrong with the host's key.
func (h *HostKeys) failure(code string, cause error, hint, format string, args ...any) *transport.Error {
	return &transport.Error{Code: code, Message: "ssh: host key of " + h.display() + " " + fmt.Sprintf(format, args...), Hint: hint, Err: cause}
}

// unanswered is the error when nobody could be asked.
func (h *HostKeys) unanswered(v verdict, err error) error {
	e := h.refused(v)
	e.Message += ": " + err.Error()
	e.Err = err
	return e
}

// unrecorded is the error for a key that would have been accepted. A refusal
// that came out under the lock stays what it is.
func (h *HostKeys) unrecorded(key gossh.PublicKey, err error) error {
	if _, ok := errors.AsType[*transport.Error](err); ok {
		return err
	}
	hint := "set known_hosts, or pin the key with host_key: " + gossh.FingerprintSHA256(key)
	if file := h.writeFile(); file != "" {
		hint = "make " + file + " writable, " + hint
	}
	return h.failure(codeHostKeyUnknown, err, hint, "is unknown and cannot be recorded: %v", err)
}

// certNote says why a certificate did not help.
func (v *verdict) certNote() string {
	if v.cert == nil {
		return ""
	}
	return "; its certificate does not count: " + v.cert.Error()
}
