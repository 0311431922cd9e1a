package prove

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
)

// mostBefore is how many lines are shown of what came before the request that is wrong.
const mostBefore = 6

// moment is the earliest request of a history at which something is wrong.
type moment struct {
	wrong  oracle.Event
	before []oracle.Event // of the same subject, the latest last
}

// firstWrong is the earliest moment in the kept history of a run, and of requests up to which a verdict is wrong; nil
// if no subject by itself shows one.
func firstWrong(directory string, run *results.Run, wrong func(*oracle.Verdict) bool) (first *moment, epoch time.Time,
	err error) {
	file, err := oracle.OpenHistory(filepath.Join(directory, run.HistoryName()))
	if err != nil {
		return nil, epoch, err
	}
	defer func() { _ = file.Close() }() // it was only read
	config := file.Header.Config()
	for events, err := range file.Subjects() {
		if err != nil {
			return nil, epoch, err
		}
		found := wrongOf(config, events, wrong)
		if found != nil && (first == nil || found.wrong.Call < first.wrong.Call) {
			first = found
		}
	}
	return first, file.Header.Epoch, nil
}

// wrongOf is the first moment of one subject.
func wrongOf(config oracle.Config, events []oracle.Event, wrong func(*oracle.Verdict) bool) *moment {
	events = slices.Clone(events)
	slices.SortStableFunc(events, func(a, b oracle.Event) int { return cmp.Compare(a.Call, b.Call) })
	n := sort.Search(len(events)+1, func(n int) bool {
		verdict := oracle.Judge(config, slices.Clone(events[:n]))
		return wrong(&verdict)
	})
	if n > len(events) || n == 0 {
		return nil
	}
	return &moment{wrong: events[n-1], before: events[:n-1]}
}

// text says what happened, to whom and after what. Requests in a row that came to the same are one line.
func (m *moment) text(epoch time.Time, policy *quota.Policy) string {
	var out strings.Builder
	at := epoch.Add(time.Duration(m.wrong.Call)).UTC()
	fmt.Fprintf(&out, "The first is of subject %d at %s, after:\n", m.wrong.Subject, at.Format("2006-01-02 15:04:05.000"))
	var lines []string
	for i := 0; i < len(m.before); {
		same := eventText(&m.before[i], policy)
		next := i + 1
		for next < len(m.before) && eventText(&m.before[next], policy) == same {
			next++
		}
		line := fmt.Sprintf("%12s  %s", m.ago(&m.before[i]), same)
		if next > i+1 {
			line += fmt.Sprintf(", and so on: %d times, the last at %s", next-i, m.ago(&m.before[next-1]))
		}
		lines = append(lines, line)
		i = next
	}
	for _, line := range lines[max(0, len(lines)-mostBefore):] {
		fmt.Fprintf(&out, "  %s\n", line)
	}
	fmt.Fprintf(&out, "  %12s  %s\n", "0s", eventText(&m.wrong, policy))
	return out.String()
}

// ago is when an event happened, before the one that is wrong.
func (m *moment) ago(event *oracle.Event) time.Duration {
	return time.Duration(event.Call - m.wrong.Call).Round(time.Millisecond)
}

// eventText is what one request or settlement came to.
func eventText(event *oracle.Event, policy *quota.Policy) string {
	units := format.Units(event.Units, policy.Unit)
	switch {
	case event.Kind == oracle.Refund:
		return "gives back " + units
	case event.Kind == oracle.Commit:
		return "settles, " + units + " less than it took"
	case event.Kind != oracle.Take:
		return "lets " + units + " lapse"
	}
	outcomes := map[oracle.Outcome]string{
		oracle.Admitted: "admitted", oracle.Rejected: "rejected", oracle.RejectedDegraded: "rejected without its store",
		oracle.Failed: "gets an error", oracle.Short: "is not granted", oracle.Elsewhere: "rejected for another quota",
	}
	return fmt.Sprintf("asks for %s: %s", units, outcomes[event.Outcome])
}
