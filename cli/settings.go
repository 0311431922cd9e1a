package cli

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results/answer"
	"github.com/quotabench/quotabench/results/compare"
	"github.com/quotabench/quotabench/strategies"
)

// settings are all that a run can be told.
type settings struct {
	strategy                   []string
	policy, workload           string
	workers, rounds, instances int
	pool, retries              int
	rate, speed, maxBound      float64
	rateFrom                   string // the record that rate was taken from
	cores                      measure.Cores
	loop, arrivals             string
	requests, limit            int64
	duration, budget           time.Duration
	looking                    bool // at the figures, to see whether more rounds are needed
	quick, verbose             bool
	seed                       uint64
	outages, limitChanges      []string
	cold                       bool
	clients                    []string
	from, images               map[string]*string // by driver
	named                      []string           // of --store
	out, history               string
	asJSON                     bool // in place of tables
	virtual                    bool // time, in which stores are simulated
	shard, metrics             string
	life, decision             time.Duration
	failOn                     []string
	undecided                  string         // what gates do that cannot be decided
	against, format            string         // of --against, and how to show what it found
	gates                      []compare.Gate // of failOn
	// options of workloads that were given, by name; "" where not.
	options map[string]*string

	table []setting
	flags *pflag.FlagSet
	// fresh makes another table with nothing given, to check values against.
	fresh func() *settings
	// places of the values that came from a file, as "file:line", by name.
	places map[string]string
}

// setting is one line of the table that flags, the keys of a configuration file
// and --print-config are all made from.
type setting struct {
	// name of the flag and of the key.
	name string
	// doc is the help text; a word in back quotes names the value.
	doc   string
	value value
	// computed settings have a default that depends on others: there is no value
	// to print where none was given.
	computed bool
	// shorthand settings stand for others, which are printed instead.
	shorthand bool
	// secret values may be a URL with a password, which can also come from the
	// environment variable passwordFrom.
	secret       bool
	passwordFrom string
	complete     cobra.CompletionFunc
	// store settings choose stores.
	store bool
}

// newSettings returns the defaults, with the table over them.
func newSettings() *settings {
	s := &settings{
		strategy: []string{"core"}, clients: []string{string(strategies.PlainClient)}, policy: "agent-api", workload: "hot-key",
		workers: 50, instances: 2, seed: 1, arrivals: "poisson", cores: measure.Cores{Mode: measure.CoresAuto},
		from: map[string]*string{}, images: map[string]*string{}, places: map[string]string{}, options: map[string]*string{},
	}
	s.table, s.fresh = append(s.load(), s.surroundings()...), newSettings
	return s
}

