package trouble

import (
	"encoding/json"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	_ "github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/quota"
)

const ms = time.Millisecond

func redis(w What) Event {
	return Event{Where: Where{Name: "redis", Instance: All}, What: w, When: Always}
}

func TestParse(t *testing.T) {
	network := func(c Conditions) Event { return redis(What{Conditions: c}) }
	in := func(e Event, from, to float64) Event {
		e.When = When{from, to}
		return e
	}
	of := func(e Event, name string, instance int) Event {
		e.Where = Where{Name: name, Instance: instance}
		return e
	}
	for text, want := range map[string]Event{
		"redis:away":                         redis(What{Word: Away}),
		"redis:empty@0.3-0.6":                in(redis(What{Word: Empty}), 0.3, 0.6),
		"redis:failover@0.5-0.52":            in(redis(What{Word: Failover}), 0.5, 0.52),
		"redis:failover=20ms@0.5-1":          in(redis(What{Word: Failover, For: 20 * ms}), 0.5, 1),
		"postgres.2:locked@0-0.5":            in(of(redis(What{Word: "locked"}), "postgres.2", All), 0, 0.5),
		"redis:latency=2ms,jitter=1ms":       network(Conditions{Latency: 2 * ms, Jitter: ms}),
		"redis:latency=0s":                   network(Conditions{}),
		"redis:latency=1h,jitter=1h":         network(Conditions{Latency: time.Hour, Jitter: time.Hour}),
		"redis/2:cut@0.3-0.6":                in(of(network(Conditions{Cut: true}), "redis", 2), 0.3, 0.6),
		"redis/0:loss=1,reply-loss=1":        of(network(Conditions{Loss: 1, ReplyLoss: 1}), "redis", 0),
		"redis:bandwidth=2MB,cut":            network(Conditions{Bandwidth: 2e6, Cut: true}),
		"redis:bandwidth=1500B":              network(Conditions{Bandwidth: 1500}),
		"redis:bandwidth=1000GB":             network(Conditions{Bandwidth: 1e12}),
		"redis:loss=0.0000001@0.0000001-0.5": in(network(Conditions{Loss: 1e-7}), 1e-7, 0.5),
		"callers:killed=0.01":                of(redis(What{Word: Killed, Share: 0.01, After: 1}), Callers, All),
		"callers:killed=1,after=1000":        of(redis(What{Word: Killed, Share: 1, After: 1000}), Callers, All),
		"keys/quota:*:add=100@0.5":           {Where{Keys, All, "quota:*"}, What{Word: Add, Units: 100}, When{0.5, 0.5}},
		"keys/a/b@c:add=-7@0.25":             {Where{Keys, All, "a/b@c"}, What{Word: Add, Units: -7}, When{0.25, 0.25}},
		"limit:is=40@0.5":                    in(of(redis(What{Word: Is, Units: 40}), Limit, All), 0.5, 0.5),
		"instances:paused=1m30s@0": in(of(redis(What{Word: Paused, For: 90 * time.Second}), Instances, All), 0,
			0),
		"instance/1:paused=5m@0.5": in(of(redis(What{Word: Paused, For: 5 * time.Minute}), Instances, 1), 0.5,
			0.5),
		"instance/12:restarted@0.999": in(of(redis(What{Word: Restarted}), Instances, 12), 0.999, 0.999),
		"instances:clock=0s":          of(redis(What{Word: Ahead}), Instances, All),
		"instance/2:clock=-2s@0.5": in(of(redis(What{Word: Ahead, For: -2 * time.Second}), Instances, 2), 0.5,
			0.5),
		"instance/0:clock=8784h":               ClockAhead(0, 8784*time.Hour),
		"redis.durable:connections-taken@0-.5": in(of(redis(What{Word: "connections-taken"}), "redis.durable", All), 0, 0.5),
	} {
		e, err := Parse(text)
		if err != nil || e != want {
			t.Errorf("%s: %+v, %v", text, e, err)
		}
		if got := e.String(); got != strings.Replace(text, "-.5", "-0.5", 1) {
			t.Errorf("%s is written as %s", text, got)
		}
	}
	for text, want := range map[string]string{
		"redis:away@0-1": "redis:away", "redis:bandwidth=1500,latency=0s": "redis:bandwidth=1500B",
		"redis:cut,loss=0":          "redis:cut",
		"callers:after=1,killed=.5": "callers:killed=0.5", "redis:latency=60m": "redis:latency=1h",
	} {
		if e, err := Parse(text); err != nil || e.String() != want {
			t.Errorf("%s is written as %s, %v; want %s", text, e, err, want)
		}
	}
}

