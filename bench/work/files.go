package work

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"gateway/bench/lab"
	"gateway/bench/peer"
	"gateway/bench/rounds"
)

// The titles that the targets speak of.
const (
	PutBig   = "one large file, there"
	GetBig   = "one large file, back"
	PutSmall = "files of 4 KiB, there"
	GetSmall = "files of 4 KiB, back"
)

// Slow follows these titles where a round trip takes time.
func Slow(trip time.Duration) string {
	if trip == 0 {
		return ""
	}
	return fmt.Sprintf(", a round trip of %v", trip)
}

const smallSize = 4 << 10

// slowParts are which parts of the near job are done over slow links: of the large
// file, and of the small ones, for each of which some contenders wait a few times.
var slowParts = map[time.Duration]struct{ big, small int }{
	Trips[0]: {10, 10},
	Trips[1]: {10, 40},
}

// files is work (g). Trees that have arrived stay until all is done: for minutes, ext4
// passes over the inodes of files that were removed, one by one, whenever it makes
// another one; a removed tree of 2,000 made that ten times as slow.
func files(ctx context.Context, b *Bench) []Table {
	dir, remove, err := b.scratch("files")
	if err != nil {
		return []Table{{Title: PutBig, Note: err.Error()}}
	}
	defer remove()
	big, small, count := filepath.Join(dir, "big"), filepath.Join(dir, "small"), b.pick(2000, 50)
	if err := errors.Join(fill(big, b.Bytes), fillTree(small, count)); err != nil {
		return []Table{{Title: PutBig, Note: err.Error()}}
	}
	tables := b.copyAll(ctx, b.Lab.Near, 0, dir, big, b.Bytes, small, count)
	trips := Trips
	if b.Quick {
		trips = trips[:1]
	}
	defer b.Lab.SetTrip(0)
	for _, trip := range trips {
		bytes, few := b.Bytes/int64(slowParts[trip].big), count/slowParts[trip].small
		big, small := filepath.Join(dir, "big"+trip.String()), filepath.Join(dir, "small"+trip.String())
		if err := errors.Join(fill(big, bytes), fillTree(small, few)); err != nil {
			return append(tables, Table{Title: PutBig + Slow(trip), Note: err.Error()})
		}
		b.Lab.SetTrip(trip)
		tables = append(tables, b.copyAll(ctx, b.Lab.Far, trip, dir, big, bytes, small, few)...)
	}
	return tables
}

func (b *Bench) copyAll(ctx context.Context, site *lab.Site, trip time.Duration, dir, big string, bytes int64, small string, count int) []Table {
	perMB, perFile, suffix := float64(bytes)/1e6, float64(count), Slow(trip)
	return []Table{
		b.copying(ctx, site, PutBig+suffix, "MB/s", perMB, dir, peer.Copy{From: big, Up: true}),
		b.copying(ctx, site, GetBig+suffix, "MB/s", perMB, dir, peer.Copy{From: big}),
		b.copying(ctx, site, PutSmall+suffix, "files/s", perFile, dir, peer.Copy{From: small, Up: true, Tree: true}),
		b.copying(ctx, site, GetSmall+suffix, "files/s", perFile, dir, peer.Copy{From: small, Tree: true}),
	}
}

// copying measures one job; the far host is this machine, so that the source and
// what came can be compared here.
func (b *Bench) copying(ctx context.Context, site *lab.Site, title, unit string, amount float64, dir string, job peer.Copy) Table {
	b.Log("  %s", title)
	able, missing := b.able(func(p peer.Peer) bool { return p.Copy != nil })
	plan := rounds.Plan{Rounds: b.pick(5, 1), Block: 1, Budget: b.span(20*time.Second, 2*time.Second), Limit: 5 * time.Minute}
	series := make([]rounds.Series, len(able))
	spent := make([]time.Duration, len(able))
	dir, err := os.MkdirTemp(dir, "to")
	if err != nil {
		return Table{Title: title, Note: err.Error()}
	}
	for round := range plan.Rounds {
		for i, p := range able {
			series[i].Name = p.Name
			if series[i].Err != nil || spent[i] > plan.Budget {
				continue
			}
			job.To = filepath.Join(dir, fmt.Sprintf("%d-%d", i, round))
			syscall.Sync() // nobody is to wait for what another one has left to the disk
			within, cancel := context.WithTimeout(ctx, plan.Limit)
			begun := time.Now()
			err := p.Copy(within, site, job)
			took := time.Since(begun)
			cancel()
			if err == nil {
				err = same(job)
			}
			if !job.Tree { // see files
				os.RemoveAll(job.To)
			}
			spent[i] += took
			if series[i].Err = err; err == nil {
				series[i].Values = append(series[i].Values, amount/took.Seconds())
			}
		}
	}
	return Table{Title: title, Unit: unit, More: true, Note: "whole calls, with a connection of their own", Rows: append(rows(series, 1), missing...)}
}

// same says what did not arrive: names and sizes; what a byte was is the business of
// tests.
func same(job peer.Copy) error {
	want, err := listed(job.From)
	if err != nil {
		return err
	}
	got, err := listed(job.To)
	if err == nil && !slices.Equal(got, want) {
		err = fmt.Errorf("%d files arrived, not those %d, or not whole", len(got), len(want))
	}
	return err
}

func listed(root string) (files []string, err error) {
	err = filepath.Walk(root, func(path string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() {
			files = append(files, fmt.Sprintf("%s %d", strings.TrimPrefix(path, root), info.Size()))
		}
		return err
	})
	return files, err
}

func fill(path string, size int64) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.CopyN(f, pattern{}, size)
	return errors.Join(err, f.Close())
}

// pattern is a source of bytes that are not all the same.
type pattern struct{}

func (pattern) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(i*7 + i>>8)
	}
	return len(b), nil
}

// fillTree makes files in directories of a hundred.
func fillTree(dir string, count int) error {
	for i := range count {
		path := filepath.Join(dir, fmt.Sprintf("d%02d", i/100), fmt.Sprintf("f%02d", i%100))
		if i%100 == 0 {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return err
			}
		}
		if err := fill(path, smallSize); err != nil {
			return err
		}
	}
	return nil
}
