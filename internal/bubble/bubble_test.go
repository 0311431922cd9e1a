package bubble_test

import (
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/bubble"
)

func TestRun(t *testing.T) {
	var passed time.Duration
	left := bubble.Run(func() {
		began := time.Now() //nolint:forbidigo // the clock of the bubble
		time.Sleep(1_000 * time.Hour)
		passed = time.Since(began) //nolint:forbidigo // likewise
	})
	if passed != 1_000*time.Hour || left != 0 {
		t.Errorf("%v passed, %d goroutines left", passed, left)
	}
	left = bubble.Run(func() {
		go func() {
			for {
				time.Sleep(time.Second)
			}
		}()
		go func() { select {} }()
	})
	if left != 2 {
		t.Errorf("%d goroutines left, want 2", left)
	}
	defer func() {
		if v := recover(); v != "planted" {
			t.Errorf("panics with %v", v)
		}
	}()
	bubble.Run(func() { panic("planted") })
}
