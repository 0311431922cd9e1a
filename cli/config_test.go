package cli

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/internal/app/settings/group"
	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/internal/kit/testenv"
)

// planned is what a command line of run would measure.
func planned(t *testing.T, args ...string) (*group.Settings, measure.Config) {
	t.Helper()
	s, cfg, err := plan(args...)
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return s, cfg
}

// newRun are the settings of run.
func newRun() (*group.Settings, *cobra.Command) {
	s := group.New(group.Run)
	cmd := &cobra.Command{Use: "run"}
	registerRun(cmd, s, nil)
	new(cobra.Command).AddCommand(cmd) // a file may have a section for it
	return s, cmd
}

// plan does what run does before it starts anything.
func plan(args ...string) (*group.Settings, measure.Config, error) {
	s, cmd := newRun()
	err := cmd.ParseFlags(args)
	if err == nil {
		err = s.Read(cmd.Flags().Args())
	}
	if err != nil {
		return s, measure.Config{}, err
	}
	j, err := asked(s)
	if err != nil {
		return s, measure.Config{}, err
	}
	return s, j.points[0], nil
}

const traceRows = "time,subject,cost\n1,a,1\n2,b,1\n3,a,1\n"

// roundTrips set, between them, every setting to something of its own.
var roundTrips = [][]string{
	{},
	{"--quick"}, {"--budget", "90s"},
	{"honest:color=blue,depth=4,liar", "honest", "--policy", "user-links", "--limit", "7"},
	{"--loop", "closed"}, {"--loop", "both", "--rate", "700"}, {"--loop", "open", "--rate", "900"},
	{"--workload", "steady", "--loop", "closed"},
	{"--workload", "steady:subjects=77,popularity=zipf:0.9,over-quota=0,fill=0.25", "--rate", "1234.5", "--loop",
		"open:arrivals=constant"},
	{"--workload", "hot-key:cost=2", "--requests", "5000", "--workers", "9", "--instances", "3", "--rounds", "2", "--seed",
		"18446744073709551615"},
	{"--workload", "hot-key:cost=uniform:1-3", "--duration", "1m30s", "--client", "pool=4,retries=2", "--trouble",
		"redis:away@0.3-0.6", "--trouble", "postgres:away@0.5-0.7"},
	{"--trace", "a trace: with #.csv", "--workload", "trace:speed=2.5", "--policy", "contact-form",
		"--trace-fields", "time=time,subject=subject"},
	{"--workers", "2", "--instances", "5", "--cores", "shared"}, {"--client", "cold"},
	{"--client", "retries=1,cold"},
	{"--verbose"}, {"--quiet"}, {"--json"}, {"--metrics", ":9464"}, {"--decision-timeout", "3s"},
	{"--trouble", "callers:killed=0.01,after=2"},
	{"--trouble", "keys/quota:*:add=100@0.5", "--trouble", "keys/*:add=-1@0.25", "--trouble",
		"redis:latency=2ms,jitter=1ms", "--trouble", "redis/1:cut@0.25-0.5"},
	{"--trouble", "limit:is=40@0.25", "--trouble", "instance/1:paused=300ms@0.25"},
	{"--trouble", "instance/1:clock=-2s@0.5"},
	{"--workload", "uploads:fail-share=0.2,abandon-share=0,misjudged-share=0.1,settle=5ms,hold=0s", "--policy",
		"tenant-uploads", "--life", "20m", "--history", "kept"},
	{"honest", "--require", "leak<=0", "--require", "p99/reference <= 1.2", "--undecided", "pass", "--against", "./other",
		"--tolerance", "p99=20%", "--tolerance", "bytes=5%"},
	{"--redis", "redis://h:6379/1", "--postgres", "postgres://u@h/db?sslmode=disable", "--out", "true"},
	{"--redis", "container:image=redis:8", "--postgres", "container:image=postgres:18", "--out", "012"},
	{"honest", "--param", "workers=1..4x2", "--until", "leak=0"}, {"honest", "--until", "p99<5ms"},
	{"--survive", "outage,clock"}, {"honest", "--param", "rate=100,200", "--param", "instances=1,2"},
	{"--route-policy", "60 calls per fixed 1m"},
	{"--store", "nginx=process", "--store", "haproxy=process", "--store",
		"service=http://h:8080/check?user={subject}#: x"},
	{"--store", "redis.2=process", "--store", "postgres.other=postgres://u@h/db?sslmode=disable"},
}

