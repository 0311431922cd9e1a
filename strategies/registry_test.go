package strategies

import (
	"context"
	"maps"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/quota"
)

// withRegistry replaces the registry for one test.
func withRegistry(t *testing.T, metas ...Meta) {
	t.Helper()
	registry.mu.Lock()
	saved := maps.Clone(registry.m)
	registry.m = nil
	registry.mu.Unlock()
	t.Cleanup(func() {
		registry.mu.Lock()
		registry.m = saved
		registry.mu.Unlock()
	})
	for _, m := range metas {
		Register(m)
	}
}

// complete is a Meta with all that is asked for.
func complete(name string, options ...quota.Option) Meta {
	return Meta{
		Name: name, Doc: "for tests", Form: Reference, Kinds: []quota.Kind{quota.CalendarMonth, quota.Fixed},
		Counts: quota.CountsAdmitted, Options: options,
		Open: func(context.Context, Env) (Strategy, error) { return nil, nil },
	}
}

var testOptions = []quota.Option{
	{Name: "write", Default: "back", Values: []string{"back", "through", "literal"}},
	{Name: "reset", Default: "none", Values: []string{"none", "job"}},
	{Name: "pool", Default: "8", Type: "int"},
	{Name: "sync", Default: "5m", Type: "duration"},
	{Name: "multi", Default: "false", Type: "bool"},
	{Name: "note", Default: ""},
}

func TestRegisterRefusesWhatIsIncomplete(t *testing.T) {
	for name, spoil := range map[string]func(*Meta){
		"no name":           func(m *Meta) { m.Name = "" },
		"comma in the name": func(m *Meta) { m.Name = "a,b" },
		"colon in the name": func(m *Meta) { m.Name = "a:b" },
		"space in the name": func(m *Meta) { m.Name = "a b" },
		"mark in the name":  func(m *Meta) { m.Name = "a@b" },
		"no doc":            func(m *Meta) { m.Doc = "" },
		"no form":           func(m *Meta) { m.Form = "" },
		"no kinds":          func(m *Meta) { m.Kinds = nil },
		"no count":          func(m *Meta) { m.Counts = "" },
		"no Open":           func(m *Meta) { m.Open = nil },
		"default not valid": func(m *Meta) { m.Options = []quota.Option{{Name: "o", Default: "x", Values: []string{"y"}}} },
		"default no number": func(m *Meta) { m.Options = []quota.Option{{Name: "o", Default: "x", Type: "int"}} },
		"clause of nothing": func(m *Meta) {
			m.Guarantee = []quota.Clause{{Formula: "L", Bound: func(quota.Params) int64 { return 0 }}}
		},
		"clause, no bound": func(m *Meta) { m.Guarantee = []quota.Clause{{Property: quota.PropertyLeak, Formula: "L"}} },
		"clause, no words": func(m *Meta) {
			m.Guarantee = []quota.Clause{{Property: quota.PropertyLeak, Bound: func(quota.Params) int64 { return 0 }}}
		},
		"clause of a record among its own": func(m *Meta) {
			m.Guarantee = []quota.Clause{quota.Exactly().From("ADR-008", "none")}
		},
		"record without a source": func(m *Meta) { m.Record = []quota.Clause{quota.Exactly()} },
	} {
		t.Run(name, func(t *testing.T) {
			withRegistry(t)
			m := complete("fine")
			spoil(&m)
			defer func() {
				if recover() == nil {
					t.Error("registered")
				}
				if len(All()) != 0 {
					t.Error("left something in the registry")
				}
			}()
			Register(m)
		})
	}
}

func TestRegisterTwice(t *testing.T) {
	withRegistry(t, complete("one"))
	defer func() {
		if msg, _ := recover().(string); !strings.Contains(msg, "one is registered twice") {
			t.Errorf("panic %q", msg)
		}
	}()
	Register(complete("one"))
}