// TestRefused: an error shows a text that can be read, and is close to the one that cannot.
func TestRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                                       "redis:away@0.3-0.6",
		"5":                                      "redis:away@0.3-0.6",
		"redis":                                  "redis:away@0.3-0.6",
		"redis:":                                 "redis:away@0.3-0.6",
		"redis:0.25-0.5":                         "redis:away@0.25-0.5",
		"redis:0.25-0.5:empty":                   "redis:empty@0.25-0.5",
		"redis:0.25-0.5:failover=5ms":            "redis:failover=5ms@0.25-0.5",
		"redis/2:0.25-0.5:cut":                   "redis/2:cut@0.25-0.5",
		"redis.2:latncy=7ms":                     "redis.2:latency=7ms",
		"redis:away@0.6-0.3":                     "redis:away@0.3-0.6",
		"redis:away@0.5":                         "redis:away@0.3-0.6",
		"redis:away=1s@0.25-0.5":                 "redis:away@0.25-0.5",
		"redis:away,empty":                       "redis:away@0.3-0.6",
		"redis:away,cut":                         "redis:away@0.3-0.6",
		"redis/1:away@0.25-0.5":                  "redis/1:latency=2ms,jitter=1ms@0.25-0.5",
		"redis/-1:cut":                           "redis/1:cut@0.3-0.6",
		"redis/01:cut":                           "redis/1:cut@0.3-0.6",
		"redis:latency=2":                        "redis:latency=2ms,jitter=1ms",
		"redis:latency=-1ms":                     "redis:latency=2ms,jitter=1ms",
		"redis:latency=1ms,jitter=2ms":           "redis:latency=1ms",
		"redis:latency=1ms,latency=2ms":          "redis:latency=1ms",
		"redis:latency":                          "redis:latency=2ms,jitter=1ms",
		"redis:loss=NaN":                         "redis:loss=0.01",
		"redis:bandwidth=0":                      "redis:bandwidth=100kB",
		"redis:away@0.25-2":                      "redis:away@0.3-0.6",
		"redis:cut=":                             "redis:cut@0.3-0.6",
		"redis:cut=2s":                           "redis:cut@0.3-0.6",
		"redis:failover=0s@0.5-0.6":              "redis:failover@0.5-0.6",
		"postgres:is=5@0.5":                      "postgres:away@0.3-0.6",
		"callers:killed=2":                       "callers:killed=0.01,after=2",
		"callers:killed=0":                       "callers:killed=0.01,after=2",
		"callers:after=3":                        "callers:killed=0.01,after=2",
		"callers:killed=0.5,after=0":             "callers:killed=0.5",
		"callers:killed=0.5@0.5":                 "callers:killed=0.5",
		"caller:killed=0.5":                      "callers:killed=0.5",
		"keys/quota:*:7@0.25":                    "keys/quota:*:add=7@0.25",
		"keys/x:add=0@0.25":                      "keys/x:add=100@0.25",
		"keys/x:add=7":                           "keys/x:add=7@0.5",
		"keys/x:add=7@0":                         "keys/x:add=7@0.5",
		"keys:add=7@0.25":                        "keys/quota:*:add=7@0.25",
		"keys/[:add=7@0.25":                      "keys/quota:*:add=7@0.25",
		"limit:40@0.25":                          "limit:is=40@0.25",
		"limit:is=0@0.25":                        "limit:is=40@0.25",
		"limit:is=4@0.25-0.5":                    "limit:is=4@0.5",
		"instance/1:pause=11s@0.25":              "instance/1:paused=11s@0.25",
		"instances:paused=11s":                   "instances:paused=11s@0.5",
		"instances:paused=11s@1":                 "instances:paused=11s@0.5",
		"instance:restart@0.25":                  "instances:restarted@0.25",
		"instances/1:restarted@0.25":             "instances:restarted@0.25",
		"instance/0:clock=8785h":                 "instance/0:clock=-2s@0.5",
		"instance/0:clock=2s@0":                  "instance/0:clock=2s@0.5",
		"paused=11s@0.25":                        "instance/1:paused=11s@0.25",
		strings.Repeat("redis:empty@0.3,", 5000): "redis:away@0.3-0.6",
		"redis://user:secret@h:6379/away":        "redis:away@0.3-0.6",
	} {
		_, err := Parse(text)
		if err == nil {
			t.Errorf("%q is read", text)
			continue
		}
		_, got, _ := cutLast(err.Error(), ", as in ")
		if got != want {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}

// TestExamples: what is offered can be read, and is written the same way.
func TestExamples(t *testing.T) {
	for _, text := range Examples() {
		if e, err := Parse(text); err != nil || e.String() != text {
			t.Errorf("%s is read as %s, %v", text, e, err)
		}
	}
	if n := len(Examples()); n < 25 {
		t.Errorf("%d examples", n)
	}
}

// TestRoundTrip: what a random event is written as is read as that event, and a random text is either read and written
// the same way from then on, or refused with a text that is.
func TestRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	pieces := regexp.MustCompile(`[a-z-]+|[0-9.]+|.`)
	var words []string
	for _, text := range append(Examples(), "redis/2:latency=2ms@0.1-1", "instances:paused=1h", "x:0s,1ns=-5") {
		words = append(words, pieces.FindAllString(text, -1)...)
	}
	reads := 0
	for range 4_000 {
		text := Examples()[r.IntN(len(Examples()))]
		parts := pieces.FindAllString(text, -1)
		for range r.IntN(3) {
			switch i := r.IntN(len(parts) + 1); {
			case i < len(parts) && r.IntN(3) > 0:
				parts[i] = words[r.IntN(len(words))]
			default:
				parts = slices.Insert(parts, i, words[r.IntN(len(words))])
			}
		}
		text = strings.Join(parts, "")
		e, err := Parse(text)
		if err != nil {
			_, near, _ := cutLast(err.Error(), ", as in ")
			if _, wrong := Parse(near); wrong != nil || strings.Contains(err.Error(), "\n") {
				t.Fatalf("%q: %v: the nearest is no event: %v", text, err, wrong)
			}
			continue
		}
		reads++
		again, err := Parse(e.String())
		if err != nil || again != e || again.String() != e.String() {
			t.Fatalf("%q is %+v, written as %s, read as %+v, %v", text, e, e, again, err)
		}
		b, err := json.Marshal(List{e})
		var l List
		if err != nil || json.Unmarshal(b, &l) != nil || !slices.Equal(l, List{e}) {
			t.Fatalf("%s becomes %s and %v", e, b, l)
		}
	}
	if reads < 1_000 {
		t.Errorf("only %d texts were read", reads)
	}
}

