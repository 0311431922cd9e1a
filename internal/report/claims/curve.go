package claims

import (
	"cmp"
	"math"

	"github.com/quotabench/quotabench/internal/report/figures"
	"github.com/quotabench/quotabench/results"
)

// Curve is a figure at each value of a parameter.
type Curve struct {
	// Parameter is what the sweep varies, and Shown the figure.
	Parameter string       `json:"parameter"`
	Shown     string       `json:"shown"`
	Unit      figures.Unit `json:"unit,omitempty"`
	// Limit is that of the first comparison of the claim's condition; absent if it varies.
	Limit *float64 `json:"limit,omitempty"`
	// Simulated is set if no real time was measured.
	Simulated bool    `json:"simulated,omitempty"`
	Points    []Point `json:"points"`
}

// Point is what is known of the figure at one value: it lies between Lo and Hi.
type Point struct {
	At    string  `json:"at"`
	Value float64 `json:"value"`
	Lo    float64 `json:"lo"`
	Hi    float64 `json:"hi"`
}

// draw keeps the curve of a claim. Values without the figure are left out.
func (j *Judgement) draw(claim *Claim, records map[string]*Record) error {
	sweep := records[claim.sweep]
	if claim.curve == nil || sweep == nil || sweep.File == nil || sweep.File.Sweep == nil {
		return nil
	}
	swept := sweep.File.Sweep.Parameters[0]
	curve := &Curve{Parameter: swept.Name, Simulated: sweep.File.Kind == results.Simulated, Points: []Point{}}
	for _, value := range swept.Values {
		at := claim.evaluation(records).At(claim.sweep, value)
		number, ok, err := at.Value(claim.curve)
		if err == nil {
			_, err = at.Truth(claim.holds)
		}
		if err != nil {
			return err
		}
		curve.Shown = cmp.Or(claim.Named, at.Words(claim.curve))
		if _, limit := at.Compared(); limit != nil && limit.Lo == limit.Hi {
			curve.Limit = &limit.Value
		}
		if ok {
			curve.Unit = number.Unit
			curve.Points = append(curve.Points, Point{value, number.Value, finite(number.Lo, number.Value),
				finite(number.Hi, number.Value)})
		}
	}
	j.Curve = curve
	return nil
}

func finite(x, otherwise float64) float64 {
	if math.IsInf(x, 0) {
		return otherwise
	}
	return x
}
