package settings

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/internal/kit/exit"
	_ "github.com/quotabench/quotabench/internal/kit/testenv"
)

// limiter has a setting of every kind.
type limiter struct {
	*Set
	cmd *cobra.Command

	workers int
	rate    float64
	wait    time.Duration
	seed    uint64
	name    string
	mode    string
	url     string
	list    []string
	quick   bool
	targets []string
	file    string
}

// newLimiter is a command try next to another one, which has a setting more.
func newLimiter() *limiter {
	l := &limiter{cmd: &cobra.Command{Use: "try", Run: func(*cobra.Command, []string) {}}, workers: 4, mode: "open",
		list: []string{"core"}, seed: 1}
	l.Set = New(l.cmd, []Setting{
		{Name: "workers", Doc: "how `many`", Value: Whole(&l.workers, 1, 100)},
		{Name: "rate", Doc: "per second", Value: Decimal(&l.rate, 1000), Computed: true},
		{Name: "wait", Doc: "a time", Value: Span(&l.wait, time.Hour)},
		{Name: "seed", Doc: "a number", Value: Seed(&l.seed)},
	}, []Setting{
		{Name: "name", Doc: "any text", Value: Text(&l.name), Computed: true},
		{Name: "mode", Doc: "one of two", Value: Text(&l.mode, "open", "closed")},
		{Name: "url", Doc: "where", Value: Text(&l.url), Computed: true, Secret: true, PasswordFrom: "TRY_PASSWORD"},
		{Name: "list", Doc: "some", Value: List(&l.list)},
		{Name: "quick", Doc: "less", Value: Bool(&l.quick), Shorthand: true},
		{Name: "target", Doc: "what", Value: List(&l.targets), ArgumentOnly: true},
		{Name: FileFlag, Doc: "a file", Value: Named(&l.file, "a file"), FlagOnly: true},
	})
	other := &cobra.Command{Use: "other", Run: l.cmd.Run}
	var depth int
	New(other, []Setting{{Name: "depth", Value: Whole(&depth, 0, 9)}, {Name: FileFlag, Value: Named(&l.file, "a file")}})
	root := &cobra.Command{Use: "prog"}
	root.AddCommand(l.cmd, other)
	return l
}

// codeOf is the exit code that an error asks for.
func codeOf(err error) int {
	if decided, ok := errors.AsType[*exit.Error](err); ok {
		return decided.Code
	}
	return 1
}

// TestValues: what a value takes, by the text that it then has, and the error for what it does not.
func TestValues(t *testing.T) {
	const whole = "give a whole number from 1 to 100"
	const decimal = "give a number from 0 to 1000"
	const span = "give a time from 0 to 1h0m0s with its unit, e.g. 400ms or 1m30s"
	for _, c := range []struct{ name, text, want, wrong string }{
		{"workers", "1", "1", ""}, {"workers", "100", "100", ""},
		{"workers", "0", "", whole}, {"workers", "101", "", whole}, {"workers", "1.5", "", whole}, {"workers", "", "", whole},
		{"workers", "99999999999999999999", "", whole},
		{"rate", "0", "0", ""}, {"rate", "1e3", "1000", ""}, {"rate", "0.25", "0.25", ""},
		{"rate", "-1", "", decimal}, {"rate", "NaN", "", decimal}, {"rate", "Inf", "", decimal},
		{"rate", "1001", "", decimal},
		{"wait", "90s", "1m30s", ""}, {"wait", "0", "0", ""}, {"wait", "-1s", "", span}, {"wait", "61m", "", span},
		{"wait", "5", "", span},
		{"seed", "18446744073709551615", "18446744073709551615", ""},
		{"seed", "-1", "", "give a whole number from 0 to 18446744073709551615"},
		{"name", " a b ", " a b ", ""}, {"name", "", "", "it is empty: give a value, or leave it out"},
		{"mode", "closed", "closed", ""}, {"mode", "close", "", "did you mean closed? give open or closed"},
		{"mode", "x", "", "give open or closed"},
		{"list", "a,b", "a,b", ""}, {"list", "", "", "it is empty: give a value, or leave it out"},
		{"quick", "1", "true", ""}, {"quick", "yes", "", "give true or false"},
	} {
		l := newLimiter()
		value := l.Lookup(c.name).Value
		before := value.String()
		switch err := value.Set(c.text); {
		case c.wrong == "" && (err != nil || value.String() != c.want):
			t.Errorf("%s %q: %q, %v, want %q", c.name, c.text, value, err, c.want)
		case c.wrong != "" && (err == nil || err.Error() != c.wrong || value.String() != before):
			t.Errorf("%s %q: %q, %v, want %q", c.name, c.text, value, err, c.wrong)
		}
	}
}

