package session

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"strings"
)

// Marks are what the far side writes into a stream to speak to the engine. A
// mark is
//
//	RS kind nonce ":" payload RS nonce ";"
//
// with the record separator RS (0x1e). The nonce is made by the client for
// this one mark, never stands whole in what is typed, and closes the payload
// too: a directory name cannot end a mark early. Everything else in a stream
// is the command's, byte for byte.
//
// On the terminal:
//
//	S  the shell's report before it reads commands, see [shellPrelude]; of a command: what comes is its own from here on
//	P  the shell's prompt, with the status of the line before
//	Q  sudo asks for its password, or has no terminal to ask on
//
// In the streams of the keeper, or on the terminal where there is none:
//
//	E  the end of a command: behind stdout with status, last background job and directory, behind stderr with nothing
//	B  a command has its stdin open
//	T  what follows is the shell's trace, see [cutString]; of a command on the terminal it is there
//	K  a keeper's report, see [keeperPrelude]
//	A  what the keeper was to store is there, or not
//	F  all that was written before has come, see [Session.flush]
//	R  who waits for the terminal, see [probeLine]
//	I  whom a signal has met, see [metSome]; or whether the shell is at its prompt, see [listensLine]
//	H  whether somebody holds the streams, see [holdersLine]
//	J  what the shell has started in the background has begun, see [begunLine]
//	L  what other sessions have left was looked for, see [endLine]

// nonceLen is the length of a nonce: 64 random bits in hexadecimal digits. It
// has to be unguessable for the life of one command.
const nonceLen = 16

// headLen is the length of a mark's beginning: RS, kind, nonce, colon.
const headLen = 1 + 1 + nonceLen + 1

// maxPayload bounds a mark. The longest payload is a directory's name, which some shells
// follow beyond PATH_MAX where it is entered in steps. Of a mark that is longer, the name
// is dropped.
const maxPayload = 64 << 10

const rs = 0x1e

func newNonce() string {
	var b [nonceLen / 2]byte
	rand.Read(b[:]) // never fails (crypto/rand)
	return hex.EncodeToString(b[:])
}

// mark is one decoded mark.
type mark struct {
	kind    byte
	from    Stream // set by the session
	nonce   string
	payload string
}

// mark returns the command that writes a mark; nonce and payload are shell
// words, and payload may be nothing. What is typed holds the digits \036 and
// never the byte.
func (d dialect) mark(kind byte, nonce, payload string) string {
	switch {
	case d.print != "":
		return d.print + ` $'\036'` + string(kind) + nonce + ":" + payload + `$'\036'` + nonce + `\;`
	case payload == "":
		return d.printf + ` '\036'` + string(kind) + nonce + `':\036'` + nonce + `\;`
	}
	return d.printf + ` '\036'` + string(kind) + nonce + `':%s\036'` + nonce + `\; ` + payload
}

// shownMark returns the same for the terminal.
func (d dialect) shownMark(kind byte, nonce, payload string) string {
	mark := d.mark(kind, nonce, payload)
	if d.loses {
		return "{ " + mark + "||" + mark + "||" + mark + ";}"
	}
	return mark
}

// storedMark returns the same for a file, which nobody types or sees: the nonce
// is in _gwn, and the payload may stand within double quotes.
func (d dialect) storedMark(kind byte, payload string) string {
	return cmp.Or(d.print, d.printf+" %s") + " \"\x1e" + string(kind) + "$_gwn:" + payload + "\x1e$_gwn;\""
}

// scanner takes the marks out of one stream. The zero value is ready. It is
// not safe for concurrent use.
type scanner struct {
	held []byte // an unfinished mark, carried over to the next chunk
	over []byte // the end of a mark that is too long: nothing before it is data
}

// scan passes the data of a chunk to data and its marks to found, in the order
// of the stream. Only marks whose nonce is expected count; the rest is data.
// Slices given to data are valid until it returns. At most a mark's length is
// held back, and only what may still become one.
func (s *scanner) scan(chunk []byte, expected func(kind byte, nonce []byte) bool, data func([]byte), found func(mark)) {
	if len(s.held) > 0 {
		chunk = append(s.held, chunk...)
		s.held = nil
	}
	if chunk = s.behind(chunk); len(chunk) == 0 {
		return
	}
	begin := 0 // of the data not passed on yet
	for at := 0; at < len(chunk); {
		next := bytes.IndexByte(chunk[at:], rs)
		if next < 0 {
			break
		}
		at += next
		m, size, state := parseMark(chunk[at:], expected, found)
		if state == isData {
			at++
			continue
		}
		if at > begin {
			data(chunk[begin:at])
		}
		if state == isUnfinished {
			s.held = bytes.Clone(chunk[at:])
			return
		}
		found(m)
		at += size
		begin = at
		if state == isTooLong {
			s.over = endOf([]byte(m.nonce))
			s.scan(chunk[at:], expected, data, found)
			return
		}
	}
	if begin < len(chunk) {
		data(chunk[begin:])
	}
}

