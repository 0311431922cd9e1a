package searches

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/app/session"
	"github.com/quotabench/quotabench/internal/app/settings/group"
	"github.com/quotabench/quotabench/internal/app/terminal"
	"github.com/quotabench/quotabench/internal/kit/exit"
	_ "github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// TestUnrepeated: a service whose schedules do not repeat is clean by no search with a stopped clock, and wrong by one
// that finds something.
func TestUnrepeated(t *testing.T) {
	err := fmt.Errorf("%w: by its clock", explore.ErrNotDeterministic)
	for clock, want := range map[string]bool{"": true, "2026-01-01 00:00:00": false} {
		a := asking{cfg: explore.Config{Process: explore.Process{Service: "app", ServiceClock: clock}}}
		if got := a.repeatsStopped(err); got != want {
			t.Errorf("with the clock %q: %t", clock, got)
		}
	}
	sel := strategies.Selection{Meta: &strategies.Meta{Name: "http"}}
	for _, violated := range []string{"", "http: leak"} {
		x := exploration{moving: err, violated: violated, record: results.NewExploration()}
		x.unrepeated(sel)
		clean := violated == ""
		if len(x.record.Failed) > 0 != clean || len(x.record.Skipped) > 0 == clean || (x.invalid != "") != clean {
			t.Errorf("with the violation %q: failed %v, skipped %v, invalid %q", violated, x.record.Failed, x.record.Skipped,
				x.invalid)
		}
	}
}

// TestInterruptedBeforeASearch: a command that was interrupted before a search had begun writes nothing, and the
// directory is free for the next one.
func TestInterruptedBeforeASearch(t *testing.T) {
	options := &Options{Settings: group.New(group.Explore)}
	dir := filepath.Join(t.TempDir(), "out")
	made, err := session.MakeDir(options.Settings, dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	x := exploration{Options: options, ctx: ctx, out: made, progress: terminal.NewProgress(io.Discard),
		stderr: io.Discard, record: results.NewExploration()}
	ended := x.end(nil)
	var code *exit.Error
	if !errors.As(ended, &code) || code.Code != exit.Interrupted || !strings.Contains(ended.Error(), "nothing was written") {
		t.Errorf("it ended with %v", ended)
	}
	if _, err := os.Lstat(dir); !os.IsNotExist(err) {
		t.Errorf("the directory is left: %v", err)
	}
}
