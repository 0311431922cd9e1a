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
)

// keep copies from a pass over the built-in claims, or from a matrix of faults, what its verdicts follow from: records,
// compressed and without what happened within a round, and the series that a claim reads.
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
		for _, name := range []string{files.ResultsName, files.ExplorationName, files.SeriesName} {
			if name == files.SeriesName && !read {
				continue
			}
			if err := pack(filepath.Join(from, dir, name), filepath.Join(to, dir)); err != nil &&
				!errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// pack compresses a record into a directory.
func pack(path, dir string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if filepath.Base(path) == files.ResultsName {
		file, err := codec.Decode(data)
		if err != nil {
			return err
		}
		for i := range file.Runs {
			thin(&file.Runs[i])
		}
		data, err = codec.Encode(file)
		if err != nil {
			return err
		}
	}
	var out bytes.Buffer
	writer, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return err
	}
	_, err = writer.Write(data)
	err = errors.Join(err, writer.Close(), os.MkdirAll(dir, 0o755))
	if err != nil {
		return err
	}
	return files.Write(filepath.Join(dir, filepath.Base(path)+".gz"), out.Bytes())
}

// thin leaves out how the machine was busy within a round.
func thin(run *results.Run) {
	if run.Waiting != nil {
		run.Waiting.Slices = []results.WaitingSlice{}
	}
	if run.Paced != nil {
		thin(run.Paced)
	}
}

// seriesIn are the directories of runs whose series a claim reads.
func seriesIn(report *claims.Report) (map[string]bool, error) {
	files, err := claims.Builtin(explore.Properties())
	if err != nil {
		return nil, err
	}
	reads := map[string]bool{}
	for _, file := range files {
		for _, claim := range file.Claims {
			if strings.Contains(claim.Holds+claim.Needs+claim.Shows+claim.Form, ".series") {
				reads[file.Record+claim.ID] = true
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