func TestConfigRoundTrip(t *testing.T) {
	newPlace(t, map[string]string{"a trace: with #.csv": traceRows})
	given := map[string]bool{}
	for _, args := range roundTrips {
		s, cfg := planned(t, args...)
		o := call(t.Context(), append([]string{"run", "--print-config"}, args...)...)
		if o.code != exit.OK || o.stderr != "" {
			t.Fatalf("%q: exit %d, %s", args, o.code, o.stderr)
		}
		if err := os.WriteFile("run.yaml", []byte(o.stdout), 0o644); err != nil {
			t.Fatal(err)
		}
		again, cfg2 := planned(t, "--config", "run.yaml")
		if !reflect.DeepEqual(cfg, cfg2) {
			t.Errorf("%q: the printed configuration is another run:\n%+v\n%+v", args, cfg, cfg2)
		}
		for i, x := range s.All() {
			if y := again.All()[i]; !x.Shorthand && !x.FlagOnly && x.Value.String() != y.Value.String() {
				t.Errorf("%q: %s is %q, printed and read it is %q", args, x.Name, x.Value, y.Value)
			}
			given[x.Name] = given[x.Name] || s.Given(x.Name)
		}
		if o2 := call(t.Context(), "run", "--print-config", "--config", "run.yaml"); o2.stdout != o.stdout {
			t.Errorf("%q: printed again it is\n%s\nnot\n%s", args, o2.stdout, o.stdout)
		}
	}
	s, _ := newRun()
	for _, x := range s.All() {
		// The workload is implied by a trace, and given in the other direction.
		if !given[x.Name] && !x.FlagOnly {
			t.Errorf("no round trip sets %s", x.Name)
		}
	}
}

func TestPrintConfig(t *testing.T) {
	p := newPlace(t, map[string]string{"t.csv": traceRows, "held/results.json": "{}"})
	var text strings.Builder
	for _, args := range [][]string{
		{"--print-config"},
		{"--print-config", "--quick", "--trace", "t.csv", "honest:color=blue,liar", "honest"},
		{"--print-config", "--trace", "t.csv", "--policy", "agent-tokens", "--out", "held", "--workload", "trace:fill=0.1",
			"--redis", "redis://user:p@ss:w@rd@host:6379/2", "--postgres",
			"postgres://host/db?user=u&password=secret&sslmode=require",
			"--store", "redis.2=redis://user:p@ss@host", "--trouble", "redis:away@0.25-0.5", "--duration", "10s"},
	} {
		o := call(t.Context(), append([]string{"run"}, args...)...)
		for _, leak := range []string{"p@ss", "w@rd", "secret"} {
			if strings.Contains(o.stdout+o.stderr, leak) {
				t.Errorf("the password is shown: %s", o.stdout)
			}
		}
		o.args = []string{"run", "..."}
		text.WriteString(o.transcript() + "\n")
	}
	golden(t, "print-config", text.String())
	p.requireUntouched()
}

func TestHiddenPasswordIsLeftToTheEnvironment(t *testing.T) {
	newPlace(t, map[string]string{"run.yaml": `
redis: redis://user:***@host:6379/2
postgres: "postgres://host/db?user=u&password=***&sslmode=require"
store: ["redis.2=redis://user:***@host"]
`})
	s, _ := planned(t, "--config", "run.yaml")
	if s.Named[0] != "redis.2=redis://user@host" {
		t.Errorf("store %q", s.Named)
	}
	if *s.From["redis"] != "redis://user@host:6379/2" ||
		*s.From["postgres"] != "postgres://host/db?user=u&sslmode=require" {
		t.Errorf("redis %q, postgres %q", *s.From["redis"], *s.From["postgres"])
	}
}

