package codec

import (
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/compare"
	"github.com/quotabench/quotabench/results"
)

// Record is one of the files that run, sim and explore leave. One of its fields is
// set.
type Record struct {
	// File is the record of runs, measured or simulated.
	File *results.File
	// Series are how simulated runs developed.
	Series []results.Series
	// Exploration is what was found by searches of schedules.
	Exploration *results.Exploration
}

// ReadRecord loads a record of any kind. Everything that is not of this version's
// form is an error of one line that names the path.
func ReadRecord(path string) (Record, error) {
	return read(path, DecodeRecord)
}

// DecodeRecord is [ReadRecord] for bytes at hand. What is of no kind that is known is left to the decoder of results.
func DecodeRecord(b []byte) (Record, error) {
	return shapedAs(b, func(d document) (r Record, err error) {
		switch {
		case d.top["kind"] == "exploration":
			r.Exploration, err = pointerTo(decodeExploration(d))
		case d.top["series"] != nil:
			r.Series, err = decodeSeries(d)
		default:
			r.File, err = pointerTo(decodeFile(d))
		}
		return r, err
	})
}

// pointerTo leads to a record that was decoded; it is nil after an error.
func pointerTo[T any](record T, err error) (*T, error) {
	if err != nil {
		return nil, err
	}
	return &record, nil
}

// ComparisonJSON renders a comparison as indented JSON that ends in a newline.
func ComparisonJSON(c *compare.Comparison) ([]byte, error) {
	b, err := indented(c)
	return b, format.Wrapf(err, "encode the comparison")
}
