package peer

import (
	"context"
	"os/exec"
	"strings"

	"gateway/bench/lab"
)

// diskAlone is what a file system takes for a job without any network.
var diskAlone = Peer{
	Name: "cp on this machine", Floor: true, How: "`cp -r from to`, then `sync -f`: the disk's share, without a network", Version: says("cp", "--version"),
	Missing: needs("cp", "sync"),
	Copy: func(ctx context.Context, s *lab.Site, job Copy) error {
		_, err := output(ctx, s.Command("sh", "-c", `cp -r "$1" "$2" && sync -f "$2"`, "sh", job.From, job.To))
		return err
	},
}

// copiers only copy files.
var copiers = []Peer{
	diskAlone,
	copier("scp", "`scp -r`", func(s *lab.Site, job Copy) *exec.Cmd {
		from, to := ends(s, job)
		return s.Command("scp", "-q", "-r", "-F", s.Path("ssh_config"), from, to)
	}),
	sftp("sftp", "`sftp -b`, `put -r` or `get -r`", ""),
	sftp("sftp -f", "the same with `-f`: as with gateway, each file is on the disk at its end", "f"),
	copier("rsync", "`rsync -r`, over ssh", func(s *lab.Site, job Copy) *exec.Cmd {
		if job.Tree { // the contents, into the target
			job.From += "/"
		}
		from, to := ends(s, job)
		return s.Command("rsync", "-r", "-e", "ssh -F "+s.Path("ssh_config"), from, to)
	}),
	copier("tar over ssh", "`tar c | ssh host tar x`", func(s *lab.Site, job Copy) *exec.Cmd {
		script := `mkdir -p "$2" && ssh -F "$3" "$4" "tar -C '$1' -cf - ." | tar -C "$2" -xf -`
		if job.Up {
			script = `tar -C "$1" -cf - . | ssh -F "$3" "$4" "mkdir -p '$2' && tar -C '$2' -xf -"`
		}
		if !job.Tree {
			script = `ssh -F "$3" "$4" "cat '$1'" >"$2"`
			if job.Up {
				script = `ssh -F "$3" "$4" "cat >'$2'" <"$1"`
			}
		}
		return s.Command("sh", "-c", script, "sh", job.From, job.To, s.Path("ssh_config"), s.First().Name)
	}),
}

// sftp is OpenSSH's, with one more flag.
func sftp(name, how, flag string) Peer {
	return copier(name, how, func(s *lab.Site, job Copy) *exec.Cmd {
		verb := "get"
		if job.Up {
			verb = "put"
		}
		// Of a directory, sftp -r wants the target to be there, or its parent's name.
		script := verb + " -r " + job.From + " " + job.To
		return s.Command("sh", "-c", `printf '%s\n' "$1" | sftp "$2" -b - -F "$3" "$4"`, "sh", script, "-q"+flag, s.Path("ssh_config"), s.First().Name)
	})
}

func copier(name, how string, command func(*lab.Site, Copy) *exec.Cmd) Peer {
	program, _, _ := strings.Cut(name, " ")
	version := says("ssh", "-V")
	if program == "rsync" || program == "tar" {
		version = says(program, "--version")
	}
	return Peer{
		Name: name, How: how, Version: version, Missing: needs(program, "ssh"),
		Copy: func(ctx context.Context, s *lab.Site, job Copy) error {
			_, err := output(ctx, command(s, job))
			return err
		},
	}
}

// ends are the two arguments of a program that copies.
func ends(s *lab.Site, job Copy) (from, to string) {
	if job.Up {
		return job.From, s.First().Name + ":" + job.To
	}
	return s.First().Name + ":" + job.From, job.To
}

// CopyName is gateway's own way.
const CopyName = "gateway cp"

var ourCopy = Peer{
	Name: CopyName, Ours: true, How: "`gateway cp -r from to`, a connection of its own", Version: program,
	Copy: func(ctx context.Context, s *lab.Site, job Copy) error {
		args := []string{"cp", "-q"}
		if job.Tree {
			args = append(args, "-r")
		}
		from, to := ends(s, job)
		_, err := output(ctx, run(s, append(args, from, to)...))
		return err
	},
}
