package codec

import (
	"fmt"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/results"
)

// ExplorationJSON renders what was explored as it is stored: indented JSON that
// ends in a newline, the same bytes for the same record.
func ExplorationJSON(x *results.Exploration) ([]byte, error) {
	b, err := indented(x)
	return b, format.Wrapf(err, "encode the exploration")
}

// ReadExploration loads a record that [ExplorationJSON] rendered. Everything that is
// not of this version's form is an error of one line that begins with the path.
func ReadExploration(path string) (results.Exploration, error) {
	return read(path, DecodeExploration)
}

// DecodeExploration is [ReadExploration] for bytes at hand.
func DecodeExploration(b []byte) (results.Exploration, error) { return shapedAs(b, decodeExploration) }

func decodeExploration(d document) (x results.Exploration, err error) {
	if err := d.decode(&x, results.ExplorationSchema, "explore again", compiled.exploration); err != nil {
		return results.Exploration{}, err
	}
	for _, f := range allFindings(&x) {
		if err := checkColumns(f); err != nil {
			return results.Exploration{}, fmt.Errorf("%s, %s: %w", shortened(format.Plain(f.Strategy)),
				shortened(format.Plain(string(f.Property))), err)
		}
	}
	return x, nil
}

// allFindings are the schedules of an exploration, drawn or not.
func allFindings(x *results.Exploration) (out []*results.Finding) {
	add := func(f *results.ServerFacts) {
		for _, a := range f.Aborts {
			out = append(out, a.Shortest)
		}
	}
	for _, s := range x.Searches {
		for i := range s.Findings {
			out = append(out, &s.Findings[i])
		}
		add(&s.ServerFacts)
	}
	for _, c := range x.Censuses {
		if c.Shortest != nil {
			out = append(out, c.Shortest)
		}
		add(&c.ServerFacts)
	}
	for _, r := range x.Replays {
		out = append(out, r.Finding)
	}
	return out
}

// checkColumns refuses steps of actors that are not listed.
func checkColumns(f *results.Finding) error {
	for i := range f.Steps {
		if c := f.Steps[i].Column; c < -1 || c >= len(f.Columns) {
			return fmt.Errorf("step %d is in column %d of %d", i+1, c, len(f.Columns))
		}
	}
	return nil
}
