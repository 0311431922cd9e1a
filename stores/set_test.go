package stores_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/stores/storecheck"
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

// opened lists the specs that the driver "fake" was asked for, and closed those
// whose stores were closed.
var opened, closed []string

func init() {
	stores.Register(stores.Driver{
		Name: "fake", Title: "Fake", Class: stores.ClassSQL, Noun: "table", URLs: "fake://",
		Choices: []stores.Choice{{Word: "good"}, {Word: "fake://"}},
		Open: func(_ context.Context, spec string, _ stores.Options) (stores.Store, error) {
			opened = append(opened, spec)
			switch spec {
			case "bad":
				return nil, errors.New("out of order")
			case "none":
				return nil, &stores.AbsentError{Reason: stores.Info{Kind: stores.KindModel, Detail: "asked for"}}
			}
			return closable{name: spec, closed: &closed}, nil
		},
		Survey: func(context.Context) []stores.Finding { return []stores.Finding{{Name: "fake thing", Found: true}} },
	})
}

func TestParseSpecs(t *testing.T) {
	got, err := stores.ParseSpecs([]string{"fake=good", "fake.2=fake://h/?a=b", "fake.a-b_c.d=good"})
	want := []stores.Spec{{Name: "fake", From: "good"}, {Name: "fake.2", From: "fake://h/?a=b"},
		{Name: "fake.a-b_c.d", From: "good"}}
	if err != nil || len(got) != len(want) {
		t.Fatalf("%+v, %v", got, err)
	}
	for i := range want {
		if got[i].Name != want[i].Name || got[i].From != want[i].From {
			t.Errorf("%+v, want %+v", got[i], want[i])
		}
	}
	for text, want := range map[string]string{
		"good":                     "NAME=SPEC",
		"fake://u:s3cr3t@h":        "NAME=SPEC",
		"fake://u:s3cr3t@h/?a=b":   "NAME=SPEC",
		"other=good":               `no kind of store "other"`,
		"=good":                    "no kind of store",
		"fake=":                    "give good or a URL",
		"fake.=good":               "no name of a store",
		"fake. x=good":             "no name of a store",
		"Fake=good":                `no kind of store "Fake"`,
		"fake.2=good,fake.2=again": "",
	} {
		_, err := stores.ParseSpecs([]string{text})
		if want == "" {
			_, err = stores.ParseSpecs(strings.Split(text, ","))
			want = "given twice"
		}
		if err == nil {
			t.Errorf("%s: taken", text)
			continue
		}
		storecheck.Error(t, err, want)
	}
}

func TestOpenSet(t *testing.T) {
	opened = nil
	closed = nil
	s, err := stores.OpenSet(t.Context(),
		[]stores.Spec{{Name: "fake.2", From: "b"}, {Name: "fake", From: "a"}, {Name: "fake.3", From: "none"}})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"b", "a", "none"}; !slices.Equal(opened, want) {
		t.Errorf("opened %v, want %v", opened, want)
	}
	if why, ok := s.Absent("fake.3"); !ok || why.Detail != "asked for" ||
		!slices.Equal(s.Names(), []string{"fake", "fake.2"}) {
		t.Errorf("names %v, absent %+v %v", s.Names(), why, ok)
	}
	if err := s.Close(); err != nil || len(closed) != 2 {
		t.Errorf("closed %v, %v", closed, err)
	}
}

// What was opened before one that cannot be is closed again.
func TestOpenSetThatFails(t *testing.T) {
	for _, x := range []struct {
		last stores.Spec
		want string
	}{
		{stores.Spec{Name: "fake.3", From: "bad"}, "store fake.3: out of order"},
		{stores.Spec{Name: "fake", From: "bad"}, "out of order"},
		{stores.Spec{Name: "fake.3"}, "is empty"},
		{stores.Spec{Name: "fake.2", From: "good"}, "two stores of the name fake.2"},
		{stores.Spec{Name: "other", From: "good"}, "no kind of store"},
	} {
		opened = nil
		closed = nil
		s, err := stores.OpenSet(t.Context(), []stores.Spec{{Name: "fake.2", From: "a"}, x.last})
		if s != nil || err == nil {
			t.Errorf("%+v: %v, %v", x.last, s, err)
			continue
		}
		storecheck.Error(t, err, x.want)
		if !slices.Equal(closed, []string{"a"}) {
			t.Errorf("%+v: closed %v", x.last, closed)
		}
	}
}

