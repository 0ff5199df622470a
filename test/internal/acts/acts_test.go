package acts

import (
	"testing"
	"time"
)

func TestJudge(t *testing.T) {
	type line struct {
		who    string
		token  uint64
		stamps []int64
	}
	for _, c := range []struct {
		name  string
		why   string
		lines []line
		want  Verdict
	}{
		{"in turn", "the next begins after the last answer",
			[]line{{"a", 1, []int64{10, 20}}, {"b", 2, []int64{21, 30}}},
			Verdict{Terms: 2, Answers: 4}},
		{"stale answers", "two answers of a come after the election of b",
			[]line{{"a", 1, []int64{10, 20, 31, 32}}, {"b", 2, []int64{30, 40}}},
			Verdict{Terms: 2, Answers: 6, Stale: 2, Overlap: 2}},
		{"one inside", "that b is over by then does not make a leader of a",
			[]line{{"a", 1, []int64{10, 100}}, {"b", 2, []int64{30, 40}}},
			Verdict{Terms: 2, Answers: 4, Stale: 1, Overlap: 70}},
		{"a lower token", "a resource would refuse the new leader",
			[]line{{"a", 2, []int64{10, 20}}, {"b", 1, []int64{30, 40}}},
			Verdict{Terms: 2, Answers: 4, Regressed: 1}},
		{"one token twice", "a resource could not tell them apart",
			[]line{{"a", 2, []int64{10, 20}}, {"b", 2, []int64{30, 40}}},
			Verdict{Terms: 2, Answers: 4, Regressed: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b Book
			for _, l := range c.lines {
				b.Add("e", l.who, l.token, l.stamps...)
			}
			b.Add("another election", "c", 1, 0, 1000)
			got := b.Judge()
			got.Terms--
			got.Answers -= 2
			if got != c.want {
				t.Errorf("%+v, want %+v: %s", got, c.want, c.why)
			}
			if safe := c.want.Stale+c.want.Regressed == 0; got.Safe() != safe {
				t.Errorf("safe: %v", got.Safe())
			}
		})
	}
}

func TestOverlapIsTheLongest(t *testing.T) {
	var b Book
	b.Add("e", "a", 1, 0, int64(time.Second))
	b.Add("e", "b", 2, int64(900*time.Millisecond), int64(3*time.Second))
	b.Add("e", "c", 3, int64(2*time.Second), int64(4*time.Second))
	if got := b.Judge().Overlap; got != time.Second {
		t.Errorf("%v, want 1 s", got)
	}
}
