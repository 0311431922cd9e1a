package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/cli"
	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/internal/kit/programs"
)

// TestDoctorInstalls: doctor says how to install each program that quotabench can use and that is missing, and
// nothing of others.
func TestDoctorInstalls(t *testing.T) {
	var names []string
	for _, p := range programs.All() {
		names = append(names, p.Name)
	}
	t.Setenv("QUOTABENCH_HIDE", strings.Join(names, ","))
	var out, errs bytes.Buffer
	if code := cli.Main([]string{"doctor", "--json"}, &out, &errs); code != exit.OK {
		t.Fatalf("exit %d: %s", code, errs.String())
	}
	var lines []struct{ Name, State, Advice string }
	if err := json.Unmarshal(out.Bytes(), &lines); err != nil {
		t.Fatal(err)
	}
	missing := 0
	for _, line := range lines {
		if line.State == "missing" {
			missing++
		}
	}
	for _, p := range programs.All() {
		if p.Option == "" {
			continue
		}
		missing--
		said := false
		for _, line := range lines {
			said = said || line.State == "missing" && strings.HasPrefix(line.Advice, p.Install())
		}
		if !said {
			t.Errorf("without %s doctor does not say %q:\n%s", p.Title, p.Install(), out.String())
		}
	}
	if missing != 0 {
		t.Errorf("%d lines about programs that quotabench does not use:\n%s", missing, out.String())
	}
}
