//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/quotabench/quotabench/internal/atomicfile"
)

// record is what one sweep over everything measured.
type record struct {
	System     string  `json:"system"`
	Processors int     `json:"processors"`
	Go         string  `json:"go"`
	Others     float64 `json:"others"` // share of the processors that other programs took
	Points     []point `json:"points"`
}

// point is one process: what it was asked for, what it did, and what it took.
type point struct {
	Sweep       string  `json:"sweep"`
	Line        string  `json:"line"` // the strategy
	X           float64 `json:"x"`    // subjects, days, clients, takes in a script, or states
	Command     string  `json:"command"`
	Decisions   int64   `json:"decisions,omitempty"`
	States      int64   `json:"states,omitempty"`
	Schedules   int64   `json:"schedules,omitempty"`
	Capped      bool    `json:"capped,omitempty"` // a bound ended the search
	WallSeconds float64 `json:"wall_s"`
	CPUSeconds  float64 `json:"cpu_s"` // user and system
	PeakBytes   int64   `json:"peak_bytes"`
}

func readRecord(path string) (*record, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := new(record)
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

func (r *record) write(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(path, append(text, '\n'))
}

// of are the points of a sweep's line in their order; an empty line is every one.
func (r *record) of(sweep, line string) (out []point) {
	for _, p := range r.Points {
		if p.Sweep == sweep && (line == "" || p.Line == line) {
			out = append(out, p)
		}
	}
	return out
}

// lines are the names of a sweep's lines, in the order of the record.
func (r *record) lines(sweep string) (names []string) {
	seen := map[string]bool{}
	for _, p := range r.of(sweep, "") {
		if !seen[p.Line] {
			seen[p.Line] = true
			names = append(names, p.Line)
		}
	}
	return names
}

// crowd is a number of subjects: a simulation that hardly more than sets them up, and
// one that decides.
type crowd struct{ idle, busy point }

// crowds pairs the points of a line of the sweep by subjects.
func (r *record) crowds(line string) (out []crowd, err error) {
	points := r.of(bySubjects, line)
	for i := 0; i+1 < len(points); i += 2 {
		c := crowd{points[i], points[i+1]}
		if c.idle.X != c.busy.X || c.idle.Decisions >= c.busy.Decisions || c.idle.CPUSeconds >= c.busy.CPUSeconds {
			return nil, fmt.Errorf("%s with %g subjects: the simulation of %d decisions does not take longer than that of %d: make growth again", line, c.busy.X, c.busy.Decisions, c.idle.Decisions)
		}
		out = append(out, c)
	}
	return out, nil
}

// perSecond is how many decisions a second of processor time brings, the start and what
// sets subjects up left out.
func (c crowd) perSecond() float64 {
	return float64(c.busy.Decisions-c.idle.Decisions) / (c.busy.CPUSeconds - c.idle.CPUSeconds)
}

// slope is by how much y grows with x between two points: 1 is in proportion.
func slope(x1, y1, x2, y2 float64) float64 { return math.Log(y2/y1) / math.Log(x2/x1) }

// perUnit is what one more x costs between two points.
func perUnit(x1, y1, x2, y2 float64) float64 { return (y2 - y1) / (x2 - x1) }