func TestMixedValues(t *testing.T) {
	var rate float64
	some := Decimal(&rate, 10)
	for text, taken := range map[string]bool{"0": true, "0.5": true, "10": true, "11": false, "-1": false} {
		if err := some.Set(text); (err == nil) != taken {
			t.Errorf("%q: %v", text, err)
		}
	}
	rate = math.NaN()
	errOther := errors.New("no such share")
	either := Or(some, func(text string) (func(), error) {
		switch text {
		case "half":
			return func() { rate = 5 }, nil
		case "most":
			return nil, errOther
		}
		return nil, nil
	})
	if err := either.Set("half"); err != nil || rate != 5 {
		t.Errorf("%v: %v", rate, err)
	}
	if err := either.Set("7"); err != nil || rate != 7 {
		t.Errorf("%v: %v", rate, err)
	}
	if err := either.Set("most"); !errors.Is(err, errOther) {
		t.Errorf("%v", err)
	}
	if err := either.Set("all"); err == nil || err.Error() != "give a number from 0 to 10" {
		t.Errorf("%v", err)
	}
}

// TestLists: the first value replaces the default, and there may be 1,000.
func TestLists(t *testing.T) {
	l := newLimiter()
	value := l.Lookup("list").Value
	for range maxItems {
		if err := value.Set("x"); err != nil {
			t.Fatal(err)
		}
	}
	err := value.Set("x")
	const want = "it is given more than 1000 times: give fewer"
	if err == nil || err.Error() != want || len(l.list) != maxItems {
		t.Errorf("%d values, %v, want %q", len(l.list), err, want)
	}
}

// TestFiles: what a file says is taken over, except for what a flag says.
func TestFiles(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "4 open core 1",
		"# workers: 5\n":                    "4 open core 1",
		"workers: 7\nmode: closed\n":        "7 closed core 1",
		"list: [a, b]\n":                    "4 open a,b 1",
		"list: a\ntry:\n  workers: 9\n":     "9 open a 1",
		"other:\n  nonsense: 5\nseed: 3\n":  "4 open core 3",
		"other:\ndepth: 3\ntry: {seed: 8}":  "4 open core 8",
		"rate: null\nname: ~\nworkers: 6\n": "6 open core 1",
		"mode: |-\n  closed\n":              "4 closed core 1",
	} {
		l := newLimiter()
		err := l.ReadBytes("f.yaml", []byte(text))
		var got []string
		for _, name := range []string{"workers", "mode", "list", "seed"} {
			got = append(got, l.Lookup(name).Value.String())
		}
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
}