func TestRegisterRefusesWhatCannotBeUsed(t *testing.T) {
	open := func(context.Context, string, stores.Options) (stores.Store, error) { return nil, nil }
	for _, d := range []stores.Driver{{Name: "", Open: open}, {Name: "a.b", Open: open}, {Name: "fake", Open: open},
		{Name: "another"}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%q was registered", d.Name)
				}
			}()
			stores.Register(d)
		}()
	}
}

// TestKindsAreData: what reports say of a kind of store follows from its driver.
func TestKindsAreData(t *testing.T) {
	if got := stores.Amount("fake", 2) + ", " + stores.Amount("further", 1); got != "2 tables, 1 key" {
		t.Error(got)
	}
	for driver, want := range map[string]stores.Class{"fake": stores.ClassSQL, "further": stores.ClassOther,
		"unknown": stores.ClassOther} {
		if got := stores.ClassOf(driver); got != want {
			t.Errorf("%s: %s, want %s", driver, got, want)
		}
	}
}

func TestSurveyAsksTheDrivers(t *testing.T) {
	found := stores.Survey(t.Context())
	if !slices.Contains(found, stores.Finding{Name: "fake thing", Found: true}) {
		t.Errorf("%+v", found)
	}
}

func init() {
	open := func(spec string) (stores.Store, error) {
		opened = append(opened, spec)
		if strings.HasPrefix(spec, "further.bad") {
			return nil, errors.New("out of order")
		}
		return closable{name: spec, closed: &closed}, nil
	}
	stores.Register(stores.Driver{
		Name: "further", Choices: []stores.Choice{{Word: "default"}},
		Open: func(_ context.Context, spec string, _ stores.Options) (stores.Store, error) { return open(spec) },
		Further: func(_ context.Context, f stores.Further) (stores.Store, error) {
			main := "nothing"
			if c, ok := f.Main.(closable); ok {
				main = c.name
			}
			if f.Spec != "" {
				return open(f.Name + " by " + f.Spec + " beside " + main)
			}
			return open(f.Name + " as " + f.MainSpec + " beside " + main)
		},
	})
}

// TestOpenNeeded has a driver that cannot open some of the stores that are needed.
func TestOpenNeeded(t *testing.T) {
	specs := []stores.Spec{
		{Name: "further", From: "default", Optional: true},
		{Name: "fake", From: "bad", Optional: true},
		{Name: "fake.unasked", From: "x", Optional: true},
		{Name: "fake.given", From: "good"},
		{Name: "further.given", From: "spec"},
	}
	opened = nil
	closed = nil
	s, err := stores.OpenNeeded(t.Context(), specs,
		[]string{"further.2", "further.bad", "further.given", "fake", "fake.3", "other.1"})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"fake.given", "further", "further.2", "further.given"}; !slices.Equal(s.Names(), want) {
		t.Errorf("names %v, want %v", s.Names(), want)
	}
	if want := []string{"default", "bad", "good", "further.given by spec beside default",
		"further.2 as default beside default", "further.bad as default beside default"}; !slices.Equal(opened, want) {
		t.Errorf("opened %q, want %q", opened, want)
	}
	for name, want := range map[string]string{
		"further.bad": "out of order", "fake": "out of order", "fake.3": "--store fake.3=SPEC", "other.1": `no kind of store "other"`,
	} {
		why, ok := s.Absent(name)
		if !ok || why.Kind != stores.KindNone {
			t.Errorf("%s: %+v, %v", name, why, ok)
		}
		storecheck.Error(t, errors.New(why.Detail), want)
	}
	if err := s.Close(); err != nil || len(closed) != 4 {
		t.Errorf("closed %v, %v", closed, err)
	}
}

// What was asked for must be had.
func TestOpenNeededThatFails(t *testing.T) {
	opened = nil
	closed = nil
	s, err := stores.OpenNeeded(t.Context(), []stores.Spec{{Name: "fake.3", From: "bad"}, {Name: "fake", From: "good"}},
		nil)
	if s != nil || err == nil || !slices.Equal(closed, []string{"good"}) {
		t.Errorf("%v, %v, closed %v", s, err, closed)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	closed = nil
	s, err = stores.OpenNeeded(ctx, []stores.Spec{{Name: "fake.2", From: "good"}}, []string{"further.bad"})
	if s != nil || err == nil || !slices.Equal(closed, []string{"good"}) {
		t.Errorf("%v, %v, closed %v", s, err, closed)
	}
}