func TestKinds(t *testing.T) {
	l := MustParse("redis:latency=2ms", "redis:away@0.5-0.6", "limit:is=4@0.25", "callers:killed=0.5", "keys/x:add=1@0.5",
		"instances:paused=1s@0.5", "instances:restarted@0.5", "instance/1:clock=1s", "redis:restarted@0.1-0.2")
	for i, want := range []Kind{Network, Outage, Change, Kill, Tamper, Pause, Restart, Skew, Outage} {
		if got := l[i].Kind(); got != want {
			t.Errorf("%s is of kind %d, want %d", l[i], got, want)
		}
		if got := l[i].Breaks(); got != (i == 8) {
			t.Errorf("%s breaks a server: %t", l[i], got)
		}
	}
	if got := l.Of(Outage).InTime().Strings(); !slices.Equal(got,
		[]string{"redis:restarted@0.1-0.2", "redis:away@0.5-0.6"}) {
		t.Errorf("%q", got)
	}
	if got := len(l.Without(Outage, Network)); got != 6 {
		t.Errorf("%d events without stores", got)
	}
	if !l.Has(Away) || l.Has(Empty) {
		t.Error("what happens is not found")
	}
}

func TestFaults(t *testing.T) {
	for text, want := range map[string][]quota.Fault{
		"redis:away":                    {quota.FaultOutage},
		"redis:empty":                   {quota.FaultOutage, quota.FaultEviction},
		"redis:failover=1s":             {quota.FaultOutage, quota.FaultFailover},
		"redis:scripts-lost":            nil,
		"redis:flushed":                 {quota.FaultEviction},
		"redis:latency=1s,bandwidth=1B": nil,
		"redis:loss=0.1":                {quota.FaultOutage},
		"redis:reply-loss=0.1":          {quota.FaultLostReply},
		"redis:cut":                     {quota.FaultOutage, quota.FaultLostReply},
	} {
		if e := MustParse(text)[0]; !slices.Equal(e.Faults(), want) {
			t.Errorf("%s: %v", text, e.Faults())
		}
	}
}

