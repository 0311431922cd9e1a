package monitor

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quotabench/quotabench/internal/contain/guard"
)

// TestOnlyCallsAreGivenUp: of two callers that go on for too long, the one that is in a call of the strategy is given
// up.
func TestOnlyCallsAreGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := []string{"", "a decision"} // of which the first is none
		crew := []*Caller{{}, {}}
		ended := make([]bool, len(calls))
		goOn := make(chan struct{})
		var callers sync.WaitGroup
		for i, c := range crew {
			c.Init(t.Context(), func() string { return calls[i] })
			defer c.Close()
			callers.Go(func() {
				c.Start()
				c.Beat()
				<-goOn
				ended[i] = c.Ended()
			})
		}
		var gaveUp []string
		end := WatchCalls(t.Context(), time.Second, crew, func(caller int, err *guard.HungError) {
			gaveUp = append(gaveUp, fmt.Sprint(caller, ": ", err.Where))
		})
		time.Sleep(time.Minute)
		end()
		close(goOn)
		callers.Wait()
		if !slices.Equal(gaveUp, []string{"1: a decision"}) || !ended[0] || ended[1] {
			t.Errorf("given up: %v; ended by themselves: %v", gaveUp, ended)
		}
	})
}
