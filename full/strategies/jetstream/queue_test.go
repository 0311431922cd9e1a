package jetstream_test

import (
	"testing"

	"github.com/quotabench/quotabench/full/internal/served"
	_ "github.com/quotabench/quotabench/full/stores/nats"
	_ "github.com/quotabench/quotabench/full/strategies/jetstream"
	"github.com/quotabench/quotabench/internal/codes"
	_ "github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func TestConformance(t *testing.T) { served.Start(t, codes.QueueOfCharges).Run(t) }

func request(id uint64, p *quota.Policy) quota.Request {
	return quota.Request{ID: id, Subject: "s", Policy: p, Units: 1}
}

// TestLag: every decision was in the stream for some time.
func TestLag(t *testing.T) {
	s, _, _ := served.Start(t, codes.QueueOfCharges).Open(t, nil)
	defer func() { _ = s.Close(t.Context()) }()
	p := served.StandingPolicy(2)
	for i := range uint64(4) {
		if d, err := s.Take(t.Context(), request(i, p)); err != nil || d.Admitted != (i < 2) || d.Tier != "queue" {
			t.Errorf("request %d: %+v, %v", i, d, err)
		}
	}
	if m := served.Measures(s); m["messages decided"] != 4 || m["queue lag, most"] <= 0 ||
		m["queue lag, sum"] < m["queue lag, most"] || m["gone ahead"] != 0 {
		t.Errorf("%v, want 4 messages with a lag", m)
	}
}

// TestMeanwhile: callers that go ahead are admitted over the limit, until the
// instance has heard that nothing is left.
func TestMeanwhile(t *testing.T) {
	s, _, _ := served.Start(t, codes.QueueOfCharges).Open(t, quota.Options{"meanwhile": "admit"})
	defer func() { _ = s.Close(t.Context()) }()
	p := served.StandingPolicy(1)
	var admitted int64
	for id := uint64(1); ; id++ {
		d, err := s.Take(t.Context(), request(id, p))
		if err != nil {
			t.Fatal(err)
		}
		if !d.Admitted {
			if d.Tier != "queue" {
				t.Errorf("%+v is rejected by an instance that does not know", d)
			}
			break
		}
		admitted++
		if admitted > 10_000 {
			t.Fatal("never rejected")
		}
	}
	m := served.Measures(s)
	if m["gone ahead"] != admitted || m["turned down afterwards"] != admitted-1 {
		t.Errorf("%v, want %d gone ahead and all but the first turned down", m, admitted)
	}
	r, err := s.(strategies.Viewer).Used(t.Context(), "s", p)
	if err != nil || len(r) != 1 || r[0].Units != 1 || !r[0].Known {
		t.Errorf("the consumer has counted %+v (%v), want the limit of 1", r, err)
	}
	if err := s.(strategies.Refunder).Refund(t.Context(), quota.Reservation{Request: request(1, p)}); err != nil {
		t.Fatal(err)
	}
	if d, err := s.Take(t.Context(), request(0, p)); err != nil || !d.Admitted || d.Tier != "queue" {
		t.Errorf("after a refund: %+v, %v; want the consumer's word", d, err)
	}
	if d, err := s.Take(t.Context(), request(0, p)); err != nil || !d.Admitted || d.Tier != "meanwhile" {
		t.Errorf("after the consumer has admitted one: %+v, %v; want to go ahead again", d, err)
	}
}

// TestConsumerReadsItsCountersFromTheStream: a consumer that was lost is replaced by
// one that knows as much.
func TestConsumerReadsItsCountersFromTheStream(t *testing.T) {
	queue := served.Start(t, codes.QueueOfCharges)
	s, client, prefix := queue.Open(t, nil)
	p := served.StandingPolicy(3)
	for id := range uint64(2) {
		if _, err := s.Take(t.Context(), request(id, p)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	next := queue.OpenOn(t, nil, client, prefix)
	defer func() { _ = next.Close(t.Context()) }()
	for id, want := range []bool{true, false} {
		if d, err := next.Take(t.Context(), request(uint64(2+id), p)); err != nil || d.Admitted != want {
			t.Errorf("request %d: %+v, %v; want admitted %v", 2+id, d, err, want)
		}
	}
}
