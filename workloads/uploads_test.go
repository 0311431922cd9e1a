package workloads

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/kit/testenv"
)

func TestUploadsFates(t *testing.T) {
	testenv.Sequential(t)
	const n = 200_000
	for _, c := range []struct{ fail, abandon float64 }{{0.05, 0.02}, {0.5, 0.25}, {0, 0}, {1, 0}, {0, 1}, {0.3, 0.7}} {
		s, _ := build(t, "uploads", Params{Seed: 5, Policy: policy(t, "tenant-uploads"),
			Options: given("fail-share", c.fail, "abandon-share", c.abandon)})
		var fates [FateAbandon + 1]int
		large := 0 // of the failed sessions
		for i := range int64(n) {
			var op Op
			s.At(i, &op)
			fates[op.Fate]++
			settles := op.Fate != FateAbandon
			committed := op.Fate == FateCommit
			if op.Actual != 0 != committed || op.Hold != 0 != committed || op.Settle != 0 && !settles {
				t.Fatalf("operation %d is %+v", i, op)
			}
			if committed && op.Actual != op.Units {
				t.Fatalf("operation %d commits other units than reserved, which was not asked for: %+v", i, op)
			}
			if op.Fate == FateFail && op.Units == 150 {
				large++
			}
		}
		if fates[FateNone] != 0 {
			t.Errorf("%d operations without a fate", fates[FateNone])
		}
		closeTo(t, "failed", float64(fates[FateFail])/n, c.fail, n)
		closeTo(t, "abandoned", float64(fates[FateAbandon])/n, c.abandon, n)
		closeTo(t, "committed", float64(fates[FateCommit])/n, 1-c.fail-c.abandon, n)
		if f := fates[FateFail]; f > 0 { // fate and cost are independent
			closeTo(t, "large ones of the failed", float64(large)/float64(f), 0.5, f)
		}
	}
}

func TestUploadsTimes(t *testing.T) {
	const n = 200_000
	const settle, hold = 3 * time.Millisecond, 40 * time.Microsecond
	s, _ := build(t, "uploads", Params{Seed: 6, Policy: policy(t, "agent-storage"),
		Options: given("settle", settle, "hold", hold, "fail-share", 0.0, "abandon-share", 0.0)})
	var settles, holds, product float64
	beyond := 0
	for i := range int64(n) {
		var op Op
		s.At(i, &op)
		if op.Settle < 0 || op.Hold < 1 {
			t.Fatalf("operation %d is %+v", i, op)
		}
		settles += float64(op.Settle)
		holds += float64(op.Hold)
		product += (float64(op.Settle)/float64(settle) - 1) * (float64(op.Hold)/float64(hold) - 1)
		if op.Settle > 2*settle {
			beyond++
		}
	}
	// The deviation of an exponential time is its mean.
	for what, v := range map[string][2]float64{"settle": {settles / n, float64(settle)},
		"hold": {holds / n, float64(hold)}} {
		if math.Abs(v[0]/v[1]-1) > 5/math.Sqrt(n)+1/v[1] {
			t.Errorf("mean time to %s: %.0f ns, want %.0f", what, v[0], v[1])
		}
	}
	closeTo(t, "beyond twice the mean", float64(beyond)/n, math.Exp(-2), n)
	if r := product / n; math.Abs(r) > 5/math.Sqrt(n) {
		t.Errorf("times to settle and to hold correlate by %v", r)
	}
}

func TestUploadsWithoutTimes(t *testing.T) {
	s, info := build(t, "uploads",
		Params{Policy: policy(t, "tenant-uploads"), Options: given("settle", time.Duration(0), "hold", time.Duration(0))})
	for i := range int64(1_000) {
		var op Op
		s.At(i, &op)
		if op.Settle != 0 || op.Hold != 0 {
			t.Fatalf("operation %d is %+v", i, op)
		}
	}
	if last := info.Notes[len(info.Notes)-1]; last != "sessions settle after 0s on average; nothing is deleted" {
		t.Errorf("note %q", last)
	}
}

func TestMisjudgedCommits(t *testing.T) {
	const n = 100_000
	s, info := build(t, "uploads",
		Params{Seed: 7, Policy: policy(t, "tenant-uploads"), Options: given("misjudged-share", 0.4, "cost", "uniform:1-9")})
	commits := 0
	fewer := 0
	more := 0
	var exact [10]int
	var of [10]int
	for i := range int64(n) {
		var op Op
		s.At(i, &op)
		if op.Fate != FateCommit {
			continue
		}
		if 2*op.Actual < op.Units || 2*op.Actual > 3*op.Units {
			t.Fatalf("operation %d is %+v", i, op)
		}
		commits++
		of[op.Units]++
		switch {
		case op.Actual < op.Units:
			fewer++
		case op.Actual > op.Units:
			more++
		default:
			exact[op.Units]++
		}
	}
	// 9 units may become 5 to 13.
	closeTo(t, "commits of 9 units", float64(exact[9])/float64(of[9]), 0.6+0.4/9, of[9])
	closeTo(t, "commits of 1 unit", float64(exact[1])/float64(of[1]), 1, of[1])
	closeTo(t, "fewer and more", float64(fewer)/float64(fewer+more), 0.5, fewer+more)
	if !strings.Contains(strings.Join(info.Notes, "\n"), "40 % of them other units than reserved") {
		t.Errorf("notes %q", info.Notes)
	}
}

// TestFingerprintCoversFates changes one thing at a time.
func TestFingerprintCoversFates(t *testing.T) {
	seen := map[string]string{}
	base := Params{Seed: 1, Policy: policy(t, "tenant-uploads")}
	for what, change := range map[string]func(*Params){
		"nothing":   func(*Params) {},
		"fail":      func(p *Params) { p.Set("fail-share", 0.07) },
		"abandon":   func(p *Params) { p.Options = given("abandon-share", 0.07, "fail-share", 0) },
		"misjudged": func(p *Params) { p.Set("misjudged-share", 0.1) },
		"settle":    func(p *Params) { p.Set("settle", "3ns") },
		"hold":      func(p *Params) { p.Set("hold", "3ns") },
		"lost":      func(p *Params) { p.Options = given("fail-share", 1, "abandon-share", 0, "settle", "0s") },
		"gone":      func(p *Params) { p.Options = given("fail-share", 0, "abandon-share", 1, "settle", "0s") },
		"fill":      func(p *Params) { p.Set("fill", 0.1) },
		"cost":      func(p *Params) { p.Set("cost", 100) },
		"who":       func(p *Params) { p.Set("popularity", "zipf:0.2") },
	} {
		p := base
		change(&p)
		s, _ := build(t, "uploads", p)
		print := Fingerprint(s, 1000)
		if other, ok := seen[print]; ok {
			t.Errorf("%s and %s make the same fingerprint", what, other)
		}
		seen[print] = what
	}
}
