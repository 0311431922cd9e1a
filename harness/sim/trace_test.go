package sim_test

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
)

// A trace is replayed at its recorded times, in the windows of its own day.
func TestTrace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trace.csv")
	text := "time,subject,cost\n" +
		"2025-03-31T23:59:58Z,a,1\n2025-03-31T23:59:58.5Z,a,1\n2025-03-31T23:59:59Z,a,1\n" +
		"2025-04-01T00:00:01Z,a,1\n2025-04-01T00:00:01.5Z,a,1\n2025-04-01T00:00:02Z,a,1\n2025-04-03T00:00:00Z,b,1\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := config(t, "incr-expire,exact", "user-links", "trace")
	cfg.Policy.Limit = 2
	cfg.Stream.Set("trace", file)
	for _, r := range run(t, cfg).Runs {
		valid(t, &r)
		if r.Issued != 7 || r.Admitted != 5 || r.Rejected != 2 || r.Leak.Units != 0 || r.FalseRejects.Count != 0 {
			t.Errorf("%s: issued %d, admitted %d, rejected %d, leak %d, false rejects %d", r.Strategy, r.Issued, r.Admitted,
				r.Rejected, r.Leak.Units, r.FalseRejects.Count)
		}
		want := &results.Limited{Subjects: 1, Of: 2, Most: []results.LimitedSubject{{Subject: "a", Issued: 6, Rejected: 2}}}
		if !reflect.DeepEqual(r.Limited, want) {
			t.Errorf("%s: limited %+v", r.Strategy, r.Limited)
		}
		if took := time.Duration(r.ElapsedNS); took < 48*time.Hour || took > 48*time.Hour+3*time.Second {
			t.Errorf("%s: the trace took %v", r.Strategy, took)
		}
	}
}

// Both windows of a policy follow the recorded time of a trace, and who is rejected by either is counted.
func TestTraceOfTwoWindows(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trace.csv")
	text := "time,subject\n2025-03-31T09:59:50Z,a\n2025-03-31T09:59:51Z,a\n2025-03-31T09:59:52Z,a\n" +
		"2025-03-31T09:59:53Z,a\n2025-03-31T10:00:01Z,a\n2025-03-31T10:00:02Z,a\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := config(t, "fixed-window", "user-links", "trace")
	first, err := quota.ParsePolicy("5 requests per fixed 10s")
	if err != nil {
		t.Fatal(err)
	}
	second, err := quota.ParsePolicy("3 requests per calendar hour")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Policy = first
	cfg.Second = &second
	cfg.Stream.Set("trace", file)
	r := run(t, cfg).Runs[0]
	valid(t, &r)
	want := &results.Limited{Subjects: 1, Of: 1, Most: []results.LimitedSubject{{Subject: "a", Issued: 6, Rejected: 1}}}
	if r.Admitted != 5 || r.Leak.Units != 0 || r.FalseRejects.Count != 0 || !reflect.DeepEqual(r.Limited, want) {
		t.Errorf("%d admitted, leak %d, %d false rejects, limited %+v, want 5, 0, 0 and %+v", r.Admitted, r.Leak.Units,
			r.FalseRejects.Count, r.Limited, want)
	}
}

// The project's real traces pass in a second or two.
func TestRealTraces(t *testing.T) {
	testenv.Sequential(t)
	for name, policy := range map[string]string{"apache-access.log": "contact-form",
		"azure-llm-2023-conversation.csv": "agent-tokens"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join("..", "..", "..", "shared", "traces", name)
			if _, err := os.Stat(path); err != nil {
				t.Skip("the traces are not beside the project:", err)
			}
			cfg := config(t, "incr-expire-atomic,check-then-set,exact", policy, "trace")
			cfg.Stream.Set("trace", path)
			selected, _ := cfg.Split()
			cfg.Strategies = selected
			report := run(t, cfg)
			for i := range report.Runs {
				r := &report.Runs[i]
				valid(t, r)
				if r.Issued < 10_000 || r.Strategy != "check-then-set" && r.Leak.Units > 0 {
					t.Errorf("%s: issued %d, leak %d", r.Strategy, r.Issued, r.Leak.Units)
				}
			}
		})
	}
}
