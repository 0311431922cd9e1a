package bubble_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	_ "github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/virtual/bubble"
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
}

// What ends a bubble before its time is passed on to the caller of Run.
func TestRunEnds(t *testing.T) {
	for want, f := range map[string]func(){
		"planted":              func() { panic("planted") },
		"ended the goroutine":  runtime.Goexit,
		"goroutines in bubble": func() { <-make(chan int) },
	} {
		func() {
			defer func() {
				if v := fmt.Sprint(recover()); !strings.Contains(v, want) {
					t.Errorf("ends with %q, want %q", v, want)
				}
			}()
			bubble.Run(f)
			t.Errorf("%s: returns", want)
		}()
	}
}
