//go:build unix

package cli

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/quotabench/quotabench/internal/app/settings/group"
	"github.com/quotabench/quotabench/internal/app/terminal"
	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/internal/kit/testenv"
)

// The passwords of the nonsense: of a URL, which no output may show, and of what only
// looks like one, which may be a path and is shown as such.
const (
	urlSecret  = "hushhush"
	bareSecret = "tusktusk"
)

// nonsense are values that no setting expects, and some that a few do.
var nonsense = []string{
	"", " ", "0", "-0", "-1", "1", "2", "+1", "NaN", "nan", "Inf", "-Inf", "1e999", "1e-999", "0x10", "1_000", " 1", "1 ",
	"٣", "1.5", "1e18",
	"2147483648", "4294967296", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
	"18446744073709551615",
	"18446744073709551616", strings.Repeat("9", 100), "0." + strings.Repeat("0", 400) + "1",
	"1ns", "-1s", "2562047h47m16.854775807s", "2562048h", "1e9s", "9999999999999h", "100y", "0s", "1h-1m", "106751d",
	"true", "false", "yes", "null", "~", "*a", "&a", "!!x", "{}", "[]", "[", "- x", "a: b", "# x", "'", `"`, "`", "-", "--", "---", "...", "%s%d%n%!", "$(false)", "{{.}}",
	"=", ":", ",", ",,,", ";", "/", "a=b,c=d", "a:b=c", "a:b", "=b", "a=", "honest", "honest:", "honest:color=",
	"honest:color=pink", "honest:colour=red", "honest,honest", "honset", "liar:x=1", "all,all",
	"\x1b[31mred\x1b[0m", "\x1b]0;title\a", "\x00", "a\x00b", "\xff\xfe", "\u009b31m", "\u202egnp.exe", "\r\n",
	"line\nline", "\ttab", "\ufeff", "漢字😀", "\u2028",
	strings.Repeat("x", 1<<16), strings.Repeat("x\n", 1<<12), strings.Repeat("[", 1<<14),
	strings.Repeat("\x1b[31m", 1<<12), strings.Repeat("漢", 1<<12),
	"redis://user:" + urlSecret + "@127.0.0.1:1/0", "postgres://user:" + urlSecret + "@127.0.0.1:1/db?sslpassword=" +
		urlSecret, "redis://:" + urlSecret + "@", "redis://user:" + urlSecret + "%zz@[::1",
	"cluster:redis://:" + urlSecret + "@127.0.0.1:1", "sentinel:redis://:" + urlSecret +
		"@127.0.0.1:1", "redis.2=redis://u:" + urlSecret + "@127.0.0.1:1", "https://h/?password=" + urlSecret,
	"user:" + bareSecret + "@host", ":" + bareSecret + "@host", "\x1b:" + bareSecret + "@host",
	"missing", "../..", ".", "folder", "folder/x", "file", "/dev/null", "/dev/zero", "/dev/full", "/proc/nothing",
	strings.Repeat("x/", 1<<11), strings.Repeat("x", 300),
	"@", "@missing", "@folder", "@file", "@/dev/zero", "@/dev/null", "@deep.yaml", "@redis://u:" + urlSecret + "@h",
	"5 a per rolling 1m", "5 \x1b[31ma per rolling 1m", "99999999999999999999 a per rolling 1m",
	"5 a per rolling 9999999h", "0 a at a time", "5 a refilling 0 per 0s", "5 a per calendar month in ../../file",
	"5 a at a time costing " + strings.Repeat("1 or ", 4000) + "1",
	"redis:away@0.3-0.6", "redis:away@NaN-1", "redis:away@0-1e999", "redis:away@0.3-0.3", "mysql:away@0.3-0.6",
	"redis:empty:@0.3-0.6", "9999-12-31T23:59:59Z", "0000-01-01T00:00:00Z", "2026-01-01T00:00:00+99:99",
	"200@2026-02-28T23:59:30Z+1m", "1e9@2026-01-01T00:00:00Z+87840h", "NaN@2026-01-01T00:00:00Z+1m",
	"uniform:1-999999999999999999999", "lognormal:1e300:9", "zipf:NaN", "hot:0.5:99999999999",
	"harness=0-99999", "harness=" + strings.Repeat("0-1023,", 500) +
		"0", "stores=", "take=9223372036854775807;take", strings.Repeat("take,", 500) + "take", "refund",
	"us,us", strings.Repeat("r,", 5000) + "r", "us,\x1b[31m", "0s,2562047h", strings.Repeat("0s,", 5000) + "0s",
}

