package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/app/session"
	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	build "github.com/quotabench/quotabench/internal/kit/version"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// The strategies of this test binary. The built-in ones are not linked in, so
// that golden files do not change with each of them.
func init() {
	for _, m := range []strategies.Meta{
		{Name: "honest", Doc: "counts under a mutex", About: strategies.About{Source: "ADR-008"},
			Reset:     strategies.ResetsMissing,
			Guarantee: []quota.Clause{quota.Exactly()}, Options: []quota.Option{
				{Name: "color", Doc: "does nothing", Default: "red", Values: []string{"red", "blue"}},
				{Name: "depth", Doc: "does nothing either", Default: "3", Type: "int"},
			}, Open: openFake(&fake{})},
		{Name: "liar", Doc: "promises to count and does not", Guarantee: []quota.Clause{quota.Exactly()},
			Open: openFake(&fake{open: true})},
		{Name: "broken", Doc: "cannot be opened", Open: func(context.Context, strategies.Env) (strategies.Strategy, error) {
			return nil, errors.New("out of order,\nfor good")
		}},
		{Name: "monthly", Doc: "serves months only", SharesMemory: true,
			Kinds: []quota.Kind{quota.CalendarMonth},
			Options: []quota.Option{
				{Name: "note", Doc: "does nothing, and is not given"},
			}, Open: openFake(&fake{})},
		{Name: "sql-only", Doc: "needs PostgreSQL", Needs: []strategies.Need{strategies.NeedPostgres},
			Open: openFake(&fake{})},
	} {
		m.Form = strategies.Baseline
		m.Counts = quota.CountsAdmitted
		if m.Kinds == nil {
			m.Kinds = []quota.Kind{quota.CalendarMonth, quota.CalendarDay, quota.CalendarHour, quota.Fixed}
		}
		strategies.Register(m)
	}
}

// fake admits up to the limit, or everything if it is open.
type fake struct {
	open bool
	env  strategies.Env
	mu   sync.Mutex
	used map[window]int64
}

// window is one window of a subject.
type window struct {
	subject quota.Subject
	index   int64
}

// onTake is called with the number of each request of the process, except warm-ups, and
// onBlue for those of strategies whose color is blue; onOpen when such a strategy is
// opened, and onProvision when its subjects are set up.
var (
	onTake                      func(n int64)
	onBlue, onOpen, onProvision hook
	taken                       atomic.Int64
)

// hook is a function that may be called by what was given up.
type hook struct{ pointer atomic.Pointer[func()] }

func (h *hook) set(f func()) { h.pointer.Store(&f) }
func (h *hook) clear()       { h.pointer.Store(nil) }

// call reports whether there was one to call.
func (h *hook) call() bool {
	f := h.pointer.Load()
	if f != nil {
		(*f)()
	}
	return f != nil
}

// provisioned is a fake that sets subjects up by itself.
type provisioned struct{ *fake }

func (provisioned) Provision(context.Context, *quota.Policy, []strategies.Grant) error {
	onProvision.call()
	return nil
}

func openFake(f *fake) func(context.Context, strategies.Env) (strategies.Strategy, error) {
	return func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
		opened := &fake{open: f.open, env: env, used: map[window]int64{}}
		if env.Options["color"] == "blue" {
			onOpen.call()
			if onProvision.pointer.Load() != nil {
				return provisioned{opened}, nil
			}
		}
		return opened, nil
	}
}

