package workloads

import "testing"

func TestParseShard(t *testing.T) {
	for _, text := range []string{"1/1", "2/4", "1000/1000"} {
		if s, err := ParseShard(text); err != nil || s.String() != text {
			t.Errorf("%s: %v, %v", text, s, err)
		}
	}
	for _, text := range []string{"", "1", "0/4", "5/4", "-1/4", "1/1001", "1/x", "a/4", "1/2/3"} {
		if s, err := ParseShard(text); err == nil {
			t.Errorf("%q is %v", text, s)
		}
	}
}

// Shards have no subject in common, and are otherwise what the stream is.
func TestShardsAreDisjoint(t *testing.T) {
	whole := &crossings{perCross: 4}
	names := map[string]int{}
	for part := 1; part <= 3; part++ {
		s := Shard{part, 3}.Stream(whole)
		for n := range uint32(50) {
			names[s.Name(n)]++
		}
		if OpsPerCrossing(s) != OpsPerCrossing(whole) || Subjects(s) != Subjects(whole) || IsPrefilled(s) != IsPrefilled(whole) || s.Len() != whole.Len() {
			t.Errorf("shard %d is another kind of stream", part)
		}
	}
	if len(names) != 150 {
		t.Errorf("%d names of 150 subjects", len(names))
	}
	if a, b, c := (Shard{}).Seed(7), (Shard{1, 3}).Seed(7), (Shard{2, 3}).Seed(7); a != 7 || b != 7 || c == 7 {
		t.Errorf("seeds %d, %d, %d", a, b, c)
	}
	if (Shard{}).Stream(whole) != Stream(whole) {
		t.Error("the whole is wrapped")
	}
}
