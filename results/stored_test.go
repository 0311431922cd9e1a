package results

import "testing"

// TestSummariseStored: of each store the round stands that kept the most there, whole.
func TestSummariseStored(t *testing.T) {
	over := []StoredAt{{AtNS: 1, Entries: 10}, {AtNS: 2, Entries: 20}, {AtNS: 3, Entries: 30}}
	rounds := [][]Stored{
		{NewStored("postgres", 10, 7, 800, nil), NewStored("redis", 10, 30, 900, nil)},
		{NewStored("postgres", 20, 7, 900, nil), NewStored("redis", 20, 40, 500, over)},
		{NewStored("postgres", 0, 6, 9_000, nil)},
	}
	var runs []Run
	for _, r := range rounds {
		runs = append(runs, Run{Stored: r, Audit: Audit{Valid: true}})
	}
	s := Summarise(runs)[0].Stored
	if len(s) != 2 || s[0].Store != "postgres" || s[0].BytesPerSubject != 45 || s[1].Entries != 40 ||
		s[1].BytesPerSubject != 25 || len(s[1].OverTime) != 3 {
		t.Errorf("stored %+v", s)
	}
	if k := rounds[2][0]; k.BytesPerSubject != 0 {
		t.Errorf("%g bytes for each of no subjects", k.BytesPerSubject)
	}
}
