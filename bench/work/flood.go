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
	commands := []struct{ title, text string }{
		{FloodBytes, fmt.Sprintf("head -c %d /dev/zero", b.Bytes)},
		{FloodLines, fmt.Sprintf("yes 'the quick brown fox jumps over the lazy dog, and then some mo' | head -c %d", b.Bytes)},
	}
	memory := Table{Title: FloodMemory, Unit: "MiB", Rows: missing, Note: "the most that was seen, less what it was after the first MiB; a run of its own for each figure"}
	var tables []Table
	for _, c := range commands {
		b.Log("  %s: %d MiB", c.title, b.Bytes>>20)
		tables = append(tables, b.rates(ctx, c.title, c.text, able, missing))
	}
	for _, p := range able {
		b.Log("  memory of %s", p.Name)
		var values []float64
		var failed error
		for _, c := range commands {
			more, err := b.growth(ctx, p, c.text)
			if failed = err; err != nil {
				break
			}
			values = append(values, float64(more)/(1<<20))
		}
		memory.Rows = append(memory.Rows, Row{Peer: p.Name, Summary: rounds.Summarise(values), Err: text(failed)})
	}
	return append(tables, memory)
}

// rates measures how fast a command's output comes.
func (b *Bench) rates(ctx context.Context, title, command string, able []peer.Peer, missing []Row) Table {
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
			var came counter
			return came.all(stream.Run(ctx, command, &came), b.Bytes)
		}})
	}
	series := rounds.Run(ctx, rounds.Plan{Rounds: b.pick(3, 1), Block: 1, Budget: b.span(20*time.Second, 5*time.Second), Limit: 5 * time.Minute}, contenders)
	for i := range series {
		for j, ms := range series[i].Values {
			series[i].Values[j] = float64(b.Bytes) / 1e6 / (ms / 1e3)
		}
	}
	return Table{
		Title: title, Unit: "MB/s", More: true, Floor: peer.ChannelName,
		Rows: append(append(rows(series, 1), unable...), missing...),
	}
}

// A counter takes bytes.
type counter int64

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}

// all makes an error of bytes that did not come.
func (c *counter) all(err error, want int64) error {
	if err == nil && int64(*c) != want {
		err = fmt.Errorf("%d bytes came, want %d", *c, want)
	}
	return err
}

// growth opens a stream and returns by how much the memory of its processes grew
// behind the first MiB of a command's output.
func (b *Bench) growth(ctx context.Context, p peer.Peer, command string) (int64, error) {
	stream, err := p.Stream(ctx, b.Lab.Near)
	if err != nil {
		return 0, err
	}
	defer stream.Close()
	debug.FreeOSMemory() // of what others have left in this process
	m := &meter{pids: stream.Pids}
	err = stream.Run(ctx, command, m)
	if m.peak == nil {
		return 0, fmt.Errorf("only %d bytes came: %w", m.came, err)
	}
	most := m.peak()
	return max(0, most-m.first), m.came.all(err, b.Bytes)
}

// A meter counts bytes, and begins to look at the memory behind the first MiB.
type meter struct {
	pids  func() []int
	came  counter
	first int64
	peak  func() int64
}

func (m *meter) Write(b []byte) (int, error) {
	n, err := m.came.Write(b)
	if m.came >= 1<<20 && m.peak == nil {
		m.first = lab.Memory(m.pids()...)
		m.peak = lab.Peak(m.pids)
	}
	return n, err
}
