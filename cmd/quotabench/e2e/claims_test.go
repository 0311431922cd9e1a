package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/cli"
	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/report/claims"
)

// swap is a claim with its verdict as it is written, and if other strategies are run for it: old, new, ...
type swap struct {
	id          string
	want, other claims.Verdict
	replace     []string
}

// The first have searches and simulations that end soon, and verdicts of both kinds.
var (
	quickSwaps = []swap{
		{"R1", claims.Holds, claims.Refuted, []string{"explore check-then-set", "explore lua-reserve --jobs 0"}},
		{"T28", claims.Refuted, claims.Holds, []string{"explore redis-hash --", "explore redis-hash:write=through --"}},
		{"L1-code", claims.Refuted, claims.Holds, []string{"decr-literal", "decr-expire:init=listing"}},
		{"L5", claims.Holds, claims.Refuted, []string{"sim decr-expire --policy", "sim decr-expire:down=open --policy"}},
	}
	longSwaps = []swap{
		{"R16", claims.Holds, claims.Refuted,
			[]string{"lua-reserve --jobs 0 --faults evic", "lua-reserve-hardened --jobs 0 --faults evic"}},
		{"R17", claims.Holds, claims.Refuted, []string{"explore app-lock", "explore lua-reserve-hardened"}},
		{"T19", claims.Refuted, claims.Holds, []string{"explore three-tier --", "explore three-tier-hardened --"}},
		{"T23", claims.Holds, claims.Refuted, []string{"explore three-tier:write=through --clients 1 --limit 5",
			"explore three-tier:write=literal --clients 1 --limit 5"}},
		{"T23-both", claims.Refuted, claims.Holds, []string{"write=literal", "write=through"}},
		{"T31", claims.Refuted, claims.Holds, []string{"source=replica", "source=primary"}},
		{"U5-killed", claims.Refuted, claims.Holds, []string{"explore incr-expire", "explore incr-expire-atomic",
			"sim incr-expire --policy user-links", "sim incr-expire-atomic --policy user-links"}},
		{"R7", claims.HoldsOnlyIf, claims.Holds, []string{"sim lua-reserve:", "sim lua-reserve-hardened:"}},
		{"R13", claims.Refuted, claims.Holds, []string{"sim lua-reserve:", "sim lua-reserve-hardened:"}},
		{"R14", claims.Holds, claims.Refuted,
			[]string{"redis:failover=100ms@0.5-0.52", "redis:failover=100ms@0.5-0.52 --trouble callers:killed=0.02"}},
		{"R19", claims.Refuted, claims.Holds, []string{"sim lua-reserve:", "sim lua-reserve-hardened:"}},
		{"R20", claims.Refuted, claims.Holds, []string{"sim lua-reserve ", "sim lua-reserve-hardened "}},
		{"E4", claims.Holds, claims.Refuted, []string{"explore fixed-window --faults", "explore incr-expire --faults"}},
		{"E6", claims.Holds, claims.Refuted, []string{"sim memory-deque", "sim sliding-log"}},
		{"T8", claims.Refuted, claims.Holds, []string{"explore three-tier ", "explore three-tier-hardened ",
			"sim three-tier --policy agent-api", "sim three-tier-hardened --policy agent-api"}},
		{"T9", claims.Refuted, claims.Holds, []string{"--duration 125m", "--duration 55m"}}, // no second hour
		{"T12", claims.HoldsOnlyIf, claims.Holds, []string{"three-tier.batch=1,16,256", "three-tier.batch=16,256"}},
		{"T35", claims.Refuted, claims.Holds, []string{"hours: sim three-tier ", "hours: sim exact "}},
		{"T13", claims.Refuted, claims.Holds,
			[]string{"three-tier --policy agent-api", "three-tier-hardened --policy agent-api"}},
		{"T18", claims.Holds, claims.Refuted,
			[]string{"sim three-tier --policy agent-tokens", "sim three-tier:filter=fixed --policy agent-tokens"}},
		{"T20", claims.Refuted, claims.Holds, []string{"reconcile=5s", "write=through,reconcile=5s"}},
		{"T21", claims.Refuted, claims.Holds, []string{"three-tier", "three-tier-hardened"}},
		{"T24", claims.Refuted, claims.Holds, []string{"names=literal", "names=schema"}},
		{"U3", claims.Holds, claims.Refuted,
			[]string{"sim incr-expire --policy user-links", "sim fixed-window --policy agent-api"}},
		{"U4", claims.HoldsOnlyIf, claims.Refuted,
			[]string{"sim incr-expire --preset", "sim scheduled-reset:missed=1 --preset"}},
		{"U6", claims.Holds, claims.Refuted, []string{"sim incr-expire --policy", "sim incr-expire:down=open --policy"}},
		{"U9", claims.Holds, claims.Refuted, []string{"scheduled-reset:missed=1", "exact"}},
		{"U12", claims.HoldsOnlyIf, claims.Holds, []string{"sim incr-expire --policy", "sim redis-durable --policy"}},
		{"L3-expiry", claims.Refuted, claims.Holds, []string{"explore decr-expire:init=listing", "explore incr-expire-atomic",
			"explore decr-expire --faults", "explore incr-expire-atomic --faults"}},
		{"L6", claims.Holds, claims.Refuted, []string{"sim decr-expire --policy", "sim incr-expire-atomic --policy"}},
	}
)