func (f *fake) Take(ctx context.Context, r quota.Request) (quota.Decision, error) {
	if r.ID < bounds.ProbeID {
		if n := taken.Add(1); onTake != nil {
			onTake(n)
		}
	}
	if f.env.Options["color"] == "blue" {
		onBlue.call()
	}
	if strategies.Postgres(f.env) != nil {
		if _, err := strategies.Postgres(f.env).Exec(ctx, "SELECT 1"); err != nil {
			return quota.Decision{}, err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	at := window{r.Subject, r.Policy.Window.At(f.env.Clock.Now()).Index}
	if !f.open && f.used[at]+r.Units > r.Policy.Limit {
		return quota.Decision{Tier: quota.TierProcess}, nil
	}
	f.used[at] += r.Units
	return quota.Decision{Admitted: true, Tier: quota.TierProcess}, nil
}

func (f *fake) Close(context.Context) error { return nil }

// outcome is what a command line did.
type outcome struct {
	args           []string
	code           int
	stdout, stderr string
}

// call runs a command line to its end.
func call(ctx context.Context, args ...string) outcome {
	var out, errs lockedBuffer
	code := execute(ctx, args, &out, &errs)
	return outcome{args, code, out.String(), errs.String()}
}

// lockedBuffer may be written to by several goroutines, as files may.
type lockedBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buffer.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buffer.String()
}

// transcript renders an outcome as it would look on a terminal.
func (o outcome) transcript() string {
	words := []string{"$ quotabench"}
	for _, a := range o.args {
		words = append(words, format.Quoted(a))
	}
	text := strings.Join(words, " ") + "\n"
	for _, part := range []struct{ name, text string }{{"stdout", o.stdout}, {"stderr", o.stderr}} {
		if part.text != "" {
			text += "-- " + part.name + "\n" + part.text
			if !strings.HasSuffix(part.text, "\n") {
				text += "(no newline)\n"
			}
		}
	}
	text = strings.ReplaceAll(text, build.Text(), "VERSION")
	return fmt.Sprintf("%s-- exit %d\n", text, o.code)
}

// golden compares a text with a golden file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join(packageDir, "testdata", name+".golden")
	if testenv.Update() {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(got), 0o644)); err != nil {
			t.Fatal(err)
		}
		return
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: run go test -update, and read what it writes", err)
	}
	want := strings.Split(string(b), "\n")
	for i, line := range strings.Split(got, "\n") {
		if i >= len(want) || line != want[i] {
			t.Fatalf("%s differs at line %d:\n got %q\nwant %q\n(go test -update accepts it)", name, i+1, line, at(want, i))
		}
	}
	if n := strings.Count(got, "\n") + 1; n < len(want) {
		t.Fatalf("%s ends at line %d, want also %q", name, n, want[n])
	}
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(the end)"
}

// packageDir is where the tests start, whatever the working directory is later.
var packageDir, _ = os.Getwd()

// place is an empty working directory with the files, and a folder for temporary
// files of its own.
type place struct {
	t         *testing.T
	dir, temp string
	before    []string
}

func newPlace(t *testing.T, files map[string]string) *place {
	t.Helper()
	p := &place{t: t, dir: t.TempDir(), temp: t.TempDir()}
	t.Chdir(p.dir)
	t.Setenv("TMPDIR", p.temp)
	t.Setenv(session.NoBitmaps, testenv.Pick("1", "")) // they take most of the time of a short run
	for name, text := range files {
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	p.before = p.files()
	return p
}

// files lists all that is in the working directory and in that for temporary files.
func (p *place) files() []string {
	p.t.Helper()
	var found []string
	for _, root := range []string{p.dir, p.temp} {
		err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if path != root {
				found = append(found, strings.TrimPrefix(path, root))
			}
			return err
		})
		if err != nil {
			p.t.Fatal(err)
		}
	}
	return found
}

// requireUntouched fails the test if anything was written.
func (p *place) requireUntouched() {
	p.t.Helper()
	if now := p.files(); !slices.Equal(now, p.before) {
		p.t.Errorf("files are %q, were %q", now, p.before)
	}
}

// settled waits for goroutines to end and reports how many more there are than n.
func settled(count func() int, n int) int {
	for waited := time.Duration(0); count() > n && waited < time.Minute; waited += 5 * time.Millisecond {
		time.Sleep(5 * time.Millisecond)
	}
	return count() - n
}