// TestFileErrors: each is one line that begins with its place, and says what to write.
func TestFileErrors(t *testing.T) {
	const keys = "one of workers, rate, wait, seed, name, mode, url, list, quick, target"
	const mapping = "not a configuration: write one key: value per line, the keys named like the command's flags"
	const whole = "give a whole number from 1 to 100"
	for text, want := range map[string]string{
		"seed: 5\nwrokers: 5\n":                `2: unknown key "wrokers": did you mean workers?`,
		"nonsense: 1\n":                        `1: unknown key "nonsense": ` + keys,
		"depth: 1\n":                           `1: unknown key "depth": ` + keys,
		"config: other.yaml\n":                 `1: unknown key "config": ` + keys,
		"workers: 5\nseed: 2\nworkers: 6\n":    "3: workers is given twice, first on line 1: keep one",
		"workers: 5\ntry:\n  workers: 6\n":     "3: workers is given twice, first on line 1: keep one",
		"workers: many\n":                      `1: workers "many" is text: ` + whole,
		"workers: \"5\"\n":                     `1: workers "5" is text: ` + whole,
		"workers: true\n":                      `1: workers "true" is a boolean: ` + whole,
		"workers: 101\n":                       `1: workers "101": ` + whole,
		"workers: .inf\n":                      `1: workers "inf": ` + whole,
		"workers:\n":                           "1: workers has no value: " + whole,
		"workers: [5]\n":                       "1: workers is a list: " + whole,
		"workers: {a: b}\n":                    "1: workers is not a plain value: " + whole,
		"quick: 1\n":                           `1: quick "1" is a number: give true or false`,
		"list:\n  - a\n  - 5\n":                `3: list "5" is a number: give text or a list of texts`,
		"list:\n  - a\n  - \"\"\n":             `3: list "": it is empty: give a value, or leave it out`,
		"list:\n  - [a]\n":                     "2: list is not a plain value: give text or a list of texts",
		"list: [" + repeated("a, ", 1001):      "1: list is a list of 1001: give at most 1000",
		"- workers\n":                          "1: " + mapping,
		"just text\n":                          "1: " + mapping,
		"try:\n  - workers\n":                  "2: " + mapping,
		"5: workers\n":                         `1: "5" is not a key: ` + keys,
		"workers: 5\n---\nworkers: 6\n":        "3: a second document begins: give one",
		"a: " + strings.Repeat("[", 65):        "1: it is nested deeper than 64 levels",
		"seed: 1\n" + strings.Repeat("- ", 66): "2: it is nested deeper than 64 levels",
	} {
		err := newLimiter().ReadBytes("f.yaml", []byte(text))
		if err == nil || err.Error() != "f.yaml:"+want || codeOf(err) != exit.Usage {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
	// The parser says what is wrong with these.
	for text, want := range map[string]string{
		"workers: [5\n": "f.yaml:1: not valid YAML: ", "\"workers: 5\n": "f.yaml:1: not valid YAML: ",
		"workers: 5\n  seed: 5\n": "f.yaml:1: ", "workers: 5\n\tseed: 5\n": "f.yaml:", "workers: *five\n": "f.yaml:1: ",
		"workers: !!str 5\n": "f.yaml:1: ", "? [a]\n: 5\n": "f.yaml:2: ", "<<: {workers: 5}\n": "f.yaml:1: ",
		"\x00\xff": "f.yaml:1: ",
	} {
		err := newLimiter().ReadBytes("f.yaml", []byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want one line with %q", text, err, want)
		}
	}
}

// repeated is a list of so many elements, up to its end.
func repeated(element string, count int) string {
	return strings.TrimSuffix(strings.Repeat(element, count), ", ") + "]\n"
}

// TestRanks: a flag wins over a file and arguments over both. What a flag hides must be right all the same.
func TestRanks(t *testing.T) {
	l := newLimiter()
	if err := l.cmd.ParseFlags([]string{"--workers=9", "--quick", "--list=a", "--list", "b"}); err != nil {
		t.Fatal(err)
	}
	if err := l.ReadBytes("f.yaml", []byte("workers: 7\nseed: 5\nlist: c\ntarget: d\n")); err != nil {
		t.Fatal(err)
	}
	if err := l.SetFrom("TRY_MODE", "mode", "closed"); err != nil {
		t.Fatal(err)
	}
	if l.Rank("target") != ByFile {
		t.Errorf("target has rank %d", l.Rank("target"))
	}
	l.SetArgs("target", []string{"e", "f"})
	if l.workers != 9 || l.seed != 5 || strings.Join(l.list, " ") != "a b" || strings.Join(l.targets, " ") != "e f" {
		t.Errorf("%+v", l)
	}
	for name, want := range map[string]Rank{"workers": ByFlag, "target": ByFlag, "seed": ByFile, "mode": ByFile,
		"wait": ByDefault} {
		if got := l.Rank(name); got != want || l.Given(name) != (want != ByDefault) {
			t.Errorf("%s has rank %d, want %d", name, got, want)
		}
	}
	flags := []string{"--list=a", "--list=b", "--quick"}
	if got := l.Flags("workers"); !slices.Equal(got, flags) {
		t.Errorf("flags %q, want %q", got, flags)
	}
	wrong := errors.New("too much")
	for name, want := range map[string]string{"workers": "--workers: too much", "seed": "f.yaml:2: seed: too much",
		"mode": "TRY_MODE: mode: too much", "target": "too much"} {
		if err := l.Wrong(name, wrong); err.Error() != want || codeOf(err) != exit.Usage {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	interrupted := exit.With(exit.Interrupted, wrong)
	if err := l.Wrong("seed", interrupted); !errors.Is(err, interrupted) || codeOf(err) != exit.Interrupted {
		t.Errorf("%v", err)
	}
	if err := l.SetFrom("TRY_MODE", "mode", "x"); err == nil || err.Error() != "TRY_MODE: give open or closed" {
		t.Errorf("%v", err)
	}
	if err := l.ReadBytes("f.yaml", []byte("workers: 0\n")); err == nil {
		t.Error("a file may say anything under a flag")
	}
}

// TestPrint: a file that was printed sets what was set, except for a password.
func TestPrint(t *testing.T) {
	l := newLimiter()
	args := []string{"--workers=9", "--wait=90s", "--name=012", "--url=redis://u:S3cret@host", "--list=a: b",
		"--list=true"}
	if err := l.cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	var printed strings.Builder
	if err := l.Print(&printed, "try", map[string]string{"seed": "by default"}); err != nil {
		t.Fatal(err)
	}
	text := printed.String()
	for _, want := range []string{"# quotabench try --config FILE", "# how many\nworkers: 9\n", "seed: 1 # by default\n",
		"rate: null\n", "write it in place of ***, or set TRY_PASSWORD.\n", "target: []\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if strings.Contains(text, "S3cret") || strings.Contains(text, "quick:") || strings.Contains(text, "config:") {
		t.Errorf("too much is printed:\n%s", text)
	}
	again := newLimiter()
	if err := again.ReadBytes("f.yaml", []byte(text)); err != nil {
		t.Fatal(err)
	}
	l.url = "redis://u@host" // its password comes from the environment
	for _, setting := range l.All() {
		if got := again.Lookup(setting.Name).Value.String(); got != setting.Value.String() {
			t.Errorf("%s is %q, printed and read it is %q", setting.Name, setting.Value, got)
		}
	}
}

func TestBoundsOfFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.yaml")
	if err := os.WriteFile(path, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	if data, err := ReadUpTo(path, 5); err != nil || string(data) != "12345" {
		t.Errorf("%q, %v", data, err)
	}
	if _, err := ReadUpTo(path, 4); err == nil || !strings.Contains(err.Error(), " has more than 4 bytes") {
		t.Errorf("%v", err)
	}
}

func TestBadFlags(t *testing.T) {
	for arg, want := range map[string]string{
		"--workers=0": `--workers "0": give a whole number from 1 to 100`,
		"--workers":   "--workers has no value: give a whole number from 1 to 100 (see prog try --help)",
		"--worker=5":  "unknown flag --worker: did you mean --workers? (see prog try --help)",
		"--xyz":       "unknown flag --xyz (see prog try --help)",
		"--target=5":  "unknown flag --target (see prog try --help)",
		"-x":          "unknown shorthand flag: 'x' in -x (see prog try --help)",
	} {
		l := newLimiter()
		err := BadFlag(l.cmd, l.cmd.ParseFlags([]string{arg}))
		if err.Error() != want || codeOf(err) != exit.Usage {
			t.Errorf("%s: %v, want %q", arg, err, want)
		}
	}
}

func TestNearest(t *testing.T) {
	names := []string{"workers", "workload", "rounds", "rate", "out"}
	for name, want := range map[string]string{
		"worker": "workers", "wrokers": "workers", "WORKERS": "workers", "round": "rounds", "raet": "rate",
		"": "", "nonsense": "", "o": "", "xyz": "", "workersandmore": "",
	} {
		got := nearest(name, names, "--")
		if want != "" {
			want = ": did you mean --" + want + "?"
		}
		if got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