// load are the settings that say what is run, and how hard.
func (s *settings) load() []setting {
	return append([]setting{
		{name: "strategy", value: &list{p: &s.strategy}, complete: completeStrategies,
			doc: "strategies, `a,b:option=value`, core, all or a pattern such as pg-*; may be repeated"},
		{name: "policy", value: &text{p: &s.policy}, complete: completePolicies,
			doc: "`policy` to enforce: a name (see quotabench list policies), a text such as \"5 attempts per rolling 15m\", or @file.yaml"},
		{name: "workload", value: &text{p: &s.workload}, complete: completeWorkloads,
			doc: "request stream (see quotabench list workloads)"},
		{name: "limit", value: count(&s.limit, 1, quota.MaxLimit), computed: true,
			doc: "limit per subject and window in `units` (default: the policy's; 50 requests' worth for hot-key)"},
		{name: "workers", value: whole(&s.workers, 1, measure.MaxWorkers),
			doc: "callers at the same time; in open loop the most requests in service at once"},
		{name: "loop", value: &text{p: &s.loop, choices: []string{loopBoth, loopClosed, loopOpen}}, computed: true, complete: completeWords(loopBoth, loopClosed, loopOpen),
			doc: "closed: callers wait for each answer; open: requests come at a rate; both: throughput and leaks from a closed loop, latency from an open one (default both; open for workloads that are)"},
		{name: "rate", value: &rateValue{value: decimal(&s.rate, harness.MaxRate), p: &s.rate, from: &s.rateFrom},
			doc: "`requests` per second of the open loop, the same for all strategies, or a record whose rate is used again, e.g. out/results.json; 0 leaves it to the workload, or takes half of what the slowest strategy with a store holds"},
		{name: "arrivals", value: &text{p: &s.arrivals, choices: []string{"poisson", "constant"}}, complete: completeWords("poisson", "constant"),
			doc: "arrivals in open loop: poisson or constant"},
		{name: "requests", value: count(&s.requests, 0, harness.MaxRequests),
			doc: "most requests per strategy and round; 0 for no bound"},
		{name: "duration", value: span(&s.duration, measure.MaxDuration), computed: true,
			doc: "time per strategy and round (default " + measure.DefaultDuration.String() + ", with --outage " + measure.DefaultOutageDuration.String() + "; no bound with --requests or --trace)"},
		{name: "rounds", value: whole(&s.rounds, 1, measure.MaxRounds), computed: true,
			doc: fmt.Sprintf("rounds; fewer than 6 give ranges instead of confidence intervals (default %d if order and verdicts are decided then, else %d; %[1]d with --duration)", answer.FirstLook, answer.LastLook)},
		{name: "budget", value: span(&s.budget, measure.MaxDuration), computed: true,
			doc: fmt.Sprintf("begin no round that would end later than this `time` after the first began (default %gs, or %gs for each strategy if that is more; none with --rounds, --duration or --quick)", leastBudget.Seconds(), budgetEach.Seconds())},
		{name: "quick", value: &boolean{&s.quick}, shorthand: true,
			doc: fmt.Sprintf("a first look in seconds: %d rounds of %v, closed loop alone", quickRounds, quickDuration)},
		{name: "instances", value: whole(&s.instances, 1, measure.MaxInstances),
			doc: "application instances that share the stores; with one, a counter in each process looks right"},
	}, append(s.optionSettings(), []setting{
		{name: "speed", value: speedOf(&s.speed, harness.MinSpeed, harness.MaxSpeed),
			doc: "replay at k times the recorded speed, windows shrunk alike; 0 for full speed"},
		{name: "life", value: span(&s.life, harness.MaxLife), computed: true,
			doc: "how long an admitted request can still be committed or refunded (default " + harness.DefaultLife.String() + ")"},
		{name: "decision-timeout", value: span(&s.decision, harness.MaxDecisionTimeout), computed: true,
			doc: "time after which a decision is cancelled; one that does not return within half of that again is given up, and its strategy's run ends (default " + harness.DefaultDecisionTimeout.String() + ")"},
		{name: "seed", value: seed(&s.seed), doc: "seed of everything random"},
		{name: "shard", value: &text{p: &s.shard, what: "a part and how many there are, e.g. 2/4"}, computed: true, complete: completeWords("1/2", "2/2"),
			doc: "take this `part` of a load that several processes share, e.g. 2/4, with subjects of its own; quotabench merge joins the results"},
	}...)...)
}

// surroundings are the settings of the stores and of what is written.
func (s *settings) surroundings() []setting {
	table := []setting{
		{name: "pool", value: whole(&s.pool, 0, measure.MaxPool), computed: true,
			doc: "connections per instance and store (default: what the strategy asks for, or one per worker, at most 64 to Redis and 16 to PostgreSQL)"},
		{name: "cold", value: &boolean{&s.cold},
			doc: "open a connection for each command, pipeline or transaction, as functions do that start for each call"},
		{name: "client", value: &list{p: &s.clients}, complete: completeWords(clientNames()...),
			doc: "`kinds` of the Redis client, each strategy once with each: plain, or autopipeline, which sends the commands of callers that come at the same time in one pipeline; a strategy has one of its own as in lua-reserve@autopipeline; may be repeated"},
		{name: "client-retries", value: whole(&s.retries, 0, measure.MaxRetries),
			doc: "how often the Redis client repeats a failed command"},
		{name: "cores", value: &coresValue{&s.cores}, complete: completeWords(measure.CoresAuto, measure.CoresShared, measure.CoresApart, "harness=", "stores="),
			doc: "where harness and stores run: auto, shared, apart or `lists` of processors such as harness=0-1,stores=2-3"},
		{name: "outage", value: &list{p: &s.outages}, complete: completeWords("redis:0.3-0.6", "redis:0.3-0.6:empty", "redis:0.5-0.52:failover", "postgres:0.3-0.6"),
			doc: "inject a store outage, e.g. `redis:0.3-0.6` (shares of the duration); with :empty added it comes back without its data, with :failover as its replica, with :failover=20ms as that of so long before; may be repeated"},
		{name: "change-limit", value: &list{p: &s.limitChanges}, complete: completeWords("0.5:40"),
			doc: "give all subjects another limit in mid-run, e.g. `0.5:40` (when, as a share of the duration, and units from then on); may be repeated"},
	}
	return append(append(table, s.storeSettings()...),
		setting{name: "max-bound", value: percent(&s.maxBound), computed: true, doc: maxBoundDoc},
		s.failOnSetting("leak>0 or p99/reference>1.2"), s.undecidedSetting(),
		setting{name: "against", value: &text{p: &s.against, what: "the path of a program"}, computed: true,
			doc: "measure another `program` of quotabench too, in pairs of rounds in random order, and compare: exit with 1 where this one is worse; what is slower is measured again before it counts"},
		setting{name: "format", value: &text{p: &s.format, choices: comparisonFormats()}, computed: true, complete: completeWords(comparisonFormats()...),
			doc: "how to show what --against found: " + strings.Join(comparisonFormats(), ", ") + " (default " + comparisonFormats()[0] + "); github also writes the job's summary"},
		setting{name: "history", value: &text{p: &s.history}, computed: true,
			doc: "`directory` to keep the history of each run in, for quotabench judge"},
		setting{name: "metrics", value: &text{p: &s.metrics, what: "an address such as 127.0.0.1:9464"}, computed: true, complete: completeWords("127.0.0.1:9464"),
			doc: "serve figures to Prometheus at this `address` while the run lasts, e.g. 127.0.0.1:9464 or :9464, which is the loopback interface too"},
		setting{name: "json", value: &boolean{&s.asJSON}, doc: "write the record to standard output as JSON, in place of tables"},
		setting{name: "verbose", value: &boolean{&s.verbose},
			doc: "show all of report.txt: costs, guarantees, notes and what the audit found too"},
		setting{name: "out", value: &text{p: &s.out}, computed: true,
			doc: "`directory` for results.json and plots (default quotabench-results/<time>)"})
}

