package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by the linker for a release.
var version = ""

// versionInfo is what the version command says.
type versionInfo struct {
	Version  string `json:"version"`
	Revision string `json:"revision"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func newVersionInfo() versionInfo {
	v := versionInfo{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if v.Version == "" {
		v.Version = build.Main.Version
	}
	modified := ""
	for _, s := range build.Settings {
		switch {
		case s.Key == "vcs.revision":
			v.Revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = "+changes"
		}
	}
	if v.Revision != "" {
		v.Revision += modified
	}
	return v
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Say which gateway this is",
		Example: `  gateway version
  gateway version -o json`,
		Args: exactly(),
		RunE: func(*cobra.Command, []string) error {
			_ = a.tryLoad() // broken settings are no reason not to say it
			v := newVersionInfo()
			if a.out.format != "text" {
				return a.out.json(v)
			}
			rows := [][]string{{"gateway", v.Version}, {"revision", v.Revision}, {"go", v.Go}, {"platform", v.Platform}}
			return a.out.table(rows)
		},
	}
}
