package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/codec"
	"github.com/quotabench/quotabench/results/render"
)

func TestChooseHelp(t *testing.T) {
	o := call(t.Context(), "choose", "--help")
	if o.code != ExitOK || o.stderr != "" {
		t.Errorf("exit %d, stderr %q", o.code, o.stderr)
	}
	golden(t, "choose-help", o.transcript())
}

func TestChooseUsage(t *testing.T) {
	newPlace(t, nil)
	for args, want := range map[string]string{
		"--policy nonsense":              "unknown policy",
		"--seed 2":                       "no strategy to choose from", // those of this program are baselines
		"--leak 5%%":                     "--leak: give units such as 5, or a share of the limit such as 1%",
		"--leak -1":                      "--leak: give units",
		"--redis-down shut":              "give any or open or closed or survive",
		"--rate 0":                       "--rate: give the requests per second",
		"--budget 1ms --strategy honest": "--budget \"1ms\": give a time from 1s to ",
		"--budget 0":                     "--budget \"0\": give a time from 1s to ",
		"--seed 0":                       "--seed: searches have no seed 0",
		"--instances 0":                  "0",
		"--strategy nonsense":            "--strategy: unknown strategy",
		"--clock-spread 2d":              "give a time",
		"honest":                         "takes no argument",
		"--redis-down redis:0.3-05":      "give any",
	} {
		o := call(t.Context(), append([]string{"choose"}, strings.Fields(args)...)...)
		if o.code != ExitUsage || !strings.Contains(o.stderr, want) || strings.Count(o.stderr, "\n") != 1 {
			t.Errorf("%s: exit %d, %q, want %q", args, o.code, o.stderr, want)
		}
	}
}

func TestLeakOf(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "5": 5, "1%": 10, "0.25 %": 2, "100%": 1000, "": -1, "x": -1, "-1": -1, "101%": -1, "NaN%": -1, "%": -1} {
		got, err := leakOf(text, 1000)
		if want < 0 && err == nil || want >= 0 && (err != nil || got != want) {
			t.Errorf("leakOf(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
}

// The whole command, if nothing is left that would be measured: an honest counter in
// memory leaks if its only instance crashes. The records are written and fit their schemas.
func TestChoose(t *testing.T) {
	newPlace(t, nil)
	o := call(t.Context(), "choose", "--strategy", "honest,liar,broken,monthly,sql-only", "--policy", "contact-form", "--instances", "1",
		"--redis", "embedded", "--postgres", "embedded", "--budget", "10m", "--out", "found", "--json")
	if o.code != ExitOK && o.code != ExitGate {
		t.Fatalf("exit %d: %s", o.code, o.stderr)
	}
	var c results.Choice
	if err := json.Unmarshal([]byte(o.stdout), &c); err != nil {
		t.Fatal(err)
	}
	out := map[string]results.EvidenceKind{}
	for _, r := range c.RuledOut {
		out[r.Strategy] = r.Reason.Kind
	}
	if out["monthly"] != results.EvidenceDeclared || out["liar"] != results.EvidenceSchedule || out["honest"] != results.EvidenceSchedule {
		t.Errorf("ruled out: %+v", c.RuledOut)
	}
	if _, err := codec.ReadExploration(filepath.Join("found", render.ExplorationName)); err != nil {
		t.Error(err)
	}
	for _, name := range []string{choiceFile, choiceText} {
		if b, err := os.ReadFile(filepath.Join("found", name)); err != nil || len(b) == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A standing policy settles what it gives out, unless that is answered.
func TestChooseSettles(t *testing.T) {
	for policy, want := range map[string]bool{"10 MB at a time": true, "10 calls per fixed 1m": false} {
		s := newChooseSettings()
		cmd := &cobra.Command{Use: "choose"}
		s.register(cmd)
		if err := cmd.ParseFlags([]string{"--policy", policy, "--strategy", "honest"}); err != nil {
			t.Fatal(err)
		}
		p, err := quota.LookupPolicy(policy)
		if err != nil {
			t.Fatal(err)
		}
		cfg, err := s.configure()
		if err != nil || cfg.Settles != want || cfg.Policy.Name != p.Name {
			t.Errorf("%s: %v, %v", policy, cfg.Settles, err)
		}
	}
}
