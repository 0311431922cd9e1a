package prometheus_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/harness/sim"
	"github.com/quotabench/quotabench/internal/app/prometheus"
	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/internal/kit/stat"
	_ "github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/strategies"
	_ "github.com/quotabench/quotabench/strategies/all"
	"github.com/quotabench/quotabench/workloads"
)

const (
	limit = 10
	leak  = 3 // units over it, for each subject
)

// planted is a strategy of known faults. Every fourth decision is made by Redis.
type planted struct {
	mu      sync.Mutex
	used    map[quota.Subject]int64
	n       atomic.Int64 // requests of this instance, warm-up left out
	at      int64
	reached func()
	// overAt is how many units over the limit were admitted within so many requests.
	overAt map[int64]int64
}

func (p *planted) Take(_ context.Context, r quota.Request) (quota.Decision, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.ID < bounds.WarmUpID {
		if p.n.Add(1) == p.at {
			p.reached() // all others wait
		}
	}
	d := quota.Decision{Tier: quota.TierProcess}
	if p.n.Load()%4 == 0 {
		d.Tier = quota.TierRedis
	}
	if p.used[r.Subject]+r.Units <= r.Policy.Limit+leak {
		p.used[r.Subject] += r.Units
		d.Admitted = true
	}
	if n := p.n.Load(); p.overAt != nil {
		over := int64(0)
		for _, used := range p.used {
			over += max(0, used-r.Policy.Limit)
		}
		p.overAt[n] = over
	}
	return d, nil
}

func (p *planted) Close(context.Context) error { return nil }

func (p *planted) Used(_ context.Context, s quota.Subject, _ *quota.Policy) ([]quota.Reading, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return []quota.Reading{{Tier: quota.TierRedis, Units: p.used[s] + 2, Known: true}}, nil
}

func (p *planted) Measures() []strategies.Measure {
	n := p.n.Load()
	return []strategies.Measure{ // whatever they are called
		{Name: "maybes", Unit: "checks", Value: 4 * n, Metric: codes.MetricFilterHits},
		{Name: "wrong maybes", Unit: "checks", Value: n, Metric: codes.MetricFalsePositives},
		{Name: "longest wait", Unit: "us", Value: 2500, Kind: strategies.MeasureMost, Metric: codes.MetricQueueLag},
	}
}