// clientNames are the kinds of Redis clients.
func clientNames() (names []string) {
	for _, c := range strategies.Clients() {
		names = append(names, string(c))
	}
	return names
}

// register makes a flag of every setting.
func (s *settings) register(cmd *cobra.Command) {
	s.flags = cmd.Flags()
	for _, x := range s.table {
		f := s.flags.VarPF(x.value, x.name, "", x.doc)
		if _, ok := x.value.(*boolean); ok {
			f.NoOptDefVal = "true"
		}
		if x.complete != nil {
			f.Value = completed{x.value, x.complete}
		}
	}
}

// lookup returns the setting with the name, or nil.
func (s *settings) lookup(name string) *setting {
	for i := range s.table {
		if s.table[i].name == name {
			return &s.table[i]
		}
	}
	return nil
}

// names of all settings, in the order of the table.
func (s *settings) names() []string {
	names := make([]string, len(s.table))
	for i, x := range s.table {
		names[i] = x.name
	}
	return names
}

// rank says where a value comes from: a higher one wins over a lower one.
type rank int

const (
	byDefault rank = iota
	byFile
	byFlag
)

func (s *settings) rank(name string) rank {
	if s.flags != nil && s.flags.Changed(name) {
		return byFlag
	}
	if s.places[name] != "" {
		return byFile
	}
	return byDefault
}

func (s *settings) given(name string) bool { return s.rank(name) != byDefault }

// byPosition takes strategies that were given as arguments, which win over those
// of a file.
func (s *settings) byPosition(args []string) error {
	if len(args) == 0 {
		return nil
	}
	if s.rank("strategy") == byFlag {
		return usagef("give strategies as arguments or by --strategy, not both")
	}
	s.strategy = args
	return nil
}

// fileFlags are the flags of a command that a file can hold the settings of.
type fileFlags struct {
	file  string
	print bool // write the configuration in force and do nothing
}

func (c *fileFlags) register(cmd *cobra.Command, nothing string) {
	cmd.Flags().VarP(&text{p: &c.file, what: "the name of a file"}, "config", "", "take settings from a YAML `file`, one key per flag; flags win over it")
	cmd.Flags().VarPF(&boolean{&c.print}, "print-config", "", "write the configuration in force as YAML and "+nothing+" nothing").NoOptDefVal = "true"
}

// read takes the settings of the file, if there is one, and strategies given as
// arguments.
func (c *fileFlags) read(s *settings, args []string) error {
	if c.file != "" {
		if err := s.readFile(c.file); err != nil {
			return err
		}
	}
	return s.byPosition(args)
}

// wrong reports a value that does not fit, where the user wrote it.
func (s *settings) wrong(name string, err error) error {
	var e *exitError
	if errors.As(err, &e) {
		return err // it was interrupted
	}
	if s.rank(name) == byFile {
		return usagef("%s: %s: %w", s.places[name], name, err)
	}
	return usagef("--%s: %w", name, err)
}
