package codec

import (
	"fmt"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/results"
)

// ExplorationJSON renders what was explored as it is stored: indented JSON that
// ends in a newline, the same bytes for the same record.
func ExplorationJSON(exploration *results.Exploration) ([]byte, error) {
	data, err := indented(exploration)
	return data, format.Wrapf(err, "encode the exploration")
}

// ReadExploration loads a record that [ExplorationJSON] rendered. Everything that is
// not of this version's form is an error of one line that begins with the path.
func ReadExploration(path string) (results.Exploration, error) {
	return read(path, func(data []byte) (results.Exploration, error) { return shapedAs(data, decodeExploration) })
}

func decodeExploration(d document) (exploration results.Exploration, err error) {
	if err := d.decode(&exploration, codes.ExplorationVersion, "explore again", compiled.exploration); err != nil {
		return results.Exploration{}, err
	}
	for _, finding := range allFindings(&exploration) {
		if err := checkColumns(finding); err != nil {
			return results.Exploration{}, fmt.Errorf("%s, %s: %w", shortened(format.Plain(finding.Strategy)),
				shortened(format.Plain(string(finding.Property))), err)
		}
	}
	return exploration, nil
}

// allFindings are the schedules of an exploration, drawn or not.
func allFindings(exploration *results.Exploration) (out []*results.Finding) {
	add := func(facts *results.ServerFacts) {
		for _, abort := range facts.Aborts {
			out = append(out, abort.Shortest)
		}
	}
	for _, search := range exploration.Searches {
		for i := range search.Findings {
			out = append(out, &search.Findings[i])
		}
		add(&search.ServerFacts)
	}
	for _, census := range exploration.Censuses {
		if census.Shortest != nil {
			out = append(out, census.Shortest)
		}
		add(&census.ServerFacts)
	}
	for _, replay := range exploration.Replays {
		out = append(out, replay.Finding)
	}
	return out
}

// checkColumns refuses steps of actors that are not listed.
func checkColumns(finding *results.Finding) error {
	for i := range finding.Steps {
		if c := finding.Steps[i].Column; c < -1 || c >= len(finding.Columns) {
			return fmt.Errorf("step %d is in column %d of %d", i+1, c, len(finding.Columns))
		}
	}
	return nil
}