// TestWhen: an event lasts from its beginning on, and at its end no more, except the end of the run.
func TestWhen(t *testing.T) {
	const s = time.Second
	for at, want := range map[time.Duration]bool{s - 1: false, s: true, 2*s - 1: true, 2 * s: false} {
		if (When{0.25, 0.5}).In(at, 4*s) != want {
			t.Errorf("it lasts at %v: %t", at, !want)
		}
	}
	if !(When{0.25, 1}).In(9*s, 4*s) {
		t.Error("it ends before the run")
	}
}

func TestClocks(t *testing.T) {
	const s = time.Second
	got := MustParse("redis:away", "instance/1:clock=2s", "instance/3:clock=-1.5s@0.25").Clocks(4, 8*s)
	if want := []Clock{{}, {Ahead: 2 * s}, {}, {Ahead: -1500 * ms, From: 2 * s}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := MustParse("instances:clock=1s").Clocks(2, s); !slices.Equal(got, []Clock{{Ahead: s}, {Ahead: s}}) {
		t.Errorf("of all instances: %v", got)
	}
	if got := MustParse("redis:away").Clocks(2, s); got != nil {
		t.Errorf("of none: %v", got)
	}
}

func TestCheck(t *testing.T) {
	if err := MustParse("redis/3:cut@0.3-0.6", "redis:away@0.1-0.2", "redis:away@0.2-0.3", "postgres:away@0.1-0.3",
		"limit:is=3@0.1",
		"limit:is=4@0.2", "instance/0:clock=1s", "instance/3:clock=1s@0.5", "instances:paused=500ms@0.5",
		"redis:failover=300ms@0.3-0.4").Check(4, time.Second); err != nil {
		t.Error(err)
	}
	if err := MustParse("redis:latency=1s", "callers:killed=0.5", "instances:clock=1s").Check(1, 0); err != nil {
		t.Errorf("without a duration: %v", err)
	}
	for texts, part := range map[string]string{
		"redis/4:cut":                                   "redis/4:cut: instances are 0 to 3, so give redis/3:cut",
		"instance/4:clock=1s":                           "give instance/3:clock=1s",
		"redis:away@0.1-0.2 redis:empty@0.15-0.3":       "redis:away@0.1-0.2 and redis:empty@0.15-0.3: they overlap",
		"redis:away redis:away@0.15-0.3":                "they overlap",
		"limit:is=3@0.1 limit:is=4@0.1":                 "at the same time",
		"callers:killed=0.1 callers:killed=0.2,after=3": "in one way",
		"instance/1:clock=1s instance/1:clock=1s@0.5":   "one clock",
		"instance/1:clock=1s instances:clock=1s":        "one clock",
		"instances:paused=501ms@0.5":                    "give instances:paused=500ms@0.5, or less",
		"redis:failover=301ms@0.3-0.4":                  "give redis:failover=300ms@0.3-0.4, or less",
	} {
		if err := MustParse(strings.Fields(texts)...).Check(4, time.Second); err == nil ||
			!strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v", texts, err)
		}
	}
	for _, text := range []string{"redis:away", "redis:cut@0.3-1", "redis:cut@0-0.6", "limit:is=3@0.1", "keys/x:add=1@0.5",
		"instances:paused=1s@0",
		"instances:restarted@0", "instances:clock=1s@0.5"} {
		if err := MustParse(text).Check(4, 0); err == nil || !strings.Contains(err.Error(), "give --duration") {
			t.Errorf("%s without a duration: %v", text, err)
		}
	}
	for _, e := range []Event{{}, redis(What{Word: "slow"}), redis(What{Word: Away, Units: 5}),
		{Where: Where{Name: Limit}, What: What{Word: Is, Units: 4}, When: When{0.5, 0.5}}} {
		if err := (List{e}).Check(4, time.Second); err == nil {
			t.Errorf("%+v is fine", e)
		}
	}
}
