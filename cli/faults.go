package cli

import (
	"cmp"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/internal/app/faults"
	"github.com/quotabench/quotabench/internal/app/settings"
	"github.com/quotabench/quotabench/internal/app/settings/group"
	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/internal/report/claims"
	"github.com/quotabench/quotabench/internal/report/html"
	tables "github.com/quotabench/quotabench/internal/report/text"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/strategies"
)

// faultsSettings are all that a matrix can be told.
type faultsSettings struct {
	pass
	names []string
	list  string
}

func faultsCommand() *cobra.Command {
	s := &faultsSettings{pass: pass{Settings: group.New(group.Faults), name: "faults", html: html.WriteFaults,
		text:     tables.Faults,
		markdown: tables.ClaimsMarkdown,
		gates:    [...]string{"declaration is refuted or undecided", "declarations are refuted or undecided"}}}
	s.files = s.plan
	cmd := described("faults", &cobra.Command{RunE: s.run, ValidArgsFunction: group.CompleteStrategies})
	s.Register(cmd, []settings.Setting{
		{Name: "fault", Value: settings.List(&s.names), Complete: cobra.NoFileCompletions},
		{Name: "parallel", Value: settings.Whole(&s.parallel, 0, bounds.MaxParallel)},
		{Name: "list", Value: settings.Text(&s.list)},
	}, s.lengths(), s.Formats(), s.Output())
	return cmd
}

// plan has a cell for each strategy and fault: those that are named, those of the earlier report, or all faults, and
// all strategies with a Redis or PostgreSQL.
func (s *faultsSettings) plan(named []string, earlier *claims.Report) ([]*claims.File, error) {
	s.parallel = cmp.Or(s.parallel, 2*runtime.GOMAXPROCS(0))
	list, err := faults.Builtin()
	if s.list != "" {
		var data []byte
		data, err = settings.ReadBounded(s.list)
		if err == nil {
			list, err = faults.Parse(s.list, data)
		}
	}
	if err != nil {
		return nil, err
	}
	names := named
	tried := group.Items(s.names)
	if earlier != nil && len(tried) == 0 { // the list may have got others since
		for _, cells := range earlier.ByFault() {
			tried = append(tried, cells[0].Record)
		}
	}
	if err := list.Keep(tried); err != nil {
		return nil, s.Wrong("fault", err)
	}
	if earlier != nil {
		names = nil
		for _, cells := range earlier.ByStrategy() {
			names = append(names, cells[0].ID)
		}
		if i := slices.IndexFunc(named, func(n string) bool { return !slices.Contains(names, n) }); i >= 0 {
			return nil, quota.Unknown("strategy", named[i], names, " of the report")
		}
	}
	chosen, err := strategies.Parse(cmp.Or(strings.Join(names, ","), "all"))
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		chosen = slices.DeleteFunc(chosen, func(selection strategies.Selection) bool { return !ofRealStores(selection) })
	}
	files, err := list.Files(chosen)
	if err != nil || earlier == nil {
		return files, err
	}
	return claims.Select(files, nil, named, nil)
}

// ofRealStores reports whether a strategy needs Redis or PostgreSQL, and nothing else.
func ofRealStores(selection strategies.Selection) bool {
	return len(selection.Needs) > 0 && !slices.ContainsFunc(selection.Needs, func(n strategies.Need) bool {
		kind, _, _ := strings.Cut(n.Store(), ".")
		return stores.ClassOf(kind) == stores.ClassOther
	})
}
