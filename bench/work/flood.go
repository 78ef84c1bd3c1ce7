package work

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"gateway/bench/lab"
	"gateway/bench/peer"
	"gateway/bench/rounds"
)

// The titles that the targets speak of.
const (
	FloodBytes  = "bytes that come home"
	FloodLines  = "lines that come home"
	FloodMemory = "growth of the client's memory meanwhile"
)

// flood is work (d).
func flood(ctx context.Context, b *Bench) []Table {
	able, missing := b.able(func(p peer.Peer) bool { return p.Stream != nil })
	memory := Table{Title: FloodMemory, Unit: "MiB", Rows: missing, Note: "the most that was seen, less what it was after the first MiB"}
	grown := map[string][]float64{}
	var tables []Table
	for _, what := range []struct{ title, command string }{
		{FloodBytes, fmt.Sprintf("head -c %d /dev/zero", b.Bytes)},
		{FloodLines, fmt.Sprintf("yes 'the quick brown fox jumps over the lazy dog, and then some mo' | head -c %d", b.Bytes)},
	} {
		b.Log("  %s: %d MiB", what.title, b.Bytes>>20)
		var contenders []rounds.Contender
		var unable []Row
		for _, p := range able {
			stream, err := p.Stream(ctx, b.Lab.Near)
			if err != nil {
				unable = append(unable, Row{Peer: p.Name, Err: text(err)})
				continue
			}
			defer stream.Close()
			contenders = append(contenders, rounds.Contender{Name: p.Name, Do: func(ctx context.Context) error {
				debug.FreeOSMemory()
				more, err := grow(ctx, stream, what.command, b.Bytes)
				grown[p.Name] = append(grown[p.Name], float64(more)/(1<<20))
				return err
			}})
		}
		series := rounds.Run(ctx, rounds.Plan{Rounds: b.pick(3, 1), Block: 1, Budget: b.span(20*time.Second, 5*time.Second), Limit: 5 * time.Minute}, contenders)
		for i := range series {
			for j, ms := range series[i].Values {
				series[i].Values[j] = float64(b.Bytes) / 1e6 / (ms / 1e3)
			}
		}
		tables = append(tables, Table{
			Title: what.title, Unit: "MB/s", More: true, Floor: peer.ChannelName,
			Rows: append(append(rows(series, 1), unable...), missing...),
		})
	}
	for _, p := range able {
		memory.Rows = append(memory.Rows, Row{Peer: p.Name, Summary: rounds.Summarise(grown[p.Name])})
	}
	return append(tables, memory)
}

// grow runs a command and returns by how much the memory of its stream's
// processes grew behind the first MiB.
func grow(ctx context.Context, stream peer.Stream, command string, want int64) (int64, error) {
	m := &meter{pids: stream.Pids}
	err := stream.Run(ctx, command, m)
	if m.peak == nil {
		return 0, fmt.Errorf("only %d bytes came: %w", m.n, err)
	}
	most := m.peak()
	if err == nil && m.n != want {
		err = fmt.Errorf("%d bytes came, want %d", m.n, want)
	}
	return max(0, most-m.first), err
}

// A meter counts bytes, and begins to look at the memory behind the first MiB.
type meter struct {
	pids  func() []int
	n     int64
	first int64
	peak  func() int64
}

func (m *meter) Write(b []byte) (int, error) {
	if m.n += int64(len(b)); m.n >= 1<<20 && m.peak == nil {
		m.first = lab.Memory(m.pids()...)
		m.peak = lab.Peak(m.pids)
	}
	return len(b), nil
}
