package program_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/tools/program"
)

func TestBegin(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		ok   bool
		says string
	}{
		{[]string{"-n", "3"}, 0, true, ""},
		{[]string{"-h"}, 0, false, "how many"},
		{[]string{"-n", "x"}, program.Usage, false, "invalid value"},
		{[]string{"-m"}, program.Usage, false, "not defined"},
	} {
		var errs strings.Builder
		p := program.New("tool", &errs)
		n := p.Int("n", 1, "how many")
		if code, ok := p.Begin(c.args); code != c.code || ok != c.ok || !strings.Contains(errs.String(), c.says) ||
			ok != (*n == 3) {
			t.Errorf("%q: %d, %v, -n %d: %s", c.args, code, ok, *n, errs.String())
		}
	}
}

func TestFail(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, c := range []struct {
		code int
		says string
	}{{program.Failed, "tool: no\n"}, {program.Interrupted, "tool: interrupted\n"}} {
		var errs strings.Builder
		if code := program.New("tool", &errs).Fail(ctx, program.Failed, errors.New("no")); code != c.code ||
			errs.String() != c.says {
			t.Errorf("exit %d: %q", code, errs.String())
		}
		cancel()
	}
}

func TestRoot(t *testing.T) {
	root, err := program.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "tools", "program")); err != nil {
		t.Error(err)
	}
	t.Chdir(t.TempDir())
	if root, err := program.Root(t.Context()); err == nil || !strings.Contains(err.Error(), "folder tools") {
		t.Errorf("%q, %v beyond the tree", root, err)
	}
}
