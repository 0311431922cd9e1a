package stores_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/quotabench/quotabench/stores"
)

// closable is a store that notes when it is closed.
type closable struct {
	stores.Store
	name   string
	closed *[]string
	err    error
}

func (c closable) Close() error {
	*c.closed = append(*c.closed, c.name)
	return c.err
}

func TestSetKeepsStoresByName(t *testing.T) {
	var closed []string
	broken := errors.New("broken")
	s := stores.NewSet()
	for _, c := range []closable{{name: "redis"}, {name: "redis.2", err: broken}, {name: "etcd"}} {
		c.closed = &closed
		if err := s.Add(c.name, c); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.AddAbsent("postgres", stores.Info{Kind: stores.KindModel}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "redis", "postgres"} {
		if s.Add(name, closable{}) == nil || s.AddAbsent(name, stores.Info{}) == nil {
			t.Errorf("a second store of the name %q was taken", name)
		}
	}
	if got, want := s.Names(), []string{"etcd", "redis", "redis.2"}; !slices.Equal(got, want) {
		t.Errorf("names %v, want %v", got, want)
	}
	if st, ok := s.Get("redis.2"); !ok || st.(closable).name != "redis.2" {
		t.Errorf("redis.2 is %v, %v", st, ok)
	}
	if _, ok := s.Get("postgres"); ok {
		t.Error("an absent store was found")
	}
	if why, ok := s.Absent("postgres"); !ok || why.Kind != stores.KindModel {
		t.Errorf("absent: %+v, %v", why, ok)
	}
	if _, ok := s.Absent("redis"); ok {
		t.Error("a store that is there is absent")
	}
	if err := s.Close(); !errors.Is(err, broken) {
		t.Errorf("Close: %v", err)
	}
	if want := []string{"etcd", "redis.2", "redis"}; !slices.Equal(closed, want) {
		t.Errorf("closed %v, want %v", closed, want)
	}
}

func TestNilSetIsEmpty(t *testing.T) {
	var s *stores.Set
	if _, ok := s.Get("redis"); ok || len(s.Names()) != 0 || s.Close() != nil {
		t.Error("a nil set holds something")
	}
	if _, ok := s.Absent("redis"); ok {
		t.Error("a nil set knows of an absence")
	}
	if s.Add("redis", closable{}) == nil {
		t.Error("a nil set took a store")
	}
}
