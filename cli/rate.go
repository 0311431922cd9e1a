package cli

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/codec"
)

// rateValue is a rate, or an earlier record whose rate is used again.
type rateValue struct {
	value
	p    *float64
	from *string
}

func (v *rateValue) Set(text string) error {
	err := v.value.Set(text)
	if *v.from = ""; err == nil || filepath.Ext(text) != ".json" {
		return err
	}
	f, err := codec.Read(text)
	if err != nil {
		return err
	}
	rate, err := commonRate(&f)
	if err != nil {
		return fmt.Errorf("%s %w", text, err)
	}
	*v.p, *v.from = rate, "the rate of "+text
	return nil
}

// commonRate is the rate that all open loops of a record had.
func commonRate(f *results.File) (rate float64, err error) {
	for i := range f.Runs {
		r := &f.Runs[i]
		if r.Paced != nil {
			r = r.Paced
		}
		switch x := r.Params.RatePerS; {
		case x == 0:
		case rate != 0 && rate != x:
			return 0, fmt.Errorf("has open loops at %g and at %g requests per second: give one of them", rate, x)
		default:
			rate = x
		}
	}
	if rate == 0 {
		return 0, errors.New("has no open loop with a rate")
	}
	return rate, nil
}
