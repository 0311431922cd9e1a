package cli

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/testenv"
)

func TestReport(t *testing.T) {
	testenv.Sequential(t)
	p := newPlace(t, map[string]string{"none/notes.md": "", "bad/results.json": "{"})
	recorded(t)
	read := func(path string) []byte {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
		}
		return b
	}
	// Files made from a record again are those made when it was new.
	for _, dir := range []string{"run", "sim", "explore"} {
		o := call(t.Context(), "report", dir, "--out", dir+"-again.html")
		if o.code != ExitOK || (o.stdout != "") != (dir != "explore") || o.stderr != "written: "+dir+"-again.html, "+dir+"-again.txt\n" {
			t.Errorf("exit %d: %s%s", o.code, o.stdout, o.stderr)
		}
		for _, ext := range []string{".html", ".txt"} {
			if old := read(filepath.Join(dir, "report"+ext)); len(old) == 0 || !bytes.Equal(old, read(dir+"-again"+ext)) {
				t.Errorf("%s: report%s differs from the one that was written with the record", dir, ext)
			}
		}
	}
	if o := call(t.Context(), "report", "run/results.json", "sim", "explore", "run"); o.code != ExitOK {
		t.Fatalf("exit %d: %s", o.code, o.stderr)
	}
	page, text := string(read("report.html")), string(read("report.txt"))
	for _, want := range []string{"simulated", "explored", "promises to count and does not", "quotabench explore --replay"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, name := range []string{"run", "sim", "explore"} {
		if strings.Count(text, "== "+name+" ==") != 1 || !strings.Contains(page, ">"+name+" <") {
			t.Errorf("%s is not in the report once", name)
		}
	}
	left := len(p.files())
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "report needs a record"},
		{[]string{"run"}, "report.html is there already"},
		{[]string{"run", "--out", "new.pdf"}, "ends in .html"},
		{[]string{"run", "--out", "run-again.html"}, "is there already"},
		{[]string{"run", "--out", "no/folder.html"}, "is no folder"},
		{[]string{"none", "--out", "new.html"}, "none holds no record"},
		{[]string{"gone", "--out", "new.html"}, "cannot read gone"},
		{[]string{"bad", "--out", "new.html"}, "bad/results.json"},
	} {
		o := call(t.Context(), append([]string{"report"}, c.args...)...)
		if o.code != ExitUsage || !strings.Contains(o.stderr, c.want) || strings.Count(o.stderr, "\n") != 1 {
			t.Errorf("%q: exit %d, %s", c.args, o.code, o.stderr)
		}
	}
	if err := errors.Join(os.Remove("report.txt"), os.Rename("report.html", "kept.html")); err != nil {
		t.Fatal(err)
	}
	if got := len(p.files()); got != left-1 {
		t.Errorf("%d files were left, of %d", got, left)
	}
}