// behind returns what stands behind a mark that is too long, if that has come.
func (s *scanner) behind(chunk []byte) []byte {
	if s.over == nil {
		return chunk
	}
	end := bytes.Index(chunk, s.over)
	if end < 0 {
		s.held = bytes.Clone(chunk[max(0, len(chunk)-len(s.over)+1):])
		return nil
	}
	chunk = chunk[end+len(s.over):]
	s.over = nil
	return chunk
}

// flush passes on what was held back: the stream has ended.
func (s *scanner) flush(data func([]byte)) {
	if len(s.held) > 0 && s.over == nil {
		data(s.held)
	}
	s.held = nil
}

type markState int

const (
	isData markState = iota
	isMark
	isUnfinished
	isTooLong
)

// endOf returns what ends the mark of a nonce.
func endOf(nonce []byte) []byte {
	return append(append([]byte{rs}, nonce...), ';')
}

// beginsMark reports whether a head, or the beginning of one, is that of a mark.
func beginsMark(head []byte) bool {
	for i, c := range head {
		ok := isHex(c)
		switch i {
		case 0:
			ok = c == rs
		case 1:
			ok = 'A' <= c && c <= 'Z'
		case headLen - 1:
			ok = c == ':'
		}
		if !ok {
			return false
		}
	}
	return true
}

// parseMark looks at b, which starts with RS.
func parseMark(b []byte, expected func(kind byte, nonce []byte) bool, found func(mark)) (m mark, size int, state markState) {
	switch {
	case !beginsMark(b[:min(len(b), headLen)]):
		return mark{}, 0, isData
	case len(b) < headLen:
		return mark{}, 0, isUnfinished
	}
	kind, nonce := b[1], b[2:2+nonceLen]
	if !expected(kind, nonce) {
		return mark{}, 0, isData
	}
	var end [nonceLen + 2]byte
	end[0], end[nonceLen+1] = rs, ';'
	copy(end[1:], nonce)
	payload := bytes.Index(b[headLen:], end[:])
	switch {
	case payload > maxPayload, payload < 0 && len(b) > headLen+maxPayload+len(end):
		m = mark{kind: kind, nonce: string(nonce), payload: withoutDirectory(b[headLen : headLen+maxPayload])}
		if m.payload == "" {
			return mark{}, 0, isData
		}
		return m, headLen, isTooLong
	case payload < 0:
		return mark{}, 0, isUnfinished
	}
	text, within := withoutMarks(b[headLen:headLen+payload], expected)
	m = mark{kind: kind, nonce: string(nonce), payload: string(text)}
	if !m.wellFormed() {
		return mark{}, 0, isData
	}
	for _, m := range within {
		found(m)
	}
	return m, headLen + payload + len(end), isMark
}

// withoutDirectory returns what mark E tells beside the directory; nothing, if that is none.
func withoutDirectory(payload []byte) string {
	fields := bytes.SplitN(payload, []byte(":"), 3)
	if len(fields) < 3 {
		return ""
	}
	m := mark{kind: 'E', payload: string(payload[:len(payload)-len(fields[2])])}
	if !m.wellFormed() {
		return ""
	}
	return m.payload
}

// withoutMarks takes out of a payload what the keeper has written meanwhile: busybox ash
// writes what has a newline in two pieces, and a directory's name may have one.
func withoutMarks(payload []byte, expected func(kind byte, nonce []byte) bool) (rest []byte, within []mark) {
	if bytes.IndexByte(payload, rs) < 0 {
		return payload, nil
	}
	var s scanner
	keep := func(b []byte) { rest = append(rest, b...) }
	s.scan(payload, expected, keep, func(m mark) { within = append(within, m) })
	s.flush(keep)
	return rest, within
}

// wellFormed reports whether the payload has the shape that its kind of mark
// has. An alias or a trace may write a mark's words without its values.
func (m mark) wellFormed() bool {
	switch m.kind {
	case 'P': // status:#
		status, ok := strings.CutSuffix(m.payload, ":#")
		return ok && isStatus(status)
	case 'R': // what the probe has found, and the modes
		return m.payload != ""
	case 'E': // nothing, or status:job:directory
		fields := strings.SplitN(m.payload, ":", 3)
		return m.payload == "" || len(fields) == 3 && (isStatus(fields[0]) || notRun[fields[0]]) && (fields[1] == "" || isNumber(fields[1]))
	}
	return true
}

// What stands for the status of a command that was not run.
const (
	noCwd     = "cwd"  // its directory can't be entered
	noWayBack = "back" // the session's can't, from there
	noEnv     = "env"  // the shell does not take its variables
)

var notRun = map[string]bool{noCwd: true, noWayBack: true, noEnv: true}

// isStatus reports whether s may be the value of $?. Some shells keep in there what a
// function returns, and that is any int.
func isStatus(s string) bool { return isNumber(strings.TrimPrefix(s, "-")) }

// isNumber reports whether s is a decimal number of a sane length.
func isNumber(s string) bool {
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(s) > 0 && len(s) <= 10
}

func isHex(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' }
