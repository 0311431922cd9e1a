package stores_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/internal/storecheck"
)

// opened lists the specs that the driver "fake" was asked for, and closed those
// whose stores were closed.
var opened, closed []string

func init() {
	stores.Register(stores.Driver{
		Name: "fake", Title: "Fake", URLs: "fake://", Choices: []stores.Choice{{Word: "good"}, {Word: "fake://"}},
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
	want := []stores.Spec{{Name: "fake", From: "good"}, {Name: "fake.2", From: "fake://h/?a=b"}, {Name: "fake.a-b_c.d", From: "good"}}
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
	opened, closed = nil, nil
	s, err := stores.OpenSet(t.Context(), []stores.Spec{{Name: "fake.2", From: "b"}, {Name: "fake", From: "a"}, {Name: "fake.3", From: "none"}})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"b", "a", "none"}; !slices.Equal(opened, want) {
		t.Errorf("opened %v, want %v", opened, want)
	}
	if why, ok := s.Absent("fake.3"); !ok || why.Detail != "asked for" || !slices.Equal(s.Names(), []string{"fake", "fake.2"}) {
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
		opened, closed = nil, nil
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
	for _, d := range []stores.Driver{{Name: "", Open: open}, {Name: "a.b", Open: open}, {Name: "fake", Open: open}, {Name: "another"}} {
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

func TestSurveyAsksTheDrivers(t *testing.T) {
	found := stores.Survey(t.Context())
	if !slices.Contains(found, stores.Finding{Name: "fake thing", Found: true}) {
		t.Errorf("%+v", found)
	}
}