// TestVerdictsFollowTheStrategy requires another verdict on a claim if another strategy is run for it, or nothing goes
// wrong: a verdict that stays is none on the strategy.
func TestVerdictsFollowTheStrategy(t *testing.T) {
	testenv.Sequential(t)
	for _, c := range quickSwaps {
		if got := verdictOn(t, c.id); got != c.want {
			t.Errorf("%s: %s, want %s", c.id, got, c.want)
		}
	}
	committed := committedVerdicts(t)
	for _, c := range testenv.Pick(quickSwaps, slices.Concat(quickSwaps, longSwaps)) {
		if got := committed[c.id]; got != c.want {
			t.Errorf("%s: the committed verdict is %s, want %s", c.id, got, c.want)
		}
		if got := verdictOn(t, c.id, c.replace...); got != c.other {
			t.Errorf("%s with %q: %s, want %s", c.id, c.replace[1], got, c.other)
		}
	}
}

// committedVerdicts are those of the committed pass over the claims of the design records, by their ids.
func committedVerdicts(t *testing.T) map[string]claims.Verdict {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(repo, "results/baseline/claims/claims.json"))
	if err != nil {
		t.Fatal(err)
	}
	var report claims.Report
	if err := json.Unmarshal(data, &report); err != nil {
		t.Fatal(err)
	}
	verdicts := map[string]claims.Verdict{}
	for i := range report.Claims {
		verdicts[report.Claims[i].ID] = report.Claims[i].Verdict
	}
	return verdicts
}

// forms are figures next to a verdict, some of them of measured runs.
var forms = regexp.MustCompile(`(?m)^    form: .*\n(?:^      .*\n)*`)

// verdictOn is that on a claim of a built-in file in which texts are replaced: old, new, ...
func verdictOn(t *testing.T, id string, replace ...string) claims.Verdict {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(repo, "internal/report/claims/records/*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(b), "- id: "+id+"\n") {
			text = forms.ReplaceAllString(string(b), "")
		}
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "claims.yaml")
	if err := os.WriteFile(path, []byte(strings.NewReplacer(replace...).Replace(text)), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	var r claims.Report
	code := cli.Main([]string{"claims", path, "--id", id, "--json", "--quiet", "--out", filepath.Join(dir, "out")}, &out,
		&errs)
	if err := json.Unmarshal(out.Bytes(), &r); err != nil || len(r.Claims) != 1 {
		t.Fatalf("%s: exit %d, %d claims, %v: %s", id, code, len(r.Claims), err, errs.String())
	}
	if c := r.Claims[0]; c.Verdict == claims.Undecided {
		t.Logf("%s: %s", id, c.Why)
	}
	return r.Claims[0].Verdict
}

// TestCommandsOfClaims: no command of the design records and of the examples is refused, in a quick pass and in a full
// one. Those that take no account of a plan search a little.
func TestCommandsOfClaims(t *testing.T) {
	testenv.Sequential(t)
	files, err := claims.Builtin(explore.Properties())
	if err != nil {
		t.Fatal(err)
	}
	examples, err := filepath.Glob(filepath.Join(repo, "examples/claims/*.yaml"))
	if err != nil || len(examples) == 0 {
		t.Fatalf("%d claims files of examples: %v", len(examples), err)
	}
	for _, path := range examples {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		file, err := claims.Parse(path, data, explore.Properties())
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	tried := map[string]bool{}
	for _, f := range files {
		for name, r := range f.Runs {
			for pass, more := range map[string]string{"quick": r.Quick, "full": r.Full} {
				words := strings.Join(strings.Fields(r.Command+" "+more), " ")
				if tried[words] {
					continue
				}
				tried[words] = true
				args := append(wordsOf(words), "--print-config")
				if args[0] == "explore" {
					args = append(args[:len(args)-1], "--max-states", "20", "--out", t.TempDir())
				}
				var errs bytes.Buffer
				if code := cli.Main(args, io.Discard, &errs); code == exit.Usage {
					t.Errorf("%s, %s, %s pass: %q: %s", f.Record, name, pass, args, errs.String())
				}
			}
		}
	}
	if len(tried) < 100 {
		t.Errorf("%d commands were found: too few", len(tried))
	}
}

// TestConditionsOfClaims reads every condition of the design records from the committed pass: it names figures, and
// strategies that its records have.
func TestConditionsOfClaims(t *testing.T) {
	testenv.Long(t) // the records are large
	testenv.Sequential(t)
	var out, errs bytes.Buffer
	code := cli.Main([]string{"claims", "--from", filepath.Join(repo, "results/baseline/claims"), "--json"}, &out, &errs)
	var r claims.Report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil || code == exit.Usage {
		t.Fatalf("exit %d, %v: %s", code, err, errs.String())
	}
	for _, c := range r.Claims {
		if strings.Contains(c.Why, "is not in the record") {
			t.Errorf("%s %s: %s", c.Record, c.ID, c.Why)
		}
	}
}
