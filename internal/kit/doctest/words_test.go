// Package doctest compares documentation with the code that it describes.
package doctest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../../.."

// instead is what pages say instead of a phrase that they once had many times. A phrase that
// is right in one place and wrong in most is told apart by the words around it.
var instead = map[string]string{
	`\b[Ww]here (a|an|the|it|its|there|no|one|two|they|this|that|these|nothing|both|several|any|all|some)\b`: "if",
	`\bso that\b`: "so, or a new sentence",
	`\bof (its|their|one's|our|your|his) own\b|\bof (yours|ours)\b`: "its own",
	`\b(struck|strikes?)\b`:                    "discarded, invalid",
	`\bbut for\b`:                              "except",
	`\bbeside\b`:                               "next to, in addition to",
	`\banew\b`:                                 "again",
	`\bmend(s|ed|ing)?\b`:                      "fix",
	`\blikewise\b`:                             "also",
	`\b(those|that) (that|which)\b`:            "a noun",
	`\bwhat (is|was|were|has been) found\b`:    "the finding",
	`\btime-outs?\b`:                           "timeout",
	`\b(design )?[Rr]ecords? 00[0-4]\b`:        "the name of the design record, e.g. ADR-005",
	`\b(no word|a word) (for|but|of)\b`:        "a plain sentence",
	`\b(figures?|windows?|columns?) stands?\b`: "is",
	`\b(turned|turns) down\b`:                  "rejected",
	`\bin mid-run\b`:                           "during the run",
	`\bcomes? past\b|\bgo on with\b`:           "continues",
	`\bheld against\b`:                         "compared with",
	`\bas they are put in\b|\bcomes? out as\b`: "is written as",
	`\bsays? (what|which|how|why)\b`:           "names, lists, describes",
	`\bby (itself|themselves)\b`:               "alone, or nothing",
	`\bof what\b`:                              "of the ..., a noun",
	`\bask(s|ed)? for\b`:                       "needs, requests",
	`\bstands? in\b`:                           "is in, replaces",
}

// TestPlainEnglish: pages use the words of docs/glossary.md.
func TestPlainEnglish(t *testing.T) {
	pages := []string{"README.md", "CONTRIBUTING.md"}
	for _, pattern := range []string{"docs/*.md", "docs/decisions/*.md", "strategies/*/notes.md",
		"docs/strategies/choosing.md", "docs/strategies/gateways.md", "docs/strategies/leaks-*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			pages = append(pages, strings.TrimPrefix(f, root+"/"))
		}
	}
	if len(pages) < 50 {
		t.Fatalf("only %d pages were found", len(pages))
	}
	for pattern, better := range instead {
		phrase := regexp.MustCompile(pattern)
		for _, page := range pages {
			text, err := os.ReadFile(filepath.Join(root, page))
			if err != nil {
				t.Fatal(err)
			}
			for i, line := range strings.Split(string(text), "\n") {
				if m := phrase.FindString(line); m != "" && page != "docs/glossary.md" {
					t.Errorf("%s:%d says %q: write %s", page, i+1, m, better)
				}
			}
		}
	}
}
