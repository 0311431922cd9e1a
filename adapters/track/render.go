package track

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/quotabench/quotabench/adapters/confirm"
	"github.com/quotabench/quotabench/results"
)

// mark ends the page.
const mark = "\n<!-- Written by make track-record: change adapters/track, not this file. -->\n"

const head = `# Track record

Published Go limiters, unmodified, through their public API and judged by their own documentation. Each defect has the command that finds it and was repeated with the library alone, without quotabench. Run the commands in the folder adapters,
a separate module.

**Steps** are those of the shortest schedule: commands, replies, requests and ticks of the clock. **New**: a search of issues found no thread about the defect in this library.
`

// Render writes the page. It runs every command that the page names, which takes
// some minutes, and fails where one no longer finds what it is there for.
func Render(goMod []byte) ([]byte, error) {
	version := versions(goMod)
	var table, sections bytes.Buffer
	modules := map[string]bool{}
	flagless := 0
	for i := range findings {
		f := &findings[i]
		e, err := f.evidence()
		if err != nil {
			return nil, err
		}
		observed, err := confirmed(f.name)
		if err != nil {
			return nil, err
		}
		modules[f.module] = true
		if len(f.command) == 2 {
			flagless++
		}
		v := version[f.module]
		if v == "" {
			return nil, fmt.Errorf("go.mod requires no %s", f.module)
		}
		fmt.Fprintf(&table, "| [%s](#%s) | %s %s | %s | %s | %s |\n", f.name, f.name, short(f.module), v, f.by(), steps(e.steps), upstream(f))
		section(&sections, f, e, observed, v)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\n## Defects\n\n%d defects in %d libraries; %d of them with default flags.\n\n", head, len(findings), len(modules), flagless)
	b.WriteString("| defect | library | found by | steps | upstream |\n|---|---|---|---|---|\n")
	b.Write(table.Bytes())
	b.Write(sections.Bytes())
	b.WriteString("\n## Documented limits\n\nNot counted as defects: the library documents it, decides so, or was not made for it, or a search cannot tell.\n\n")
	for _, l := range limits {
		fmt.Fprintf(&b, "- **%s %s.** %s\n", short(l.module), version[l.module], l.text)
	}
	b.WriteString("\n## Clean\n\nSearches of `quotabench explore STRATEGY` that found nothing. Each claims it for its policy, within its bounds, and for client code that depends on its replies and its clock only. " +
		"Searches that ran out of time claim it for the schedules that they saw.\n\n| library | strategy | searches | states | out of time |\n|---|---|---|---|---|\n")
	for _, c := range clean {
		all, err := search([]string{"explore", c.strategy})
		if err != nil {
			return nil, err
		}
		for _, s := range all {
			if len(s.Findings) > 0 || s.Claim == "" {
				return nil, fmt.Errorf("%s under %s is not clean: %+v", c.strategy, s.Policy, s)
			}
		}
		fmt.Fprintf(&b, "| %s %s | `%s` | %s |\n", short(c.module), version[c.module], c.strategy, extent(all))
	}
	if err := gateways(&b); err != nil {
		return nil, err
	}
	b.WriteString("\n## Without an adapter\n\n")
	for _, l := range left {
		fmt.Fprintf(&b, "- **%s.** %s\n", l.name, l.why)
	}
	b.WriteString(mark)
	return b.Bytes(), nil
}

// extent is how many searches of a limiter there were, what they saw, and how many of them
// ran out of time.
func extent(all []*results.Search) string {
	states, capped := 0, 0
	for _, s := range all {
		states += s.States
		if s.Capped != "" {
			capped++
		}
	}
	return fmt.Sprintf("%d | %d | %d", len(all), states, capped)
}

// gateways writes what searches say of scripts that are rebuilt.
func gateways(b *bytes.Buffer) error {
	b.WriteString("\n## Gateways, rebuilt\n\nWe reimplemented the algorithms of these gateways from what they publish. Findings are about that code and are not counted as defects: the gateways themselves were not run.\n")
	for _, r := range rebuilt {
		all, err := search(r.command)
		if err != nil {
			return err
		}
		s := all[0]
		said := "No violation in any schedule of this command"
		if found := s.Found(r.property); found != nil {
			thread := "See"
			if r.reported {
				thread = "Known:"
			}
			said = fmt.Sprintf("%s in %d steps: %s %s <%s>", r.property, len(found.Steps), sentence(found.Detail), thread, r.thread)
		} else if r.property != "" || len(s.Findings) > 0 {
			return fmt.Errorf("%s: %s is not what is found: %+v", strings.Join(r.command, " "), r.property, s.Findings)
		}
		fmt.Fprintf(b, "\n%s [Source](%s).\n\n    %s\n\n%s.\n", r.text, r.source, line(r.command), strings.ToUpper(said[:1])+said[1:])
	}
	return nil
}

func section(b *bytes.Buffer, f *finding, e evidence, observed, version string) {
	fmt.Fprintf(b, "\n### %s\n\n%s %s. %s\n\n", f.name, short(f.module), version, f.broken)
	fmt.Fprintf(b, "- **When.** %s\n- **Consequence.** %s", f.when, e.consequence)
	if e.steps > 0 {
		fmt.Fprintf(b, " In %d steps, found within %d s.", e.steps, e.seconds)
	}
	if e.odds != "" {
		fmt.Fprintf(b, "\n- **How often.** %s.", strings.ToUpper(e.odds[:1])+e.odds[1:])
	}
	fmt.Fprintf(b, "\n- **Alone.** %s.\n- **Upstream.** ", strings.ToUpper(observed[:1])+observed[1:])
	if f.related == "" {
		b.WriteString("None found.\n")
	} else {
		fmt.Fprintf(b, "<%s> %s.\n", f.related, f.known)
	}
	b.WriteString("\n")
	if len(f.command) > 0 {
		fmt.Fprintf(b, "    %s\n", line(f.command))
	} else {
		b.WriteString("    go test -run TestConformance .\n")
	}
	fmt.Fprintf(b, "    go run ./cmd/confirm %s\n", f.name)
}

// confirmed repeats a finding against its library alone.
func confirmed(name string) (observed string, err error) {
	c, err := confirm.Lookup(name)
	if err != nil {
		return "", err
	}
	observed, ok, err := confirm.Embedded(c)
	if err == nil && !ok {
		err = fmt.Errorf("%s is not confirmed: %s", name, observed)
	}
	return observed, err
}

// by is the mode that finds it.
func (f *finding) by() string {
	return f.command[0]
}

func steps(n int) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

func upstream(f *finding) string {
	link := fmt.Sprintf("[%s](%s)", strings.TrimPrefix(f.related, "https://github.com/"), f.related)
	switch {
	case f.related == "":
		return "new"
	case f.reported:
		return "known: " + link
	}
	return "new; see " + link
}

// short is a module without the host and its major version.
func short(module string) string {
	module = strings.TrimPrefix(module, "github.com/")
	if i := strings.LastIndex(module, "/v"); i > 0 && len(module) <= i+4 {
		module = module[:i]
	}
	return module
}
