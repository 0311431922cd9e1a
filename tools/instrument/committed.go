//go:build unix

package main

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/files"
)

// standing is what a row came to: the median of its pairs, the least and the most.
type standing struct{ median, least, most float64 }

// entry is a line of the committed file.
type entry struct {
	standing
	against string // the commit that it is a ratio to, or limit
}

// limit stands in the committed file for a figure that was divided by something in the
// same run, and not by what an earlier commit did.
const limit = "limit"

// ledger is the committed file: one line for each row, by what is measured and its unit.
type ledger map[[2]string]entry

// ledgerTitle is the first line of the committed file.
var ledgerTitle = []string{"what", "unit", "against", "median", "least", "most"}

// readLedger reads the committed file. If there is none, nothing is committed.
func readLedger(path string) (ledger, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return ledger{}, nil
	}
	if err != nil {
		return nil, err
	}
	reader := csv.NewReader(bufio.NewReader(bytes.NewReader(text)))
	reader.Comma = '\t'
	lines, err := reader.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(lines) == 0 || !slices.Equal(lines[0], ledgerTitle) {
		return nil, fmt.Errorf("%s: its first line has to be %q", path, strings.Join(ledgerTitle, " "))
	}
	l := ledger{}
	for _, line := range lines[1:] {
		e := entry{against: line[2]}
		for i, to := range []*float64{&e.median, &e.least, &e.most} {
			*to, err = strconv.ParseFloat(line[3+i], 64)
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", path, line[0], err)
			}
		}
		key := [2]string{line[0], line[1]}
		if _, twice := l[key]; twice {
			return nil, fmt.Errorf("%s: %s, %s is there twice", path, line[0], line[1])
		}
		l[key] = e
	}
	return l, nil
}

// write replaces the committed file.
func (l ledger) write(path string) error {
	var buffer bytes.Buffer
	writer := csv.NewWriter(&buffer)
	writer.Comma = '\t'
	if err := writer.Write(ledgerTitle); err != nil {
		return err
	}
	keys := slices.SortedFunc(maps.Keys(l), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	for _, key := range keys {
		entry := l[key]
		line := []string{key[0], key[1], entry.against}
		for _, value := range []float64{entry.median, entry.least, entry.most} {
			line = append(line, strconv.FormatFloat(value, 'g', 4, 64))
		}
		if err := writer.Write(line); err != nil {
			return err
		}
	}
	writer.Flush()
	if err := writer.Error(); err != nil {
		return err
	}
	return files.Write(path, buffer.Bytes())
}

// add commits the rows that have a figure.
func (l ledger) add(rows []row, base string) {
	for _, row := range rows {
		if standing, against := row.standing(base); standing != nil && against != "" {
			l[row.key()] = entry{*standing, against}
		}
	}
}

// tolerance is by how much the median of a row may be worse than the committed one.
const tolerance = 0.10

// worse reports whether a row fell behind what is committed: its median by the
// tolerance or more, and each of its pairs at all. A row that lost its figure did, too.
// The reason is empty if it did not.
func (l ledger) worse(r row, base string) (reason string) {
	entry, ok := l[r.key()]
	standing, against := r.standing(base)
	switch {
	case !ok || against != entry.against:
		return ""
	case standing == nil:
		return fmt.Sprintf("no figure, and %s is committed", digits(entry.median))
	}
	by := standing.median/entry.median - 1
	apart := standing.least > entry.median // by is infinite if 0 is committed
	if r.more {
		by = 1 - standing.median/entry.median
		apart = standing.most < entry.median
	}
	switch {
	case !apart || by < tolerance-1e-9:
		return ""
	case entry.median == 0:
		return digits(standing.median) + ", and 0 is committed"
	}
	return fmt.Sprintf("%.0f %% worse than committed", 100*by)
}

// key names the row in the committed file.
func (r row) key() [2]string { return [2]string{r.what, r.unit} }

// standing is what the row is committed as, and against what: a commit, a limit in the
// same run, or nothing if the figure is a time.
func (r row) standing(base string) (s *standing, against string) {
	values := r.ratios()
	switch {
	case r.seconds > 0:
		return nil, ""
	case r.limit:
		values = slices.Sorted(slices.Values(r.right))
		against = limit
	case r.group == beforeAndNow:
		against = base
	case r.group == theirsAndOurs:
		against = limit
	default: // placements are compared, and no aim
		return nil, ""
	}
	if len(values) == 0 {
		return nil, against
	}
	return &standing{median(values), values[0], values[len(values)-1]}, against
}

// met says whether the row is where it is wanted; ok is false if nothing is wanted
// or nothing was measured.
func (r row) met() (met, ok bool) {
	var value float64
	switch standing, _ := r.standing(""); {
	case r.wanted == 0:
		return false, false
	case r.seconds > 0 && len(r.right) > 0:
		value = median(r.right)
	case standing == nil:
		return false, false
	default:
		value = standing.median
	}
	if r.more {
		return value >= r.wanted, true
	}
	return value <= r.wanted, true
}