// TestScrapedInMidRun asks during the second round, and finds what was planted in the
// first one and what was recorded since.
func TestScrapedInMidRun(t *testing.T) {
	const requests, workers, at = 4000, 4, 3000
	live := new(measure.Live)
	server, err := prometheus.Serve(t.Context(), ":0", prometheus.Measured(live))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(server.URL, "http://127.0.0.1:") {
		t.Errorf("served at %s, not at the loopback interface", server.URL)
	}
	var text string
	opened := 0
	meta := &strategies.Meta{
		Name: "planted", Doc: "has known faults", Form: strategies.Baseline, Counts: quota.CountsAdmitted,
		Kinds: []quota.Kind{quota.Fixed},
		Open: func(context.Context, strategies.Env) (strategies.Strategy, error) {
			p := &planted{used: map[quota.Subject]int64{}}
			opened++
			if opened == 2 {
				p.at = at
				p.reached = func() { text = scrape(t, server.URL) }
			}
			return p, nil
		},
	}
	w, policy := hotKey(t)
	set, err := stores.OpenSet(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	report, err := measure.Measure(t.Context(), measure.Config{
		Plan: harness.Plan{Strategies: []strategies.Selection{{Meta: meta}}, Traffic: harness.Traffic{
			Workload: w,
			Requests: requests, Load: harness.Closed(),
		}, Policy: policy, Workers: workers, Seed: 1, Surroundings: harness.Surroundings{Stores: set}},
		Rounds: 2, NoReference: true, Live: live,
	})
	if err != nil {
		t.Fatal(err)
	}
	first := &report.Runs[0]
	if !first.Audit.Valid || first.Leak.Units == 0 || first.Drift == nil {
		t.Fatalf("nothing planted: %+v", first)
	}
	got := samples(t, text)
	const s = `{strategy="planted",loop="closed"`
	counted := 0.0
	for k, v := range got {
		if strings.HasPrefix(k, "quota_check_duration_us_count") {
			counted += v
		}
	}
	if least := float64(requests + at - workers*9); counted < least || counted > requests+at {
		t.Errorf("%v decisions, want %v to %v", counted, least, requests+at)
	}
	for k, want := range map[string]float64{
		"quota_enforcement_violations" + s + "}":                                                float64(first.Leak.Units),
		"quota_cache_unavailable" + s + `,layer="store"}`:                                       0,
		"quota_bloom_false_positive_rate" + s + "}":                                             0.25,
		"quota_sync_lag_seconds" + s + `,layer="queue"}`:                                        0.0025,
		"quota_drift_percentage" + s + `,layer="redis"}`:                                        20,
		"quotabench_running" + s + "}":                                                          1,
		"quotabench_round" + s + "}":                                                            2,
		"quota_check_duration_us_bucket" + s + `,layer="process",outcome="admitted",le="+Inf"}`: got["quota_check_duration_us_count"+s+`,layer="process",outcome="admitted"}`],
	} {
		if v, ok := got[k]; !ok || v != want {
			t.Errorf("%s is %v (%v), want %v", k, v, ok, want)
		}
	}
	if v := got["quota_cache_hit_rate"+s+`,layer="process"}`]; math.Abs(v-0.75) > 0.01 {
		t.Errorf("three quarters of the decisions were made by the process, and the rate says %v", v)
	}
	if v := got["quota_cache_hit_rate"+s+`,layer="redis"}`]; v != 1 {
		t.Errorf("Redis made all decisions that reached it, and the rate says %v", v)
	}
	if v := got["quota_fallback_count"+s+`,from="process",to="redis"}`]; math.Abs(v-counted/4) > counted/100 {
		t.Errorf("%v of %v decisions went on to Redis", v, counted)
	}
	if got["quota_throughput_checks_per_sec"+s+"}"] <= 0 {
		t.Error("no throughput")
	}
	// All but the last few subjects of three quarters of the requests went over by as much as
	// was planted.
	second := float64(report.Runs[1].Leak.Units)
	if v := got["quotabench_certain_leak_units"+s+"}"]; v < second/2 || v > second*at/requests+leak {
		t.Errorf("%v units over the limit are certain after %d of %d requests, which leak %v", v, at, requests, second)
	}
	if v, ok := got["quotabench_certain_false_rejects"+s+"}"]; !ok || v != 0 {
		t.Errorf("%v false rejects", v)
	}
	// When all is over the counts are whole.
	end := samples(t, scrape(t, server.URL))
	if v := end["quotabench_certain_leak_units"+s+"}"]; v != second {
		t.Errorf("%v units over the limit are certain at the end, want %v", v, second)
	}
	counted = 0
	for k, v := range end {
		if strings.HasPrefix(k, "quota_check_duration_us_count") {
			counted += v
		}
	}
	if counted != 2*requests {
		t.Errorf("%v decisions at the end, of %d", counted, 2*requests)
	}
	if err := server.Close(); err != nil {
		t.Error(err)
	}
}

func hotKey(t *testing.T) (*workloads.Meta, quota.Policy) {
	t.Helper()
	w, err := workloads.Lookup("hot-key")
	if err != nil {
		t.Fatal(err)
	}
	policy := testkit.Policy(t, fmt.Sprintf("%d requests per fixed 1h", limit))
	return w, policy
}

// TestSimulationScraped: figures of virtual time are labelled so, and the leak that was
// planted is served while the simulation goes on.
func TestSimulationScraped(t *testing.T) {
	const requests, at = 4000, 3500
	w, policy := hotKey(t)
	policy.Window = quota.Window{} // the planted strategy resets nothing
	live := new(sim.Live)
	server, err := prometheus.Serve(t.Context(), ":0", prometheus.Simulated(live))
	if err != nil {
		t.Fatal(err)
	}
	var text string
	p := &planted{used: map[quota.Subject]int64{}, overAt: map[int64]int64{}, at: at, reached: func() {
		text = scrape(t, server.URL)
	}}
	meta := &strategies.Meta{
		Name: "planted", Doc: "has known faults", Form: strategies.Baseline, Counts: quota.CountsAdmitted,
		Kinds: []quota.Kind{quota.Standing},
		Open:  func(context.Context, strategies.Env) (strategies.Strategy, error) { return p, nil },
	}
	report, err := sim.Run(t.Context(), sim.Config{
		Plan: harness.Plan{Strategies: []strategies.Selection{{Meta: meta}}, Traffic: harness.Traffic{
			Workload: w,
			Requests: requests, Load: harness.Closed(),
		}, Policy: policy, Workers: 4, Seed: 1},
		Every: 100 * time.Microsecond, Live: live,
	})
	if err != nil {
		t.Fatal(err)
	}
	const s = `{strategy="planted",loop="closed",time="virtual"`
	got := samples(t, text)
	shown := int64(0)
	for k, v := range got {
		if strings.HasPrefix(k, "quota_check_duration_us_count") {
			shown += int64(v)
		}
	}
	if shown < at/2 || p.overAt[shown] == 0 {
		t.Fatalf("%d decisions are shown, nothing planted in them", shown)
	}
	for k, want := range map[string]float64{
		"quota_enforcement_violations" + s + "}":         float64(p.overAt[shown]),
		"quota_drift_percentage" + s + `,layer="redis"}`: 20,
		"quota_bloom_false_positive_rate" + s + "}":      0.25,
		"quota_cache_hit_rate" + s + `,layer="process"}`: 0.75,
		"quota_cache_hit_rate" + s + `,layer="redis"}`:   1,
		"quotabench_certain_false_rejects" + s + "}":     0,
		"quotabench_running" + s + "}":                   1,
	} {
		if v, ok := got[k]; !ok || v != want {
			t.Errorf("%s is %v (%v), want %v", k, v, ok, want)
		}
	}
	end := samples(t, scrape(t, server.URL))
	if v := end["quota_enforcement_violations"+s+"}"]; v != float64(report.Runs[0].Leak.Units) ||
		end["quotabench_running"+s+"}"] != 0 {
		t.Errorf("%v units at the end, want %d", v, report.Runs[0].Leak.Units)
	}
	if now, then := got["quotabench_virtual_seconds"+s+"}"], end["quotabench_virtual_seconds"+s+"}"]; now <= 0 ||
		then < now {
		t.Errorf("%v s in mid-run, %v s at the end", now, then)
	}
	if err := server.Close(); err != nil {
		t.Error(err)
	}
}

func scrape(t *testing.T, url string) string {
	r, err := http.Get(url)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer func() { _ = r.Body.Close() }() // it was read
	b, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK ||
		!strings.HasPrefix(r.Header.Get("Content-Type"), "text/plain; version=0.0.4") {
		t.Errorf("%v: %d, %q", err, r.StatusCode, r.Header)
	}
	return string(b)
}

var line = regexp.MustCompile(`^([a-z_]+(\{([a-z]+="(\\.|[^"\\])*",?)*\})?) (\S+)$`)

// samples parses Prometheus' text format: comments, and a number after each name.
func samples(t *testing.T, text string) map[string]float64 {
	t.Helper()
	out := map[string]float64{}
	for l := range strings.Lines(text) {
		l = strings.TrimSuffix(l, "\n")
		if strings.HasPrefix(l, "# HELP ") || strings.HasPrefix(l, "# TYPE ") {
			continue
		}
		m := line.FindStringSubmatch(l)
		if m == nil {
			t.Fatalf("no line of the text format: %q", l)
		}
		v, err := strconv.ParseFloat(m[5], 64)
		if _, twice := out[m[1]]; err != nil || twice {
			t.Fatalf("%q: %v, twice %v", l, err, twice)
		}
		out[m[1]] = v
	}
	return out
}

// TestOutages: decisions that were planted without a store count for the last store that was asked in vain, and the
// process that decides in the end comes after all stores.
func TestOutages(t *testing.T) {
	latency := func(tier quota.Tier, n, degraded int64) stat.LiveLatency {
		return stat.LiveLatency{Outcome: "admitted", Tier: string(tier), Count: n, Degraded: degraded}
	}
	text := string(prometheus.Text([]measure.LiveFigures{{Strategy: "a", Loop: "open", Latencies: []stat.LiveLatency{
		latency(quota.TierProcess, 100+7, 7), latency(quota.TierFilter, 400, 0), latency(quota.TierRedis, 300, 2),
		latency(quota.TierPostgres, 193, 50),
	}, Judged: []results.Run{{Requests: results.Requests{ErrorKinds: &results.ErrorKinds{Store: 5, Contention: 9}}}}}}))
	got := samples(t, text)
	const s = `{strategy="a",loop="open",`
	for name, want := range map[string]float64{
		"quota_fallback_count" + s + `from="process",to="bloom"}`:    900,
		"quota_fallback_count" + s + `from="bloom",to="redis"}`:      500,
		"quota_fallback_count" + s + `from="redis",to="postgres"}`:   200,
		"quota_fallback_count" + s + `from="postgres",to="process"}`: 7,
		"quota_cache_unavailable" + s + `layer="redis"}`:             52, // 2 of them had no charge
		"quota_cache_unavailable" + s + `layer="postgres"}`:          7,
		"quota_cache_unavailable" + s + `layer="store"}`:             5,
		"quota_cache_hit_rate" + s + `layer="process"}`:              0.1,
		"quota_cache_hit_rate" + s + `layer="redis"}`:                0.6,
		"quota_cache_hit_rate" + s + `layer="postgres"}`:             0.965,
	} {
		if v, ok := got[name]; !ok || v != want {
			t.Errorf("%s is %v (%v), want %v", name, v, ok, want)
		}
	}
}

// TestOutageOfEveryStrategy: with stores away for a part of a simulation, the metrics of each strategy add up to what
// its record says.
func TestOutageOfEveryStrategy(t *testing.T) {
	workload, policy := hotKey(t)
	tried := 0
	for _, meta := range strategies.All() {
		if !slices.Contains(meta.Needs, strategies.NeedRedis) || meta.ServesPolicy(&policy) != nil {
			continue
		}
		live := new(sim.Live)
		texts := []string{"redis:away@0.3-0.6"}
		if slices.Contains(meta.Needs, strategies.NeedSource) {
			texts = append(texts, "postgres:away@0.5-0.7")
		}
		report, err := sim.Run(t.Context(), sim.Config{
			Plan: harness.Plan{Strategies: []strategies.Selection{testkit.Strategy(t, meta.Name)}, Traffic: harness.Traffic{
				Workload: workload, Load: harness.OpenAt(20), Duration: time.Minute,
			}, Policy: policy, Seed: 1, Instances: 2,
				Surroundings: harness.Surroundings{Trouble: trouble.MustParse(texts...)}},
			Live: live,
		})
		if err != nil || len(report.Runs) == 0 {
			continue // not in virtual time
		}
		run := &report.Runs[0]
		got := samples(t, string(prometheus.Simulated(live)()))
		labels := fmt.Sprintf(`{strategy="%s",loop="open",time="virtual",`, meta.Name)
		without := 0.0
		for name, value := range got {
			if strings.HasPrefix(name, "quota_cache_unavailable"+labels) {
				without += value
			}
		}
		want := run.Degraded
		if run.ErrorKinds != nil {
			want += run.ErrorKinds.Store
		}
		if without != float64(want) {
			t.Errorf("%s: %v decisions without a store, want %d", meta.Name, without, want)
		}
		if meta.Name == "fixed-window" {
			for _, name := range []string{"quota_fallback_count" + labels + `from="redis",to="process"}`,
				"quota_cache_unavailable" + labels + `layer="redis"}`} {
				if n := got[name]; n != float64(run.Degraded) || n == 0 {
					t.Errorf("%s is %v, want %d", name, n, run.Degraded)
				}
			}
		}
		if run.Degraded > 0 {
			tried++
		}
	}
	if tried < 5 {
		t.Errorf("%d strategies decided without a store: too few", tried)
	}
}

// A label may hold anything.
func TestLabelsAreEscaped(t *testing.T) {
	text := string(prometheus.Text([]measure.LiveFigures{{Strategy: "a\"b\\c\nd\xff", Loop: "open",
		Judged: []results.Run{{}}}}))
	if want := `quotabench_running{strategy="a\"b\\c\nd?",loop="open"} 0` + "\n"; !strings.Contains(text, want) {
		t.Errorf("no %s in\n%s", want, text)
	}
	samples(t, text)
}

// TestDashboard: every metric that the dashboard asks for is served, and the other way
// round.
func TestDashboard(t *testing.T) {
	b, err := os.ReadFile("../../../docs/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Title  string
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(b, &board); err != nil || board.Title == "" {
		t.Fatal(err)
	}
	var served, asked []string
	for _, m := range prometheus.All() {
		served = append(served, m.Name)
	}
	for _, p := range board.Panels {
		if p.Title == "" || len(p.Targets) == 0 {
			t.Errorf("panel %q asks for nothing", p.Title)
		}
		for _, x := range p.Targets {
			for _, name := range regexp.MustCompile(`quota[a-z_]+`).FindAllString(x.Expr, -1) {
				for _, suffix := range []string{"_bucket", "_sum", "_count"} {
					if base := strings.TrimSuffix(name, suffix); !slices.Contains(served, name) && slices.Contains(served, base) {
						name = base
					}
				}
				if !slices.Contains(served, name) {
					t.Errorf("panel %q asks for %s, which is not served", p.Title, name)
				}
				asked = append(asked, name)
			}
		}
	}
	for _, name := range served {
		if !slices.Contains(asked, name) {
			t.Errorf("no panel shows %s", name)
		}
	}
}
