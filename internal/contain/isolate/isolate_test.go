package isolate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/contain/isolate"
	_ "github.com/quotabench/quotabench/internal/kit/testenv"
)

// task is what the child of these tests is for.
type task struct{ How string }

func TestMain(m *testing.M) {
	isolate.Handle("isolated-test", func(ctx context.Context, t *task, tell func(any) error) (int, error) {
		trail, err := isolate.OpenTrail()
		if err != nil {
			return 0, err
		}
		for _, text := range []string{"begins to work", "works"} {
			if err := trail.Set([]byte(text)); err != nil {
				return 0, err
			}
		}
		if err := tell(1); err != nil {
			return 0, err
		}
		switch t.How {
		case "panics":
			go planted()
			select {}
		case "fails":
			return 0, errors.New("it fails")
		case "log":
			fmt.Fprintln(os.Stderr, "panic: no, only a line of a log")
			os.Exit(1)
		case "ours":
			go func() { panic("synctest: what a bubble says") }()
			select {}
		case "waits":
			<-ctx.Done()
		}
		return 2, nil
	})
	isolate.Serve()
	os.Exit(m.Run())
}

// counts is never made.
var counts map[string]int

func planted() { counts["x"]++ }

func TestChild(t *testing.T) {
	for how, want := range map[string]struct {
		died   bool
		text   string
		answer int
	}{
		"goes on": {answer: 2},
		"panics":  {true, "assignment to entry in nil map in isolate_test.planted (isolate_test.go:", 0},
		"fails":   {false, "it fails", 0},
		"log":     {false, "only a line of a log", 0},
		"ours":    {false, "synctest: what a bubble says", 0},
	} {
		news := 0
		answer, err := isolate.Run[int, int](t.Context(), t.TempDir(), "isolated-test", task{how}, func(n int) { news = n })
		var died *isolate.Death
		if errors.As(err, &died) != want.died || news != 1 || answer != want.answer {
			t.Errorf("%s: %v and %d after %d", how, err, answer, news)
			continue
		}
		if want.text == "" && err != nil || want.text != "" && (err == nil || !strings.Contains(err.Error(), want.text)) {
			t.Errorf("%s: %v", how, err)
		}
		if died != nil && (!strings.HasPrefix(died.Stack, "goroutine ") || !strings.Contains(died.Stack, "planted") ||
			died.Trail() != "works") {
			t.Errorf("%s: trail %q, stack %q", how, died.Trail(), died.Stack)
		}
	}
}

// The end of the parent's context reaches the child, whose last word is heard.
func TestChildIsAskedToEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	answer, err := isolate.Run[int, int](ctx, "", "isolated-test", task{"waits"}, func(int) { cancel() })
	if err != nil || answer != 2 {
		t.Errorf("%d, %v", answer, err)
	}
}

// A location arrives in another process as it was, or is refused: that of time.FixedZone
// has a name that may be another's.
func TestZone(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip(err)
	}
	for _, l := range []*time.Location{
		nil, time.UTC, berlin, time.Local, time.FixedZone("", 0), time.FixedZone("", 3600), time.FixedZone("UTC+5:30", 19800),
		time.FixedZone("CET", 3600), time.FixedZone("UTC", -7200), time.FixedZone("Europe/Berlin", 3600),
		time.FixedZone("two words", 1),
	} {
		z, err := isolate.ZoneOf(l)
		if err != nil {
			t.Errorf("%v: %v", l, err)
			continue
		}
		b, err := json.Marshal(z)
		if err != nil {
			t.Fatal(err)
		}
		var there isolate.Zone
		if err := json.Unmarshal(b, &there); err != nil {
			t.Fatal(err)
		}
		got, err := there.Location()
		if err != nil || (got == nil) != (l == nil) {
			t.Errorf("%v arrives as %v, %v", l, got, err)
			continue
		}
		if l == nil {
			continue
		}
		for _, at := range []time.Time{time.Unix(0, 0), time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC),
			time.Date(2026, time.July, 1, 0, 0, 0, 0, time.UTC), time.Date(2199, time.July, 1, 0, 0, 0, 0, time.UTC)} {
			if here, there := at.In(l).Format(time.RFC3339+" MST"), at.In(got).Format(time.RFC3339+" MST"); here != there {
				t.Errorf("%v: %s arrives as %s", l, here, there)
			}
		}
	}
	// The rules of one zone under the name of another.
	data, err := os.ReadFile("/usr/share/zoneinfo/Europe/Berlin")
	if err != nil {
		t.Skip(err)
	}
	for _, name := range []string{"America/New_York", "no such zone"} {
		l, err := time.LoadLocationFromTZData(name, data)
		if err != nil {
			t.Fatal(err)
		}
		if z, err := isolate.ZoneOf(l); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %+v, %v", name, z, err)
		}
	}
}