// nonsenseFiles are what the nonsense finds.
func nonsenseFiles() map[string]string {
	return map[string]string{
		"folder/x": "", "file": "not a trace\x1b[31m",
		"deep.yaml":   strings.Repeat("[", 100_000),
		"rows.csv":    traceRows,
		"policy.yaml": "limit: 5\nunit: a\nwindow: fixed\nlength: 1m\n",
	}
}

// knob is one flag of a command, or one key of its configuration file.
type knob struct {
	command []string
	name    string
	flag    bool
	wants   string // what a value that is refused is told
}

func (k knob) String() string {
	kind := "key "
	if k.flag {
		kind = "--"
	}
	return strings.Join(k.command, " ") + " " + kind + k.name
}

// knobs are all flags of all commands, and all keys of all configuration files, as the
// commands themselves have them.
func knobs() []knob {
	var all []knob
	var walk func(c *cobra.Command, path []string)
	walk = func(c *cobra.Command, path []string) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			k := knob{command: path, name: f.Name, flag: true}
			if v, ok := f.Value.(interface{ Wants() string }); ok {
				k.wants = v.Wants()
			}
			all = append(all, k)
		})
		for _, sub := range c.Commands() {
			walk(sub, append(slices.Clone(path), sub.Name()))
		}
	}
	walk(Command(nil, nil), nil)
	run, _ := newRun()
	simulation := &simSettings{Settings: group.New(group.Sim)}
	simulation.register(&cobra.Command{})
	for command, s := range map[string]*group.Settings{"run": run, "sim": simulation.Settings} {
		for _, x := range s.All() {
			if !x.FlagOnly {
				all = append(all, knob{command: []string{command}, name: x.Name, wants: x.Value.Wants()})
			}
		}
	}
	return all
}

var told = regexp.MustCompile(`from (\S+) to (\S+?)(?: |$)`)

// values are n of the nonsense, and numbers at the knob's bounds and beyond them.
func (k knob) values(rng *rand.Rand, n int) []string {
	var out []string
	if m := told.FindStringSubmatch(k.wants); m != nil {
		for _, text := range m[1:] {
			out = append(out, text)
			if v, err := strconv.ParseInt(text, 10, 64); err == nil {
				out = append(out, strconv.FormatInt(v-1, 10), strconv.FormatInt(v+1, 10))
			} else if d, err := time.ParseDuration(text); err == nil {
				out = append(out, (d + 1).String(), (-d - 1).String())
			} else {
				out = append(out, text+"0", "-"+text)
			}
		}
	}
	for range n {
		out = append(out, nonsense[rng.IntN(len(nonsense))])
	}
	return out
}

// args is the command line that tries a value. What it starts if the value is valid
// ends at once: a configuration is printed, and a search has one state.
func (k knob) args(value string, quotes bool) []string {
	args := slices.Clone(k.command)
	switch strings.Join(k.command, " ") {
	case "run", "sim":
		switch k.name {
		case "strategy":
		case "print-config":
			args = append(args, "nonsense") // it would run
		default:
			args = append(args, "honest")
		}
		args = append(args, "--print-config")
	case "explore":
		switch k.name {
		case "strategy", "replay":
		case "full", "max-states":
			args = append(args, "honest")
		case "max-schedules":
			args = append(args, "honest", "--full")
		default:
			args = append(args, "honest", "--max-states=50")
		}
	case "judge":
		args = append(args, "file")
	case "faults": // it would measure
		args = append(args, "nonsense")
	case "doctor":
		return append(args, "now", "--"+k.name+"="+value) // it asks the machine, which takes time
	}
	if k.flag {
		return append(args, "--"+k.name+"="+value)
	}
	if quotes {
		value = fmt.Sprintf("%q", value)
	}
	if err := os.WriteFile("nonsense.yaml", []byte(k.name+": "+value+"\n"), 0o644); err != nil {
		panic(err)
	}
	return append(args, "--config=nonsense.yaml")
}

