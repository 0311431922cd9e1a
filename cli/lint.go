package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/internal/lint"
	"github.com/quotabench/quotabench/internal/present/text/layout"
	"github.com/quotabench/quotabench/internal/session"
	"github.com/quotabench/quotabench/internal/settings"
	"github.com/quotabench/quotabench/internal/settings/group"
	"github.com/quotabench/quotabench/strategies"
)

func lintCommand() *cobra.Command {
	var asJSON, strict bool
	cmd := described("lint", &cobra.Command{
		Args:              needs(1, 0, "lint needs a strategy: give names, or all"),
		ValidArgsFunction: group.CompleteStrategies,
		RunE: func(cmd *cobra.Command, args []string) error {
			all, err := session.Before(cmd.Context(), func() ([]lint.Report, error) { return linted(cmd.Context(), args) })
			if err != nil {
				return err
			}
			return showLinted(cmd, all, asJSON, strict)
		},
	})
	settings.New(cmd, []settings.Setting{
		{Name: "strict", Title: settings.Gates, Value: settings.Bool(&strict)},
		jsonFlag(&asJSON, "write JSON"),
	})
	return cmd
}

func linted(ctx context.Context, args []string) (out []lint.Report, err error) {
	selected, err := strategies.Parse(strings.Join(args, ","))
	if err != nil {
		return nil, usagef("%w", err)
	}
	for _, sel := range selected {
		r, err := lint.Run(ctx, sel)
		if err != nil {
			return nil, fail(ExitFailed, err)
		}
		if out = append(out, r); r.Skipped != "" && len(selected) == 1 {
			return nil, usagef("%s: %s", sel, r.Skipped)
		}
	}
	return out, nil
}

func showLinted(cmd *cobra.Command, all []lint.Report, asJSON, strict bool) error {
	err := show(cmd, asJSON, all, lintedLines)
	if err == nil && strict && slices.ContainsFunc(all, func(r lint.Report) bool { return len(r.Findings) > 0 }) {
		err = fail(ExitGate, errors.New("there are findings, and --strict allows none"))
	}
	return err
}

func lintedLines(page layout.Page, all []lint.Report) []string {
	g := layout.Grid{Columns: []layout.Column{
		{Title: "strategy", Left: true, Flexible: true, Minimum: 12}, {Title: "commands per decision"}, {Title: "round trips"},
		{Title: "most of one"}, {Title: "keys of a command"}, {Title: "findings"},
	}}
	var lines []string
	for _, r := range all {
		if r.Skipped != "" {
			lines = append(lines, page.Paragraph(r.Strategy+" ", "was left out: "+r.Skipped)...)
			continue
		}
		n := float64(r.Decisions)
		g.Add(r.Strategy, fmt.Sprintf("%.2f", float64(r.Commands)/n), fmt.Sprintf("%.2f", float64(r.RoundTrips)/n),
			fmt.Sprintf("%d in %d", r.MostCommands, r.MostRoundTrips), format.Count(int64(r.MostKeys)), format.Count(int64(len(r.Findings))))
		for _, f := range r.Findings {
			lines = append(lines, page.Paragraph(r.Strategy+": ", f.Code+": "+f.Text+" ["+f.Policy+"]")...)
			lines = append(lines, page.Paragraph("    ", f.Command)...)
		}
	}
	return append(page.Table(&g), lines...)
}
