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
		s := Shard{Part: part, Of: 3}.Stream(whole)
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
	if a, b, c := (Shard{}).Seed(7), (Shard{Part: 1, Of: 3}).Seed(7), (Shard{Part: 2, Of: 3}).Seed(7); a != 7 || b != 7 || c == 7 {
		t.Errorf("seeds %d, %d, %d", a, b, c)
	}
	if (Shard{}).Stream(whole) != Stream(whole) {
		t.Error("the whole is wrapped")
	}
}

// A pod of an Indexed Job finds its number in its environment, which counts from 0.
func TestShardOfJob(t *testing.T) {
	for index, want := range map[string]string{"0": "1/3", "2": "3/3", "3": "", "": "", "-1": "", "x": ""} {
		t.Setenv("JOB_COMPLETION_INDEX", index)
		if s, err := ParseShard("job/3"); s.String() != want || (err == nil) != (want != "") {
			t.Errorf("%q: %v, %v, want %q", index, s, err, want)
		}
	}
}

// Parts with the same subjects have each operation once, in the order and at the times of the stream.
func TestPartsShareSubjects(t *testing.T) {
	whole := &crossings{perCross: 4}
	all, err := Constant(1000)
	if err != nil {
		t.Fatal(err)
	}
	seen, sum := map[int64]int{}, int64(0)
	for part := 1; part <= 3; part++ {
		s := Shard{Part: part, Of: 3, Shared: true}
		if s.Stream(whole) != Stream(whole) || s.Seed(7) != 7 || s.First() != (part == 1) || s.String() == "" {
			t.Errorf("part %d has a stream of its own", part)
		}
		arrivals, err := Constant(1000)
		if err != nil {
			t.Fatal(err)
		}
		own := s.Arrivals(arrivals)
		for i := range s.Ops(100) {
			seen[s.Op(i)]++
			if at, ok := own.Next(); !ok || at.Milliseconds() != s.Op(i)+1 && at.Milliseconds() != s.Op(i) {
				t.Errorf("operation %d comes at %v", s.Op(i), at)
			}
		}
		sum += s.Ops(100)
		if s.Ops(0) != 0 || s.Ops(int64(part)) != 1 || s.Ops(1<<63-1) < 1<<61 {
			t.Errorf("part %d has %d operations of %d", part, s.Ops(int64(part)), part)
		}
	}
	if len(seen) != 100 || sum != 100 || seen[0] != 1 || seen[99] != 1 {
		t.Errorf("%d operations of 100, %d in all", len(seen), sum)
	}
	if s := (Shard{}); s.Op(5) != 5 || s.Ops(9) != 9 || !s.First() || s.Arrivals(all) != all {
		t.Error("the whole is a part")
	}
}