// TestBuildIn: a strategy without code is listed and says how to get it, until its
// code comes, once.
func TestBuildIn(t *testing.T) {
	m := complete("far")
	open := m.Open
	m.Open = nil
	m.Elsewhere = "build with -tags far"
	withRegistry(t, m, complete("near"))
	far, err := Lookup("far")
	if err != nil {
		t.Fatal(err)
	}
	if err := far.BuiltIn(); err == nil ||
		!strings.Contains(err.Error(), "not built into this program: build with -tags far") {
		t.Errorf("%v; want how to get it", err)
	}
	panics := func(name string, open func(context.Context, Env) (Strategy, error)) (yes bool) {
		defer func() { yes = recover() != nil }()
		BuildIn(name, open)
		return false
	}
	if !panics("far", nil) {
		t.Error("built in by nothing")
	}
	BuildIn("far", open)
	if err := far.BuiltIn(); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"far", "near", "nowhere"} {
		if !panics(name, open) {
			t.Errorf("%s: built in where it is there already, or not registered", name)
		}
	}
}

func TestAllIsSortedAndLookupFinds(t *testing.T) {
	withRegistry(t, complete("b"), complete("c"), complete("a"))
	var names []string
	for _, m := range All() {
		names = append(names, m.Name)
	}
	if got := strings.Join(names, " "); got != "a b c" {
		t.Errorf("all are %s", got)
	}
	if m, err := Lookup("b"); err != nil || m.Name != "b" {
		t.Errorf("looked up %v, %v", m, err)
	}
	if _, err := Lookup("d"); err == nil ||
		!strings.Contains(err.Error(), "one of a, b, c, core, all, or a pattern such as pg-*") {
		t.Errorf("unknown name: %v", err)
	}
}

func TestParse(t *testing.T) {
	withRegistry(t, complete("incr-expire"), complete("three-tier", testOptions...), complete("unlimited"))
	for _, c := range []struct{ list, want, err string }{
		{list: "incr-expire", want: "incr-expire"},
		{list: "incr-expire,unlimited", want: "incr-expire unlimited"},
		{list: " incr-expire , unlimited ", want: "incr-expire unlimited"},
		{list: "all", want: "incr-expire three-tier unlimited"},
		{list: "*-*", want: "incr-expire three-tier"},
		{list: "un*,incr-expire", want: "unlimited incr-expire"},
		{list: "three-tier:note=*", want: "three-tier:note=*"},
		{list: "pg-*", err: `no strategy is named like "pg-*": see quotabench list strategies`},
		{list: "[*", err: `pattern "[*": syntax error in pattern: write * for any letters, e.g. pg-*`},
		{list: "three-*:write=literal,reset=job,unlimited", want: "three-tier:write=literal,reset=job unlimited"},
		{list: "*-*:write=literal", err: `incr-expire: no option "write": it has none`},
		{list: "*-*,incr-expire", err: "incr-expire is given twice"},
		{list: "three-tier:write=literal", want: "three-tier:write=literal"},
		{list: "three-tier:write=literal,reset=job", want: "three-tier:write=literal,reset=job"},
		{list: "three-tier:reset=job,write=literal,unlimited", want: "three-tier:write=literal,reset=job unlimited"},
		{list: "three-tier:write=back", want: "three-tier"},
		{list: "three-tier,three-tier:write=through", want: "three-tier three-tier:write=through"},
		{list: "three-tier:note=a=b", want: "three-tier:note=a=b"},
		{list: "three-tier:pool=16,sync=1h,multi=true", want: "three-tier:pool=16,sync=1h,multi=true"},
		{list: "", err: `unknown strategy ""`},
		{list: "incr-expire,", err: `unknown strategy ""`},
		{list: "nope", err: `unknown strategy "nope": one of incr-expire, three-tier, unlimited, core, all, or a pattern such as pg-*`},
		{list: "write=literal", err: "follows no strategy"},
		{list: "all,write=literal", err: `incr-expire: no option "write": it has none`},
		{list: "all:write=literal", err: `incr-expire: no option "write": it has none`},
		{list: "unlimited:write=literal", err: `unlimited: no option "write": it has none`},
		{list: "three-tier:wrote=literal", err: "it has write, reset, pool, sync, multi, note"},
		{list: "three-tier:write=never", err: `"never" is none of back, through, literal`},
		{list: "three-tier:write", err: "not of the form OPTION=VALUE"},
		{list: "three-tier:=x", err: "not of the form OPTION=VALUE"},
		{list: "three-tier:write=back,=x", err: "not of the form OPTION=VALUE"},
		{list: "three-tier:write=back,write=literal", err: `option "write" of three-tier is given twice`},
		{list: "three-tier:pool=many", err: `"many" is not a valid int`},
		{list: "three-tier:sync=5", err: `"5" is not a valid duration`},
		{list: "three-tier:multi=maybe", err: `"maybe" is not a valid bool`},
		{list: "unlimited,unlimited", err: "unlimited is given twice"},
		{list: "three-tier,three-tier:write=back", err: "three-tier is given twice"},
		{list: "all,unlimited", err: "unlimited is given twice"},
	} {
		t.Run(c.list, func(t *testing.T) {
			chosen, err := Parse(c.list)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("error %v, want one with %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, s := range chosen {
				names = append(names, s.String())
				if len(s.Options) != len(s.Meta.Options) {
					t.Errorf("%s: %d options have values, it has %d", s, len(s.Options), len(s.Meta.Options))
				}
			}
			if got := strings.Join(names, " "); got != c.want {
				t.Errorf("chose %s, want %s", got, c.want)
			}
		})
	}
}