// tryNonsense runs a command line and requires that it is refused in one short line, or
// taken; in either case without a panic, a hang, or a password or an escape on the
// terminal.
func tryNonsense(t *testing.T, args []string) outcome {
	t.Helper()
	short := fmt.Sprintf("%.300q", args)
	done := make(chan outcome, 1)
	panicked := make(chan any, 1)
	go func() {
		defer func() {
			if v := recover(); v != nil {
				panicked <- v
			}
		}()
		done <- call(context.Background(), args...)
	}()
	var o outcome
	select {
	case o = <-done:
	case v := <-panicked:
		t.Fatalf("%s panics: %v", short, v)
	case <-time.After(time.Minute):
		t.Fatalf("%s does not end", short)
	}
	switch {
	case o.code == exit.OK, o.code == exit.Gate && args[0] == "explore": // a valid search
	case o.code == exit.Failed && strings.Contains(o.stderr, "not every order of"): // one that is too short
	case o.code != exit.Usage:
		t.Errorf("%s: exit %d: %s", short, o.code, o.stderr)
	case !strings.HasPrefix(o.stderr, "quotabench: ") || strings.Count(o.stderr, "\n") != 1 ||
		!strings.HasSuffix(o.stderr, "\n") || len(o.stderr) > terminal.MaxMessage+20:
		t.Errorf("%s: not one line of at most %d bytes: %q", short, terminal.MaxMessage, o.stderr)
	}
	for name, text := range map[string]string{"stdout": o.stdout, "stderr": o.stderr} {
		if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool {
			return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r))
		}) {
			t.Errorf("%s: %s is not fit for a terminal: %.600q", short, name, text)
		}
		if strings.Contains(text, urlSecret) || name == "stderr" && strings.Contains(text, bareSecret) {
			t.Errorf("%s: %s shows a password: %s", short, name, text)
		}
	}
	return o
}

// nonsensePerKnob is how many values each flag and each key is tried with, in addition to
// its bounds, and nonsensePerWord in how many places each value is put otherwise.
var nonsensePerKnob, nonsensePerWord = testenv.Pick(1, 7), testenv.Pick(1, 6)

// Whatever is typed, a command refuses it in one line or takes it. The flags and keys
// are those that there are: a new one is tried without a word here.
func TestNonsense(t *testing.T) {
	testenv.Sequential(t)
	newPlace(t, nonsenseFiles())
	rng := rand.New(rand.NewPCG(1, 2))
	all := knobs()
	cases := 0
	refused := 0
	for _, k := range all {
		for _, v := range k.values(rng, nonsensePerKnob) {
			cases++
			if o := tryNonsense(t, k.args(v, rng.IntN(2) == 0)); o.code == exit.Usage {
				refused++
			}
		}
	}
	for _, v := range nonsense { // in place of arguments, names of flags, and files
		if err := os.WriteFile("nonsense.yaml", []byte(v), 0o644); err != nil {
			t.Fatal(err)
		}
		forms := [][]string{
			{v}, {"run", v, "--print-config"}, {"sim", v, "--print-config"}, {"explore", v, "--max-states=50"}, {"judge", v},
			{"list", v}, {"help", v}, {"completion", v}, {"run", "--" + v, "--print-config"}, {"sim", "-" + v, "--print-config"},
			{"run", "--config=nonsense.yaml", "--print-config"}, {"run", "--policy=@nonsense.yaml", "--print-config"},
			{"sim", "honest", "--trace=nonsense.yaml", "--print-config"}, {"judge", "nonsense.yaml"},
		}
		rng.Shuffle(len(forms), func(i, j int) { forms[i], forms[j] = forms[j], forms[i] })
		for _, args := range forms[:nonsensePerWord] {
			cases++
			tryNonsense(t, args)
		}
	}
	t.Logf("%d cases over %d flags and keys, %d of those refused", cases, len(all), refused)
	if cases < testenv.Pick(800, 2_000) || len(all) < 150 || refused < cases/4 || refused > cases {
		t.Errorf("%d cases over %d flags and keys, %d refused", cases, len(all), refused)
	}
}

// What waits for a pipe ends with its context.
func TestPipesAreInterrupted(t *testing.T) {
	newPlace(t, nil)
	if err := syscall.Mkfifo("pipe", 0o600); err != nil {
		t.Skip(err)
	}
	for _, args := range [][]string{
		{"run", "--config", "pipe"}, {"sim", "honest", "--config", "pipe"}, {"run", "--policy", "@pipe", "--print-config"},
		{"explore", "honest", "--policy", "@pipe"},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan outcome)
		go func() { done <- call(ctx, args...) }()
		cancel()
		select {
		case o := <-done:
			if o.code != exit.Interrupted || strings.Count(o.stderr, "\n") != 1 {
				t.Errorf("%q: exit %d: %s", args, o.code, o.stderr)
			}
		case <-time.After(time.Minute):
			t.Errorf("%q is not interrupted", args)
		}
		// What still waits for the pipe is let go.
		if w, err := os.OpenFile("pipe", os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
			_ = w.Close()
		}
	}
}

func FuzzNonsense(f *testing.F) {
	testenv.Sequential(f)
	for i, v := range nonsense {
		if i%testenv.Pick(9, 1) == 0 { // TestNonsense tries them all
			f.Add(uint(i), v, i%2 == 0)
		}
	}
	all := knobs()
	f.Fuzz(func(t *testing.T, which uint, value string, quotes bool) {
		newPlace(t, nonsenseFiles())
		tryNonsense(t, all[which%uint(len(all))].args(value, quotes))
	})
}
