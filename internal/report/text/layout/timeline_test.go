package layout

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/results"
)

// madeFinding is one with that many clients, a job, and a step of each kind.
func madeFinding(clients int) *results.Finding {
	f := &results.Finding{Strategy: "planted", Property: "leak",
		Columns: []results.Column{{Name: "0:sync", Role: codes.RoleJob}}}
	add := func(s results.Step) {
		s.Number = len(f.Steps) + 1
		s.Limit = 1
		f.Steps = append(f.Steps, s)
	}
	for i := range clients {
		name := string(rune('A' + i))
		f.Columns = append(f.Columns, results.Column{Name: name, Role: codes.RoleClient})
		add(results.Step{Actor: name, Role: codes.RoleClient, Column: i + 1, Event: codes.EventCommand, Kind: "redis",
			Command: "EVALSHA 1234abcd 1 quota:tenant-uploads:subject:used:of:a:long:key 17", Reply: "1", InUse: int64(i)})
		add(results.Step{Actor: name, Role: codes.RoleClient, Column: i + 1, Event: codes.EventLostReply,
			Reply: "no reply", Outcome: "error: i/o timeout"})
	}
	add(results.Step{Actor: "clock", Role: codes.RoleClock, Column: -1, Event: codes.EventTick,
		Command: "5m later: a key expires"})
	add(results.Step{Actor: "0:sync", Role: codes.RoleJob, Column: 0, Event: codes.EventCommand, Kind: "sql",
		Command: "SELECT sum(n) FROM t WHERE s = 's';", Reply: "3"})
	return f
}

// What a step is decides how it is written, and not how its words happen to look.
func TestStepText(t *testing.T) {
	for _, c := range []struct {
		step results.Step
		want string
	}{
		{results.Step{Event: codes.EventCommand, Kind: "sql", Command: "SELECT n FROM t;", Reply: "3"},
			"SELECT n FROM t; 3"},
		{results.Step{Event: codes.EventCommand, Kind: "redis", Command: "GET k;", Reply: "3"}, "GET k; = 3"},
		{results.Step{Event: codes.EventLostReply, Reply: "no reply"}, "!! lost reply no reply"},
		{results.Step{Event: codes.EventOutage, Command: "GET k", Reply: "error", Outcome: "admitted"},
			"!! store unreachable GET k = error -> admitted"},
	} {
		if got := strings.ReplaceAll(stepText(&c.step), glue, " "); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func TestTimelinesFitTheScreen(t *testing.T) {
	for _, clients := range []int{1, 2, 3, 9} {
		f := madeFinding(clients)
		name := fmt.Sprint(clients)
		for _, line := range (Page{}).Timeline(f) {
			if n := TextWidth(line); n > Width {
				t.Errorf("%s: %d characters: %s", name, n, line)
			}
			if strings.Contains(line, glue) || strings.HasSuffix(line, " ") {
				t.Errorf("%s: %q", name, line)
			}
		}
	}
}

func TestShareRoom(t *testing.T) {
	for _, c := range []struct {
		wanted []int
		room   int
		want   []int
	}{
		{[]int{5, 5}, 20, []int{5, 5}},
		{[]int{50, 5}, 20, []int{15, 5}},
		{[]int{50, 5, 50}, 25, []int{10, 5, 10}},
		{[]int{9}, 4, []int{4}},
	} {
		got := shareRoom(c.wanted, c.room)
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%v in %d: %v, want %v", c.wanted, c.room, got, c.want)
				break
			}
		}
	}
}
