package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"gateway/internal/config"
	"gateway/internal/regular"
)

func (a *app) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show the settings and where they come from",
		Example: `  gateway config show
  gateway config path`,
		Args: cobra.ArbitraryArgs,
		RunE: unknownCommand,
	}
	cmd.AddCommand(
		&cobra.Command{
			Use:   "show",
			Short: "Show the settings in force, and who set them",
			Example: `  gateway config show
  GATEWAY_OUTPUT=json gateway config show`,
			Args: exactly(),
			RunE: func(*cobra.Command, []string) error { return a.configShow() },
		},
		&cobra.Command{
			Use:     "path",
			Short:   "Show which files are read, the stronger one first",
			Example: `  gateway config path`,
			Args:    exactly(),
			RunE:    func(*cobra.Command, []string) error { return a.configPath() },
		},
	)
	return cmd
}

func (a *app) configShow() error {
	if err := a.load(); err != nil {
		return err
	}
	settings, ignored := a.config.Settings(), a.config.Ignored()
	if a.out.format != "text" {
		return a.out.json(struct {
			Settings []config.Setting `json:"settings"`
			Ignored  []string         `json:"ignored_variables"`
			CI       bool             `json:"ci"`
		}{settings, append([]string{}, ignored...), a.config.CI})
	}
	var rows [][]string
	for _, s := range settings {
		rows = append(rows, []string{s.Key, cell(s.Value), s.Origin})
	}
	if a.config.CI {
		rows = append(rows, []string{"(CI)", "true", "no prompts, no colour, strict host keys"})
	}
	if err := a.out.table(slices.Insert(rows, 0, []string{"KEY", "VALUE", "FROM"})); err != nil || len(ignored) == 0 {
		return err
	}
	return a.out.printf("\nignored variables: %s\n", strings.Join(ignored, ", "))
}

// configPath works with broken files too: it is how one finds them.
func (a *app) configPath() error {
	type path struct {
		Path   string `json:"path"`
		Origin string `json:"origin"`
		Exists bool   `json:"exists"`
	}
	loaded := a.tryLoad()
	var paths []path
	var rows [][]string
	for _, file := range a.source.Files() {
		exists, state := file.Exists(), "not there"
		paths = append(paths, path{file.Path, file.Origin, exists})
		if exists {
			state = "unreadable"
			if f, err := regular.Open(file.Path); err == nil {
				state = "read"
				f.Close()
			}
		}
		rows = append(rows, []string{file.Path, file.Origin, state})
	}
	if loaded != nil {
		a.warn(loaded.Error())
	}
	return listOrTable(a.out, paths, rows)
}
