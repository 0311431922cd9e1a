package group

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/coordinate"
	"github.com/quotabench/quotabench/internal/generators"
	"github.com/quotabench/quotabench/internal/settings"
	"github.com/quotabench/quotabench/workloads"
)

// generation is how processes that share a load on the same subjects find each other.
type generation struct {
	Generators  int
	Generator   string
	Coordinator string
}

// MostGenerators is how many processes share a load at most.
const MostGenerators = 1000

// Generated says how many processes share one load, and who tells them when to begin.
func (s *Settings) Generated() []settings.Setting {
	return []settings.Setting{
		{Name: "generators", Title: settings.Load, Value: settings.Whole(&s.Generators, 0, MostGenerators), FlagOnly: true, Computed: true},
		{Name: "generator", Title: settings.Load, Value: settings.Named(&s.Generator, "a part and how many there are, e.g. 2/4"),
			FlagOnly: true, Computed: true, Complete: settings.Words("1/2", "2/2")},
		{Name: "coordinator", Title: settings.Load, Value: settings.Text(&s.Coordinator), FlagOnly: true, Computed: true, Secret: true,
			PasswordFrom: coordinate.Variable,
			Doc: "with --generator, begin and end with the others of the coordinator at this `URL`, or as " + coordinate.Variable +
				" says"},
	}
}

// CoordinatorURL is where the coordinator of this generator is; empty for none.
func (s *Settings) CoordinatorURL() string {
	return cmp.Or(s.Coordinator, os.Getenv(coordinate.Variable))
}

// shares reports whether the load is shared on the same subjects.
func (s *Settings) shares() bool { return s.Generators > 0 || s.Generator != "" }

// share makes the plan that of one generator, if there are several. Who starts them plans as the first.
func (s *Settings) share(p *harness.Plan) (err error) {
	part, kept := workloads.Shard{Part: 1, Of: s.Generators}, filepath.Join(s.Out, generators.HistoryDir)
	switch {
	case !s.shares():
		return nil
	case s.Shard != "":
		return s.Wrong("shard", errors.New("a generator shares the subjects of all: leave this out"))
	case s.History != "" && s.History != kept:
		return s.Wrong("history", errors.New("a generator keeps its histories in --out: leave this out"))
	case s.Against != "":
		return s.Wrong("against", errors.New("it measures from one process: leave it out with generators"))
	case s.Generators > 0 && s.Generator != "":
		return s.Wrong("generators", errors.New("these are started here, and --generator is one that others start: give one of the two"))
	case s.Generators == 0 && s.CoordinatorURL() == "":
		return s.Wrong("generator", errors.New("it begins with the others: give the URL of their coordinator by --coordinator"))
	case s.Generators == 0:
		if part, err = workloads.ParseShard(s.Generator); err != nil {
			return s.Wrong("generator", err)
		}
		s.History = kept
	}
	if s.Loop == "" && s.Rate == 0 {
		s.Loop = workloads.Closed
	} else if s.Loop == "" {
		s.Loop = workloads.Open
	}
	part.Shared = true
	p.Shard, p.Archive = part, s.History
	return nil
}