// What a selection prints can be given again, and means the same.
func FuzzSelectionRoundTrip(f *testing.F) {
	f.Add("three-tier:write=literal,reset=job,unlimited")
	f.Add("all")
	f.Add("three-tier:note=x y,note=")
	f.Add("three-tier:note=a:b=c,pool=+7")
	f.Fuzz(func(t *testing.T, list string) {
		withRegistry(t, complete("three-tier", testOptions...), complete("unlimited"))
		chosen, err := Parse(list)
		if err != nil {
			return
		}
		var names []string
		for _, s := range chosen {
			names = append(names, s.String())
		}
		again, err := Parse(strings.Join(names, ","))
		if err != nil {
			t.Fatalf("%q prints as %q, which is not valid: %v", list, names, err)
		}
		if len(again) != len(chosen) {
			t.Fatalf("%q: %d selections came back as %d", list, len(chosen), len(again))
		}
		for i := range chosen {
			if chosen[i].Name != again[i].Name || !maps.Equal(chosen[i].Options, again[i].Options) {
				t.Fatalf("%q: %v came back as %v", list, chosen[i].Options, again[i].Options)
			}
		}
	})
}

func TestSelectDoesNotShareOptions(t *testing.T) {
	m := complete("three-tier", testOptions...)
	given := quota.Options{"pool": "2"}
	a, err := m.Select(given)
	if err != nil {
		t.Fatal(err)
	}
	a.Options["pool"] = "3"
	b, err := m.Select(nil)
	if err != nil {
		t.Fatal(err)
	}
	if given["pool"] != "2" || b.Options["pool"] != "8" {
		t.Errorf("given %v, second selection %v", given, b.Options)
	}
	if b.Options.Int("pool") != 8 || b.Options.Duration("sync").Minutes() != 5 || b.Options.Bool("multi") {
		t.Errorf("typed values of %v are wrong", b.Options)
	}
}

func TestTypedOptionsPanicOnTheWrongType(t *testing.T) {
	o := quota.Options{"x": "text"}
	for name, f := range map[string]func(){
		"int": func() { o.Int("x") }, "duration": func() { o.Duration("x") }, "bool": func() { o.Bool("x") },
		"missing": func() { o.Int("y") },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			f()
		})
	}
}
