package codec

import (
	"bytes"
	"encoding/json"

	"github.com/quotabench/quotabench/internal/compare"
	"github.com/quotabench/quotabench/internal/format"
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

// DecodeRecord is [ReadRecord] for bytes at hand.
func DecodeRecord(b []byte) (r Record, err error) {
	switch kindOf(b) {
	case "exploration":
		r.Exploration, err = pointerTo(DecodeExploration(b))
	case "series":
		r.Series, err = DecodeSeries(b)
	default:
		r.File, err = pointerTo(Decode(b))
	}
	return r, err
}

// pointerTo leads to a record that was decoded; it is nil after an error.
func pointerTo[T any](record T, err error) (*T, error) {
	if err != nil {
		return nil, err
	}
	return &record, nil
}

// kindOf looks for the first name of the outermost object that tells what a record
// is. What cannot be told is left to the decoder of results.
func kindOf(b []byte) string {
	d := json.NewDecoder(bytes.NewReader(b))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return ""
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return ""
		}
		switch name {
		case "kind":
			kind, _ := d.Token() // what cannot be read is no kind
			text, _ := kind.(string)
			return text
		case "series":
			return "series"
		case "searches", "censuses", "replays":
			return "exploration"
		case "schema": // which all have
			if t, err := d.Token(); err != nil || t == json.Delim('{') || t == json.Delim('[') {
				return ""
			}
		default:
			return ""
		}
	}
	return ""
}

// ChoiceJSON renders a choice. It fits [schema.Choice].
func ChoiceJSON(c *results.Choice) ([]byte, error) {
	b, err := indented(c)
	if err == nil {
		err = checkAgainst(compiled.choice, b)
	}
	if err != nil {
		return nil, err
	}
	return b, nil
}

// ComparisonJSON renders a comparison as indented JSON that ends in a newline.
func ComparisonJSON(c *compare.Comparison) ([]byte, error) {
	b, err := indented(c)
	return b, format.Wrapf(err, "encode the comparison")
}