func TestFlagsWinOverTheFile(t *testing.T) {
	newPlace(t, map[string]string{"t.csv": traceRows, "run.yaml": `
strategy: [honest, liar]
workload: steady:fill=0.5
workers: 7
rounds: 8
duration: 1s
trouble: redis:away@0.1-0.2
`, "quick.yaml": "quick: true\nrounds: 9\n"})
	type c = measure.Config
	for _, x := range []struct {
		args []string
		ok   func(s *group.Settings, c c) bool
	}{
		{[]string{"--config", "run.yaml"}, func(s *group.Settings, c c) bool {
			return s.Workload == "steady:fill=0.5" && c.Workers == 7 && c.Rounds == 8 && len(c.Strategies) == 2 &&
				len(c.Trouble) == 1 && c.Stream.Options["fill"] == "0.5"
		}},
		{[]string{"--config", "run.yaml", "--workers", "3", "honest"}, func(_ *group.Settings, c c) bool {
			return c.Workers == 3 && c.Rounds == 8 && len(c.Strategies) == 1
		}},
		{[]string{"--trouble", "postgres:away@0.1-0.2", "--trouble", "postgres:away@0.3-0.4", "--config", "run.yaml"},
			func(_ *group.Settings, c c) bool {
				return len(c.Trouble) == 2 && c.Trouble[1].Where.Name == "postgres"
			}},
		// --quick stands for two flags, which win as it does; what was given as a
		// flag stays.
		{[]string{"--config", "run.yaml", "--quick"}, func(_ *group.Settings, c c) bool {
			return c.Rounds == group.QuickRounds && c.Duration == group.QuickDuration
		}},
		{[]string{"--config", "run.yaml", "--quick", "--rounds", "5"}, func(_ *group.Settings, c c) bool {
			return c.Rounds == 5 && c.Duration == group.QuickDuration
		}},
		{[]string{"--config", "quick.yaml"}, func(_ *group.Settings, c c) bool {
			return c.Rounds == 9 && c.Duration == group.QuickDuration
		}},
		// So does --trace, which stands for a workload.
		{[]string{"--config", "run.yaml", "--trace", "t.csv"}, func(s *group.Settings, c c) bool {
			return c.Workload.NeedsTrace && s.Workload == c.Workload.Name
		}},
	} {
		if s, cfg := planned(t, x.args...); !x.ok(s, cfg) {
			t.Errorf("%q gives %+v", x.args, cfg)
		}
	}
}

// TestSections: a file for several commands says what is common once, and what one command needs in its section.
func TestSections(t *testing.T) {
	testenv.Sequential(t)
	newPlace(t, nil)
	const common = "policy: 10 searches per fixed 1m\nstrategy: honest\n"
	for _, c := range []struct {
		command, file, want string
	}{
		{"run", common + "run:\n  workers: 7\nexplore:\n", "\nworkers: 7\n"},
		{"run", common + "run: {workers: 7}\nexplore:\n  clients: 3\n", "\npolicy: 10 searches per fixed 1m\n"},
		{"sim", common + "run:\n  workers: 7\n", "\npolicy: 10 searches per fixed 1m\n"},
		{"sim", "property: leak\nexplore:\n", "\nstrategy:\n  - core\n"},
		{"explore", common + "explore: {clients: 3}\nrun: {workers: 7}\n", `"clients": 3`},
		{"sim", "property: leak\n", `bad.yaml:1: unknown key "property"`},
		{"sim", "polcy: x\nexplore:\nsim:\n", `bad.yaml:1: unknown key "polcy": did you mean policy?`},
		{"sim", "sim:\n  clients: 3\nexplore:\n", `bad.yaml:2: unknown key "clients"`},
		{"sim", "sim: 5\n", "bad.yaml:1: not a configuration"},
		{"sim", "seed: 2\nsim:\n  seed: 3\n", "bad.yaml:3: seed is given twice, first on line 1"},
		{"sim", "doctor:\n", `bad.yaml:1: unknown key "doctor"`},
	} {
		if err := os.WriteFile("bad.yaml", []byte(c.file), 0o644); err != nil {
			t.Fatal(err)
		}
		show := "--print-config"
		if c.command == "explore" {
			show = "--json"
		}
		o := call(t.Context(), c.command, show, "--config", "bad.yaml")
		if wrong := strings.HasPrefix(c.want, "bad"); wrong != (o.code == exit.Usage) ||
			!strings.Contains(o.stdout+o.stderr, c.want) {
			t.Errorf("%s of\n%s\nexit %d, no %q in %s%s", c.command, c.file, o.code, c.want, o.stdout, o.stderr)
		}
	}
	// compare takes no strategies, and other sections do.
	if err := os.WriteFile("all.yaml", []byte(common+"run:\ncompare:\n  undecided: pass\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	o := call(t.Context(), "compare", "--config", "all.yaml", "none.json", "none.json")
	if !strings.Contains(o.stderr, "cannot read none.json") {
		t.Errorf("compare: %s", o.stderr)
	}
}
