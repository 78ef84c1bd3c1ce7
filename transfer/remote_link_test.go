package transfer

import (
	"os"
	"testing"

	"github.com/pkg/sftp"
)

// strict is a server's file system that takes the names of a symlink as the draft has them.
type strict struct{ sftp.FileCmder }

func (s strict) Filecmd(r *sftp.Request) error {
	if r.Method == "Symlink" {
		r.Filepath, r.Target = r.Target, r.Filepath
	}
	return s.FileCmder.Filecmd(r)
}

// TestSymlinkOrder: a symlink is made where it belongs, whatever order a server takes its
// two names in, and nothing is left beside it.
func TestSymlinkOrder(t *testing.T) {
	for name, command := range map[string]func(sftp.FileCmder) sftp.FileCmder{
		"OpenSSH's":   func(c sftp.FileCmder) sftp.FileCmder { return c },
		"the draft's": func(c sftp.FileCmder) sftp.FileCmder { return strict{c} },
	} {
		t.Run(name, func(t *testing.T) {
			memory := sftp.InMemHandler()
			memory.FileCmd = command(memory.FileCmd)
			r := over(t, memory)
			from := t.TempDir()
			for link, target := range map[string]string{"a": "/nowhere", "b": "/f"} {
				must(t, os.Symlink(target, from+"/"+link))
			}
			c := Copy{From: &Local{}, To: r, Paths: []string{from + "/."}, Into: "/", Recursive: true}
			if report := c.Run(t.Context()); report.Links != 2 || !report.OK() {
				t.Fatalf("%+v", report)
			}
			found, err := r.link.ReadDir("/")
			if err != nil || len(found) != 2 {
				t.Errorf("there is %v, %v, want a and b", found, err)
			}
			for link, target := range map[string]string{"/a": "/nowhere", "/b": "/f"} {
				if got, err := r.Readlink(t.Context(), link); got != target || err != nil {
					t.Errorf("%s leads to %q, %v, want %q", link, got, err, target)
				}
			}
		})
	}
}
