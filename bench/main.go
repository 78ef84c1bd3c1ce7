// Command bench compares gateway with what a user would pick in its place, and
// with the least that can be had. See README.md beside it, and make bench.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"gateway/bench/count"
	"gateway/bench/lab"
	"gateway/bench/peer"
	"gateway/bench/report"
	"gateway/bench/work"
)

// options are the flags.
type options struct {
	works, out, readme, program, modules, peers string
	quick                                       bool
	bytes                                       int64
	check                                       string
	renew                                       bool
	child, commands                             string
}

func main() {
	var o options
	flag.StringVar(&o.works, "works", "", "do only these `works`, as in a,b")
	flag.StringVar(&o.peers, "peers", "", "measure only these `contenders` and the floors: parts of names, as in ssh,ansible")
	flag.StringVar(&o.out, "o", "bench/results", "put the results into this `directory`")
	flag.StringVar(&o.readme, "readme", "", "put the excerpt of a whole run into this `page`, between its marks")
	flag.StringVar(&o.program, "gateway", "bin/gateway", "the `program`")
	flag.StringVar(&o.modules, "modules", "bin/peers", "the `directory` in which npm has installed the MCP servers")
	flag.BoolVar(&o.quick, "quick", false, "small counts, to see that it works")
	flag.Int64Var(&o.bytes, "bytes", 0, "how much output, and how large a file (default 1 GiB, quick 32 MiB)")
	flag.StringVar(&o.check, "check", "", "measure nothing: compare counts with those in this `file`")
	flag.BoolVar(&o.renew, "renew", false, "with -check: write the file")
	flag.StringVar(&o.child, "child", "", "for the program itself")
	flag.StringVar(&o.commands, "commands", "", "for the program itself")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	switch {
	case o.child != "":
		return obey(ctx, o.child)
	case o.commands != "":
		return count.Obey(ctx, o.commands)
	case o.check != "":
		return check(ctx, o)
	}
	if ran, err := lab.Isolate(ctx); ran {
		return err
	}
	begun := time.Now()
	b, err := prepare(o)
	if err != nil {
		return err
	}
	defer b.Lab.Close()
	r := report.Report{Date: begun.UTC().Format("2006-01-02"), Machine: machine(), Link: b.Lab.Link, Quick: o.quick}
	for _, p := range b.Peers {
		c := report.Contender{Name: p.Name, How: p.How, Ours: p.Ours, Missing: p.Why(b.Lab)}
		if c.Missing == "" && p.Version != nil {
			c.Version = p.Version(b.Lab)
		}
		r.Contenders = append(r.Contenders, c)
	}
	for _, w := range work.All {
		if o.works != "" && !slices.Contains(strings.Split(o.works, ","), w.Letter) {
			continue
		}
		result := w.Do(ctx, b)
		if ctx.Err() != nil { // what it ended is no result
			return context.Cause(ctx)
		}
		r.Results = append(r.Results, result)
		r.Took = time.Since(begun).Round(time.Second).String()
		if err := r.Write(o.out); err != nil { // what is there stays, whatever comes
			return err
		}
	}
	if o.readme != "" && !o.quick && o.works == "" {
		if err := r.Insert(o.readme); err != nil {
			return err
		}
	}
	fmt.Println(r.Excerpt())
	for _, v := range report.Judge(r.Results) {
		fmt.Printf("%-62s %-16s %-16s %s\n", v.What, v.Want, v.Got, v.Verdict)
	}
	b.Log("%s, results in %s", r.Took, o.out)
	return nil
}

func prepare(o options) (*work.Bench, error) {
	names := 500
	if o.quick {
		names = 100
	}
	if o.bytes == 0 {
		o.bytes = 1 << 30
		if o.quick {
			o.bytes = 32 << 20
		}
	}
	paths := []string{o.program, "bench/peers", o.modules}
	for i, path := range paths {
		var err error
		if paths[i], err = filepath.Abs(path); err != nil {
			return nil, err
		}
	}
	l, err := lab.Start(lab.Options{Program: paths[0], Drivers: paths[1], Modules: paths[2], Names: names})
	if err != nil {
		return nil, err
	}
	child := l.Near.Path("bench")
	if err := copySelf(child); err != nil {
		l.Close()
		return nil, err
	}
	return &work.Bench{
		Lab: l, Peers: chosen(o.peers), Quick: o.quick, Bytes: o.bytes,
		Self: func(order string) (work.Child, error) { return spawn(child, order) },
		Log: func(format string, args ...any) {
			fmt.Fprintf(os.Stderr, time.Now().UTC().Format("15:04:05 ")+format+"\n", args...)
		},
	}, nil
}

// chosen are the contenders that are asked for, and the floors.
func chosen(parts string) []peer.Peer {
	return slices.DeleteFunc(peer.All(), func(p peer.Peer) bool {
		return !p.Floor && !slices.ContainsFunc(strings.Split(parts, ","), func(part string) bool { return strings.Contains(p.Name, part) })
	})
}

// copySelf makes a copy of this program: of a file that several processes have mapped,
// each would be charged with a share.
func copySelf(path string) error {
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer self.Close()
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o700)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, self)
	return errors.Join(err, file.Close())
}

// spawn starts a copy of this program as a child, which says something and then stays
// until it is closed.
func spawn(program, order string) (work.Child, error) {
	cmd := exec.Command(program, "-child", order)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return work.Child{}, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return work.Child{}, err
	}
	if err := cmd.Start(); err != nil {
		return work.Child{}, err
	}
	end := func() {
		in.Close()
		_ = cmd.Wait() // it has said what it had to say
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		end()
		return work.Child{}, fmt.Errorf("the child said nothing: %w", err)
	}
	return work.Child{Pid: cmd.Process.Pid, Said: strings.TrimSpace(line), Close: end}, nil
}

// obey is what a child does.
func obey(ctx context.Context, order string) error {
	said, end, err := work.Obey(ctx, order)
	if err != nil {
		return err
	}
	fmt.Println(said)
	_, err = io.Copy(io.Discard, os.Stdin)
	end()
	return err
}

// machine describes where it ran.
func machine() string {
	kernel := runtime.GOOS
	if out, err := exec.Command("uname", "-sr").Output(); err == nil {
		kernel = strings.TrimSpace(string(out))
	}
	return fmt.Sprintf("%d cores, %s, %s", runtime.NumCPU(), kernel, runtime.Version())
}
