package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/atomicfile"
	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/internal/linear"
	"github.com/quotabench/quotabench/internal/present/text/layout"
	"github.com/quotabench/quotabench/internal/session"
	"github.com/quotabench/quotabench/internal/settings"
	"github.com/quotabench/quotabench/internal/settings/group"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/results"
)

func judgeCommand() *cobra.Command {
	var asJSON, linearizable bool
	var given, out string
	within := time.Minute
	cmd := described("judge", &cobra.Command{
		Args: needs(1, 0, "judge needs a file: give histories that run or sim kept with --history"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !linearizable && (out != "" || cmd.Flags().Changed("within")) {
				return usagef("--within and --out are about --linearizable: give that as well")
			}
			var all []judged
			order := func(*oracle.File, *judged) error { return nil }
			if linearizable {
				order = func(f *oracle.File, j *judged) error {
					ctx, cancel := context.WithTimeout(cmd.Context(), within)
					defer cancel()
					return j.searchOrder(ctx, f, out)
				}
			}
			for _, name := range args {
				j, err := session.Before(cmd.Context(), func() (judged, error) { return judgeFile(name, given, order) })
				if err != nil {
					return err
				}
				all = append(all, j)
			}
			err := show(cmd, asJSON, all, judgedLines)
			if err == nil && slices.ContainsFunc(all, func(j judged) bool { return j.Linearizable != nil && j.Linearizable.Safe == linear.Fails }) {
				err = fail(ExitGate, errors.New("a history is not linearizable"))
			}
			return err
		},
	})
	settings.New(cmd, []settings.Setting{
		{Name: "policy", Value: settings.Text(&given), Complete: group.CompletePolicies},
		{Name: "linearizable", Value: settings.Bool(&linearizable), FlagOnly: true},
		{Name: "within", Value: settings.Span(&within, 24*time.Hour)},
		{Name: "out", Short: "o", Value: settings.Text(&out)},
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
	Linearizable *linear.Verdict      `json:"linearizable,omitempty"`
}

func judgeFile(name, policy string, order func(*oracle.File, *judged) error) (judged, error) {
	f, err := oracle.OpenHistory(name)
	if err != nil {
		if _, ok := errors.AsType[*fs.PathError](err); ok {
			err = format.Unreadable(name, err)
		}
		return judged{}, fail(ExitUsage, err)
	}
	defer func() { _ = f.Close() }() // it was only read
	if policy != "" {
		p, err := group.LookupPolicy(policy)
		if err != nil {
			return judged{}, usagef("--policy: %w", err)
		}
		f.Header.Policy = p
	}
	run, err := harness.JudgeFile(f)
	if err != nil {
		return judged{}, fail(ExitUsage, fmt.Errorf("%s: %w", name, err))
	}
	p := &run.Params
	j := judged{
		File: name, Strategy: p.Label, Limit: p.Limit, Unit: p.Unit, Window: p.Window,
		Issued: run.Issued, Admitted: run.Admitted, Rejected: run.Rejected, Errors: run.Errors,
		Leak: run.Leak, FalseRejects: run.FalseRejects,
	}
	return j, order(f, &j)
}

// searchOrder asks porcupine, and writes its drawing of a history that has no order to the directory, or next to the history.
func (j *judged) searchOrder(ctx context.Context, f *oracle.File, dir string) error {
	v, err := linear.Check(ctx, f)
	if j.Linearizable = &v; err != nil || v.Page == nil {
		return err
	}
	v.File = strings.TrimSuffix(j.File, ".history") + ".linearizable.html"
	if dir != "" {
		v.File = filepath.Join(dir, filepath.Base(v.File))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fail(ExitFailed, err)
		}
	}
	return fail(ExitFailed, atomicfile.Write(v.File, v.Page))
}

// linearText is a line for people.
func linearText(v *linear.Verdict) string {
	parts := format.Number(v.Parts, "subject-window")
	by := fmt.Sprintf("(%s: %s)", v.By, parts)
	drawing := fmt.Sprintf("%s of %s have no order; the first is drawn in %s", format.Count(v.Failed), parts, v.File)
	if v.File == "" {
		drawing = "found by " + v.By + ", without a drawing"
	}
	switch {
	case v.Safe == linear.Fails:
		return "not linearizable, even if requests may be rejected although there is room: " + drawing
	case v.Safe == linear.Undecided:
		return "linearizable: undecided, " + v.Why
	case v.Exact == linear.Fails:
		return "linearizable only if requests may be rejected although there is room: " + drawing
	case v.Exact == linear.Undecided:
		return "linearizable if requests may be rejected although there is room " + by + "; otherwise undecided, " + v.Why
	}
	return "linearizable; requests are rejected only if there is no room " + by
}

func judgedLines(page layout.Page, all []judged) []string {
	g := layout.Grid{Columns: []layout.Column{
		{Title: "strategy", Left: true, Flexible: true, Minimum: 12}, {Title: "limit", Left: true}, {Title: "requests"}, {Title: "admitted"},
		{Title: "leaked units"}, {Title: "worst window"}, {Title: "leaked trials"}, {Title: "false rejects"},
	}}
	for _, j := range all {
		g.Add(j.Strategy, format.Units(j.Limit, j.Unit)+", "+j.Window, format.Count(j.Issued), format.Count(j.Admitted),
			format.Range(j.Leak.Units, j.Leak.Possible), format.Count(j.Leak.WorstUnits),
			fmt.Sprintf("%s of %s", format.Count(j.Leak.LeakedTrials), format.Count(j.Leak.Trials)),
			falseRejects(&j.FalseRejects))
	}
	lines := page.Table(&g)
	for _, j := range all {
		if j.Linearizable != nil {
			lines = append(lines, page.Paragraph(j.File+": ", linearText(j.Linearizable))...)
		}
	}
	return lines
}

// falseRejects are those that are certain, and those that are possible unless one
// order of the requests explains all others.
func falseRejects(f *results.FalseRejects) string {
	if f.Explained {
		return format.Count(f.Count)
	}
	return format.Range(f.Count, f.Possible)
}
