package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/kit/files"
	"github.com/quotabench/quotabench/internal/report/claims"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/codec"
	"github.com/quotabench/quotabench/results/render"
)

// keep copies from a pass over the built-in claims, or from a matrix of faults, what its verdicts follow from: records, compressed and without what happened within a round,
// and the series that a claim reads.
func keep(from, to, name string) error {
	report, err := os.ReadFile(filepath.Join(from, name+".json"))
	if err != nil {
		return err
	}
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	if err := files.Write(filepath.Join(to, name+".json"), report); err != nil {
		return err
	}
	var r claims.Report
	if err := json.Unmarshal(report, &r); err != nil {
		return err
	}
	series, err := seriesIn(&r)
	if err != nil {
		return err
	}
	for dir, read := range series {
		for _, name := range []string{render.ResultsName, render.ExplorationName, render.SeriesName} {
			if name == render.SeriesName && !read {
				continue
			}
			if err := pack(filepath.Join(from, dir, name), filepath.Join(to, dir)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// pack compresses a record into a directory.
func pack(path, dir string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if filepath.Base(path) == render.ResultsName {
		f, err := codec.Decode(b)
		if err != nil {
			return err
		}
		for i := range f.Runs {
			thin(&f.Runs[i])
		}
		b, err = codec.Encode(f)
		if err != nil {
			return err
		}
	}
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return err
	}
	_, err = z.Write(b)
	err = errors.Join(err, z.Close(), os.MkdirAll(dir, 0o755))
	if err != nil {
		return err
	}
	return files.Write(filepath.Join(dir, filepath.Base(path)+".gz"), out.Bytes())
}

// thin leaves out how the machine was busy within a round.
func thin(r *results.Run) {
	if r.Waiting != nil {
		r.Waiting.Slices = []results.WaitingSlice{}
	}
	if r.Paced != nil {
		thin(r.Paced)
	}
}

// seriesIn are the directories of runs whose series a claim reads.
func seriesIn(report *claims.Report) (map[string]bool, error) {
	files, err := claims.Builtin(explore.Properties())
	if err != nil {
		return nil, err
	}
	reads := map[string]bool{}
	for _, f := range files {
		for _, c := range f.Claims {
			if strings.Contains(c.Holds+c.Needs+c.Shows+c.Form, ".series") {
				reads[f.Record+c.ID] = true
			}
		}
	}
	out := map[string]bool{}
	for _, j := range report.Claims {
		for _, dir := range j.Directories {
			out[dir] = out[dir] || reads[j.Record+j.ID]
		}
	}
	return out, nil
}
