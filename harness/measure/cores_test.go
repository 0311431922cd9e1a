package measure

import (
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/host/cores"
)

func TestParseCores(t *testing.T) {
	for text, want := range map[string]string{
		"auto": "auto", "shared": "shared", "apart": "apart",
		"harness=0-1,stores=2-3": "harness=0-1,stores=2-3",
		"stores=1,harness=0,2":   "harness=0,2,stores=1",
		"harness=3,1-2":          "harness=1-3",
		"stores=7":               "stores=7",
	} {
		c, err := ParseCores(text)
		if err != nil || c.String() != want {
			t.Errorf("%q gives %q (%v), want %q", text, c, err, want)
		}
	}
	for text, want := range map[string]string{
		"":                           "give auto, shared, apart or",
		"none":                       "give auto, shared, apart or",
		"0-1":                        "give auto, shared, apart or",
		"redis=1":                    "give auto, shared, apart or",
		"harness=0,harness=1":        "the cores of the harness are given twice",
		"harness=":                   "cores of the harness: \"\" is no list of cores",
		"harness=0,stores=2-1":       "cores of the stores: \"2-1\" is no list of cores",
		"harness=0,apart":            "cores of the harness: \"0,apart\" is no list of cores",
		"auto,harness=0":             "give auto, shared, apart or",
		"harness=0,stores=1,redis=2": "give auto, shared, apart or",
		"harness=5000,stores=0":      "cores of the harness",
	} {
		c, err := ParseCores(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gives %q and the error %v, want %q", text, c, err, want)
		}
	}
	if got := (Cores{}).String(); got != CoresAuto {
		t.Errorf("the zero value is %q", got)
	}
}

func TestCheckCores(t *testing.T) {
	here := cores.Of(0, 1, 3)
	for _, tc := range []struct {
		asked   Cores
		allowed cores.Set
		known   bool
		want    string // in the error; "" for none
	}{
		{Cores{}, cores.Of(0), true, ""},
		{Cores{Mode: CoresAuto}, nil, false, ""},
		{Cores{Mode: CoresShared}, nil, false, ""},
		{Cores{Mode: CoresApart}, here, true, ""},
		{Cores{Mode: CoresApart}, cores.Of(2), true, "core 2 alone, and no core is left for the stores"},
		{Cores{Mode: CoresApart}, cores.Of(0, 1), false, "does not let a program choose its cores"},
		{Cores{Mode: CoresGiven, Harness: []int{0}, Stores: []int{3}}, here, true, ""},
		{Cores{Mode: CoresGiven, Harness: []int{0, 1}, Stores: []int{1, 3}}, here, true, ""}, // said, not refused
		{Cores{Mode: CoresGiven, Harness: []int{0}}, here, true, ""},
		{Cores{Mode: CoresGiven, Harness: []int{0, 2}}, here, true,
			"cores of the harness: there is no core 2 here that this process may use: it may use 0-1,3"},
		{Cores{Mode: CoresGiven, Stores: []int{4, 5}}, here, true, "cores of the stores: there is no core 4-5"},
		{Cores{Mode: CoresGiven, Harness: []int{0}}, nil, false, "does not let a program choose its cores"},
		{Cores{Mode: CoresGiven}, here, true, "no cores are given"},
		{Cores{Mode: "elsewhere"}, here, true, `cores "elsewhere"`},
	} {
		err := tc.asked.check(tc.allowed, tc.known)
		switch {
		case tc.want == "" && err != nil:
			t.Errorf("%+v on %v: %v", tc.asked, tc.allowed, err)
		case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
			t.Errorf("%+v on %v: the error %v, want %q", tc.asked, tc.allowed, err, tc.want)
		}
	}
}
