package main

import (
	"os"
	"sync"
	"sync/atomic"

	"github.com/mattn/go-runewidth"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"gateway/transfer"
)

const (
	// barFrom is from which size on a file has a bar of its own.
	barFrom = 4 << 20
	// barHosts is how many hosts have bars of their own; more share one.
	barHosts = 8
	// barName is how wide the names are, and minBarName where there is less room than
	// barFigures take beside them.
	barName, minBarName = 28, 10
	barFigures          = 52
)

// bars show a person how far a copy is. On nil all methods do nothing but say.
type bars struct {
	copying  *copying
	progress *mpb.Progress
	name     int // how wide the names are
	undraw   func()

	mu    sync.Mutex
	hosts map[int]*hostBars // guarded by mu
}

// hostBars are those of one host, or of all.
type hostBars struct {
	bars         *bars
	bar          *mpb.Bar
	place        int // where its bars stand: from here on
	found, moved atomic.Int64

	mu    sync.Mutex
	files map[string]*fileBar // guarded by mu
	begun int                 // guarded by mu: how many files have had a bar
}

type fileBar struct {
	bar   *mpb.Bar
	moved atomic.Int64
}

// newBars shows bars where a person can see them.
func (a *app) newBars(c *copying) *bars {
	if c.flags.dryRun || !a.watched() {
		return nil
	}
	cols := a.console.size().Cols
	b := &bars{
		copying: c, hosts: make(map[int]*hostBars),
		progress: mpb.New(mpb.WithOutput(os.Stderr), mpb.WithWidth(cols), mpb.WithRefreshRate(redraw)),
		name:     min(max(cols-barFigures, minBarName), barName),
	}
	a.out.drawn.Store(true)
	b.undraw = again(b.draw)
	return b
}

// newBar shows a bar below those of a lesser place. Behind the end, which a copy that
// is given up does not wait for, there are none.
func (b *bars) newBar(name string, size int64, place int) (*mpb.Bar, error) {
	name = runewidth.FillRight(runewidth.Truncate(visible(name), b.name, "…"), b.name)
	name = "\r" + name // mpb goes up, but stays in the column behind a ^C that the terminal shows
	return b.progress.Add(
		size, mpb.BarStyle().Build(), mpb.BarRemoveOnComplete(), mpb.BarPriority(place),
		mpb.PrependDecorators(decor.Name(name)),
		mpb.AppendDecorators(
			decor.Counters(decor.SizeB1024(0), "% .1f / % .1f ", decor.WCSyncSpace),
			decor.AverageSpeed(decor.SizeB1024(0), "% .1f ", decor.WCSyncSpace),
			decor.AverageETA(decor.ET_STYLE_MMSS, decor.WCSyncSpace),
		),
	)
}

// draw passes on what the watchers have counted: to tell the bars each time
// would take longer than a small file.
func (b *bars) draw() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, h := range b.hosts {
		moved := h.moved.Load()
		h.bar.SetTotal(max(h.found.Load(), moved+1), false) // what is complete is taken away
		h.bar.SetCurrent(moved)
		h.mu.Lock()
		for _, f := range h.files {
			f.bar.SetCurrent(f.moved.Load())
		}
		h.mu.Unlock()
	}
}

// watcher returns the bars of a host, which it shows if they are not there yet.
func (b *bars) watcher(host int) transfer.Watcher {
	if b == nil {
		return nil
	}
	name := b.copying.names[host]
	if len(b.copying.names) > barHosts {
		host, name = 0, "all hosts"
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if h := b.hosts[host]; h != nil {
		return h
	}
	place := host << 28 // of eight hosts, which fits in an int of 32 bits
	bar, err := b.newBar(name, 0, place)
	if err != nil {
		return nil
	}
	h := &hostBars{bars: b, bar: bar, place: place, files: make(map[string]*fileBar)}
	b.hosts[host] = h
	return h
}

// Found implements [transfer.Watcher].
func (h *hostBars) Found(bytes int64) { h.found.Add(bytes) }

// Begin implements [transfer.Watcher].
func (h *hostBars) Begin(path string, size, had int64) {
	h.moved.Add(had)
	if size < barFrom || len(h.bars.copying.names) > barHosts {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	bar, err := h.bars.newBar("  "+path, size+1, h.place+h.begun+1)
	if err != nil {
		return
	}
	h.begun++
	f := &fileBar{bar: bar}
	f.moved.Store(had)
	h.files[path] = f
}

// Moved implements [transfer.Watcher].
func (h *hostBars) Moved(path string, bytes int) {
	h.moved.Add(int64(bytes))
	if bytes < 4096 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if f := h.files[path]; f != nil {
		f.moved.Add(int64(bytes))
	}
}

// End implements [transfer.Watcher].
func (h *hostBars) End(e transfer.Event) {
	h.mu.Lock()
	f := h.files[e.Path]
	delete(h.files, e.Path)
	h.mu.Unlock()
	if f != nil {
		f.bar.Abort(true)
	}
	if e.Done == transfer.Unchanged {
		h.moved.Add(e.Size)
	}
}

func (b *bars) done(host int) {
	if b == nil || len(b.copying.names) > barHosts {
		return
	}
	b.mu.Lock()
	h := b.hosts[host]
	delete(b.hosts, host)
	b.mu.Unlock()
	if h != nil {
		h.drop()
	}
}

// drop takes the bars of a host away.
func (h *hostBars) drop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.files {
		f.bar.Abort(true)
	}
	h.bar.Abort(true)
}

// above says something above the bars.
func (b *bars) above(out *output, text string) {
	if b == nil {
		out.say(text)
		return
	}
	if _, err := b.progress.Write([]byte(eraseLine + text + "\n")); err != nil {
		out.say(text) // they are gone
	}
}

// end takes the bars away for good.
func (b *bars) end() {
	if b == nil {
		return
	}
	b.undraw()
	b.mu.Lock()
	for _, h := range b.hosts {
		h.drop()
	}
	b.mu.Unlock()
	b.progress.Wait()
	out := b.copying.app.out
	_, _ = out.stderr.WriteString(eraseLine) // the place of last resort
	out.drawn.Store(false)
}
