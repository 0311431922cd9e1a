package explore

import (
	"bufio"
	"fmt"
	"strings"
)

// writeHappenings says in how many schedules something happened on a server.
func writeHappenings(out *bufio.Writer, s *OnServer) {
	if s.Store == "" {
		return
	}
	parts := []string{fmt.Sprintf("schedules in which a client waits for another's lock: %d", s.Waited)}
	for _, h := range s.Happenings {
		parts = append(parts, fmt.Sprintf("with a %s: %d", strings.ReplaceAll(string(h.Kind), "-", " "), h.Schedules))
	}
	writeText(out, strings.Join(parts, "; "))
}

// writeHappened shows the shortest schedule for each.
func writeHappened(out *bufio.Writer, list []Happening) error {
	for _, h := range list {
		f := h.Shortest
		fmt.Fprintf(out, "\n%s in %s, which breaks no property: %s\n", strings.ToUpper(string(h.Kind)), count(len(f.Steps), "step"), f.Detail)
		if err := WriteTimeline(out, f); err != nil {
			return err
		}
		writeReplayHint(out, f)
	}
	return nil
}
