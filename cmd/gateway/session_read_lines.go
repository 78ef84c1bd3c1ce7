package main

import (
	"bytes"
	"context"
	"errors"

	"gateway/daemon/api"
)

// first shows the first lines.
func (r *reader) first(ctx context.Context, lines int) error {
	return r.pages(ctx, func(p api.Piece) error {
		if lines == 0 {
			r.next = r.query.Since
			return errEnough
		}
		for at, b := range p.Data {
			if b != '\n' {
				continue
			}
			if lines--; lines == 0 {
				p.Data = p.Data[:at+1]
				r.next = p.At + int64(at) + 1
				if err := r.write(p); err != nil {
					return err
				}
				return errEnough
			}
		}
		return r.write(p)
	})
}

// last shows the last lines. How far back they begin has to be found out.
func (r *reader) last(ctx context.Context, lines int) error {
	begin := r.query.Since
	for back := int64(64 << 10); ; back *= 4 {
		r.query.Since = max(begin, r.to-back)
		var pieces []api.Piece
		r.dropped = 0
		if err := r.pages(ctx, func(p api.Piece) error {
			pieces = append(pieces, p)
			return nil
		}); err != nil {
			return err
		}
		found := cutLines(&pieces, lines)
		if !found && r.query.Since > begin {
			continue
		}
		for _, p := range pieces {
			err := r.write(p)
			if errors.Is(err, errEnough) {
				r.next = p.At + int64(len(p.Data))
				return nil
			}
			if err != nil {
				return err
			}
		}
		r.next = max(r.next, r.to)
		return nil
	}
}

// cutLines leaves the last lines of pieces. It reports whether there were as
// many.
func cutLines(pieces *[]api.Piece, lines int) (enough bool) {
	list := *pieces
	newlines := 0
	for i := len(list) - 1; i >= 0; i-- {
		data := list[i].Data
		for end := len(data); ; {
			at := bytes.LastIndexByte(data[:end], '\n')
			if at < 0 {
				break
			}
			// The newline at the very end ends the last line, and begins none.
			if last := i == len(list)-1 && at == len(data)-1; !last || lines == 0 {
				newlines++
			}
			if newlines >= max(lines, 1) {
				list[i].Data = data[at+1:]
				list[i].At += int64(at) + 1
				*pieces = list[i:]
				return true
			}
			end = at
		}
	}
	return false
}
