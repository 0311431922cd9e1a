package cli

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/app/session"
	"github.com/quotabench/quotabench/internal/app/settings"
	"github.com/quotabench/quotabench/internal/app/settings/group"
	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/document"
	"github.com/quotabench/quotabench/internal/report/text/layout"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/results"
)

func judgeCommand() *cobra.Command {
	var asJSON bool
	var given string
	cmd := described("judge", &cobra.Command{
		Args: needs(1, 0, "judge needs a file: give histories that run or sim kept with --history"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var all []judged
			for _, name := range args {
				j, err := session.Before(cmd.Context(), func() (judged, error) { return judgeFile(name, given) })
				if err != nil {
					return err
				}
				all = append(all, j)
			}
			return show(cmd, asJSON, all, judgedLines)
		},
	})
	settings.New(cmd, []settings.Setting{
		{Name: "policy", Value: settings.Text(&given), Complete: group.CompletePolicies},
		jsonFlag(&asJSON, "write JSON"),
	})
	return cmd
}

// judged is one history's verdict. Leak and false rejects have the fields that
// they have in results.json.
type judged struct {
	File         string               `json:"file"`
	Strategy     string               `json:"strategy"`
	Limit        int64                `json:"limit"`
	Unit         string               `json:"unit"`
	Window       string               `json:"window"`
	Issued       int64                `json:"issued"`
	Admitted     int64                `json:"admitted"`
	Rejected     int64                `json:"rejected"`
	Errors       int64                `json:"errors"`
	Leak         results.Leak         `json:"leak"`
	FalseRejects results.FalseRejects `json:"false_rejects"`
}

func judgeFile(name, policy string) (judged, error) {
	file, err := oracle.OpenHistory(name)
	if err != nil {
		if _, ok := errors.AsType[*fs.PathError](err); ok {
			err = format.Unreadable(name, err)
		}
		return judged{}, fail(exit.Usage, err)
	}
	defer func() { _ = file.Close() }() // it was only read
	if policy != "" {
		p, err := group.LookupPolicy(policy)
		if err != nil {
			return judged{}, usagef("--policy: %w", err)
		}
		file.Header.Policy = p
	}
	run, err := harness.JudgeFile(file)
	if err != nil {
		return judged{}, fail(exit.Usage, fmt.Errorf("%s: %w", name, err))
	}
	params := &run.Params
	return judged{
		File: name, Strategy: params.Label, Limit: params.Limit, Unit: params.Unit, Window: params.Window,
		Issued: run.Issued, Admitted: run.Admitted, Rejected: run.Rejected, Errors: run.Errors,
		Leak: run.Leak, FalseRejects: run.FalseRejects,
	}, nil
}

func judgedLines(page layout.Page, all []judged) []string {
	grid := document.Table{Columns: []document.Column{
		{Title: "strategy", Left: true, Flexible: true, Minimum: 12}, {Title: "limit", Left: true}, {Title: "requests"},
		{Title: "admitted"},
		{Title: "leaked units"}, {Title: "worst window"}, {Title: "leaked trials"}, {Title: "false rejects"},
	}}
	for _, j := range all {
		grid.Add(j.Strategy, format.Units(j.Limit, j.Unit)+", "+j.Window, format.Count(j.Issued), format.Count(j.Admitted),
			format.Range(j.Leak.Units, j.Leak.Possible), format.Count(j.Leak.WorstUnits),
			fmt.Sprintf("%s of %s", format.Count(j.Leak.LeakedTrials), format.Count(j.Leak.Trials)),
			falseRejects(&j.FalseRejects))
	}
	return page.Table(&grid)
}

// falseRejects are those that are certain, and those that are possible unless one
// order of the requests explains all others.
func falseRejects(rejects *results.FalseRejects) string {
	if rejects.Explained {
		return format.Count(rejects.Count)
	}
	return format.Range(rejects.Count, rejects.Possible)
}
