package network

import (
	"slices"
	"strings"
	"testing"
	"time"

	_ "github.com/quotabench/quotabench/internal/testenv"
	"github.com/quotabench/quotabench/quota"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]Condition{
		"redis:latency=2ms,jitter=1ms":    {Store: "redis", Instance: -1, To: 1, Latency: 2 * time.Millisecond, Jitter: time.Millisecond},
		"redis/2:0.3-0.6:cut":             {Store: "redis", Instance: 2, From: 0.3, To: 0.6, Cut: true},
		"postgres.2:bandwidth=100kB":      {Store: "postgres.2", Instance: -1, To: 1, Bandwidth: 1e5},
		"redis:loss=0.25,reply-loss=0.5":  {Store: "redis", Instance: -1, To: 1, Loss: 0.25, ReplyLoss: 0.5},
		"redis:0.5-1:bandwidth=2MB,cut":   {Store: "redis", Instance: -1, From: 0.5, To: 1, Bandwidth: 2e6, Cut: true},
		"redis:bandwidth=1500,latency=0s": {Store: "redis", Instance: -1, To: 1, Bandwidth: 1500},
		"redis/0:loss=1,reply-loss=1":     {Store: "redis", To: 1, Loss: 1, ReplyLoss: 1},
		"redis:latency=1h,jitter=1h":      {Store: "redis", Instance: -1, To: 1, Latency: time.Hour, Jitter: time.Hour},
		"redis:0-0.5:bandwidth=1":         {Store: "redis", Instance: -1, To: 0.5, Bandwidth: 1},
		"redis:bandwidth=1000GB":          {Store: "redis", Instance: -1, To: 1, Bandwidth: 1e12},
	} {
		if c, err := Parse(text); err != nil || c != want {
			t.Errorf("%s: %+v, %v", text, c, err)
		}
	}
	for _, text := range []string{
		"", "redis", ":cut", "redis:", "redis:slow", "redis:cut=2s", "redis/:cut", "redis/-1:cut", "redis:0.6-0.3:cut", "redis:0.3-0.3:cut", "redis:0.3:cut",
		"redis:NaN-1:cut", "redis:0-1.1:cut", "redis:latency=2", "redis:latency=-1ms", "redis:latency=1ms,jitter=2ms", "redis:loss=2",
		"redis:loss=NaN", "redis:reply-loss=-1", "redis:bandwidth=0", "redis:bandwidth=1TB", "redis:latency=2h", "redis:0.3-0.6",
	} {
		if c, err := Parse(text); err == nil {
			t.Errorf("%q is read as %+v", text, c)
		}
	}
}

func TestCheck(t *testing.T) {
	for text, part := range map[string]string{
		"redis/3:0.3-0.6:cut": "", "redis/4:cut": "instances are 0 to 3", "redis:cut=1": "no condition",
	} {
		err := Check([]string{text}, 4, time.Second)
		if (err == nil) != (part == "") || err != nil && !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{"redis:0.3-1:cut", "redis:0-0.6:cut"} {
		if err := Check([]string{text}, 1, 0); err == nil {
			t.Errorf("%s: a share of no duration", text)
		}
	}
}

func TestFaults(t *testing.T) {
	for text, want := range map[string][]quota.Fault{
		"redis:latency=1s,bandwidth=1B": nil,
		"redis:loss=0.1":                {quota.FaultOutage},
		"redis:reply-loss=0.1":          {quota.FaultLostReply},
		"redis:cut":                     {quota.FaultOutage, quota.FaultLostReply},
	} {
		c, err := Parse(text)
		if got := c.Faults(); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
		is := func(name string) func(string) bool { return func(of string) bool { return of == name } }
		if all := []Condition{c}; Loses(all, is("redis")) != (want != nil) || Loses(all, is("postgres")) {
			t.Errorf("%s loses requests to redis: %t, to postgres: %t", text, Loses(all, is("redis")), Loses(all, is("postgres")))
		}
	}
}

// TestIn: a condition holds from its beginning on, and at its end no more.
func TestIn(t *testing.T) {
	c := Condition{From: 0.25, To: 0.5}
	for at, want := range map[time.Duration]bool{time.Second - 1: false, time.Second: true, 2*time.Second - 1: true, 2 * time.Second: false} {
		if c.In(at, 4*time.Second) != want {
			t.Errorf("it holds at %v: %t", at, !want)
		}
	}
}
