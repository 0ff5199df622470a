package witness_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/tenure-go/tenure/internal/witness"
)

// noted is one act in a book.
type noted struct {
	token uint64
	who   string
	at    int64
}

func TestBook(t *testing.T) {
	type verdict = witness.Verdict
	for _, c := range []struct {
		name, why string
		acts      []noted
		found     []string
		want      verdict // without terms and acts
	}{
		{"in turn", "the next term begins after the last act",
			[]noted{{1, "a", 10}, {1, "a", 20}, {4, "b", 30}, {7, "a", 50}}, nil, verdict{}},
		{"one act each", "a gap of one is enough",
			[]noted{{1, "a", 10}, {2, "b", 11}}, nil, verdict{}},
		{"again", "a process may lead again with a higher token",
			[]noted{{1, "a", 10}, {2, "a", 20}}, nil, verdict{}},
		{"reported late", "only stamps count",
			[]noted{{2, "b", 20}, {1, "a", 15}, {1, "a", 10}}, nil, verdict{}},
		{"one stale act", "a acts after b began",
			[]noted{{1, "a", 10}, {2, "b", 20}, {1, "a", 25}},
			[]string{"a acts in term 1 5ns after b first acted in term 2"},
			verdict{Stale: 1, Overlap: 5}},
		{"one stale act, reported first", "only stamps count",
			[]noted{{1, "a", 10}, {1, "a", 25}, {2, "b", 20}},
			[]string{"a acts in term 1 5ns after b first acted in term 2"},
			verdict{Stale: 1, Overlap: 5}},
		{"the same moment", "no order is proved",
			[]noted{{1, "a", 10}, {2, "b", 10}},
			[]string{"a acts in term 1 0s after b first acted in term 2"},
			verdict{Stale: 1}},
		{"stale after the end", "the end of b does not make a leader of a",
			[]noted{{1, "a", 10}, {2, "b", 20}, {2, "b", 30}, {1, "a", 80}},
			[]string{"a acts in term 1 60ns after b first acted in term 2"},
			verdict{Stale: 1, Overlap: 60}},
		{"within", "the newer token began first",
			[]noted{{2, "b", 10}, {2, "b", 30}, {1, "a", 20}},
			[]string{"a acts in term 1 10ns after b first acted in term 2"},
			verdict{Stale: 1, Overlap: 10, Regressed: 1}},
		{"not the neighbor", "each earlier term must be over",
			[]noted{{1, "a", 10}, {2, "b", 20}, {3, "c", 30}, {1, "a", 35}},
			[]string{"a acts in term 1 15ns after b first acted in term 2",
				"a acts in term 1 5ns after c first acted in term 3"},
			verdict{Stale: 1, Overlap: 15}},
		{"a lower token", "a resource refuses the new leader",
			[]noted{{5, "a", 10}, {5, "a", 20}, {3, "b", 100}},
			[]string{"b acts in term 3 90ns after a first acted in term 5"},
			verdict{Regressed: 1}},
		{"a lower token later", "the highest of all earlier tokens counts",
			[]noted{{5, "a", 10}, {6, "b", 20}, {5, "c", 30}},
			[]string{"a and c both act in term 5",
				"c acts in term 5 10ns after b first acted in term 6"},
			verdict{Regressed: 1}},
		{"a token twice", "a resource cannot distinguish them",
			[]noted{{1, "a", 10}, {1, "b", 20}, {1, "b", 30}},
			[]string{"a and b both act in term 1"},
			verdict{Regressed: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b witness.Book
			var found []string
			for _, a := range c.acts {
				for _, o := range b.Add("e", a.who, a.token, a.at) {
					found = append(found, o.String())
				}
			}
			if !slices.Equal(found, c.found) {
				t.Errorf("found %q, want %q: %s", found, c.found, c.why)
			}
			b.Add("another election", "z", 1, 0, 1000)
			b.Add("no acts", "z", 1)
			got := b.Judge()
			if got.Acts != len(c.acts)+2 || got.Safe() != (c.want == verdict{}) {
				t.Errorf("%+v, safe: %v", got, got.Safe())
			}
			if got.Acts, got.Terms = 0, 0; got != c.want {
				t.Errorf("%+v, want %+v: %s", got, c.want, c.why)
			}
		})
	}
}

func TestOverlapIsTheLongest(t *testing.T) {
	var b witness.Book
	b.Add("e", "a", 1, 0, int64(time.Second))
	b.Add("e", "b", 2, int64(900*time.Millisecond), int64(3*time.Second))
	b.Add("e", "c", 3, int64(2*time.Second), int64(4*time.Second))
	if got := b.Judge().Overlap; got != time.Second {
		t.Errorf("%v, want 1 s", got)
	}
	short, long := witness.Verdict{Overlap: 1}, witness.Verdict{Overlap: 3}
	if a, b := short.Plus(long), long.Plus(short); a.Overlap != 3 || b.Overlap != 3 {
		t.Errorf("the longer of 1 and 3 is %d, and %d", a.Overlap, b.Overlap)
	}
}

// TestBookAgreesWithAllPairs: in any order of the acts, the book finds the same pairs and acts as a
// comparison of all pairs of acts.
func TestBookAgreesWithAllPairs(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 1))
		acts := randomActs(r)
		var b witness.Book
		found := map[[2]uint64]bool{}
		for _, a := range acts {
			for _, o := range b.Add("e", a.who, a.token, a.at) {
				pair := [2]uint64{o.Older.Token, o.Newer.Token}
				if found[pair] {
					t.Errorf("seed %d: %v is found twice", seed, pair)
				}
				found[pair] = true
			}
		}
		want, stale := allPairs(acts)
		got := b.Judge()
		if got.Stale != stale || got.Safe() != (len(want) == 0) || !maps.Equal(found, want) {
			t.Fatalf("seed %d: %v, want %d stale; found %v, want %v; in %v",
				seed, got, stale, found, want, acts)
		}
	}
}

// randomActs returns acts of terms that mostly follow each other.
func randomActs(r *rand.Rand) []noted {
	var acts []noted
	for i := range uint64(6) {
		begin := int(i)*20 + r.IntN(15)
		token := i + 1
		if r.IntN(10) == 0 {
			token = 7 + i
		}
		for range 1 + r.IntN(4) {
			acts = append(acts, noted{token, fmt.Sprint("c", i), int64(begin + r.IntN(15))})
		}
	}
	r.Shuffle(len(acts), func(i, j int) { acts[i], acts[j] = acts[j], acts[i] })
	return acts
}

// allPairs returns the pairs of tokens that overlap. It also returns the number of acts that follow
// the beginning of a later term.
func allPairs(acts []noted) (found map[[2]uint64]bool, stale int) {
	found, first := map[[2]uint64]bool{}, map[uint64]int64{}
	for _, a := range acts {
		if at, ok := first[a.token]; !ok || a.at < at {
			first[a.token] = a.at
		}
	}
	for _, a := range acts {
		late := false
		for _, b := range acts {
			if a.token < b.token && a.at >= b.at {
				found[[2]uint64{a.token, b.token}] = true
			}
			began, since := first[a.token], first[b.token]
			later := began < since || began == since && a.token < b.token
			late = late || later && a.at >= since
		}
		if late {
			stale++
		}
	}
	return found, stale
}

func TestVerdictNamesTheProblem(t *testing.T) {
	v := witness.Verdict{Terms: 3, Acts: 40, Stale: 2, Regressed: 1, AfterEnd: 5}
	v.Overlap = time.Second
	const want = "4 of 80 acts came after the first act of a later term, up to 1s after it; " +
		"2 of 6 tokens did not grow; 10 acts came after the end of their process"
	if got := v.Plus(v).String(); got != want {
		t.Errorf("got %q", got)
	}
}

// worker is one process that tenure starts, or a descendant.
type worker struct {
	token               uint64
	candidate, root, id uint32
}

func (w worker) does(at int64, what witness.What) witness.Record {
	return witness.Record{
		At: at, Token: w.token, Candidate: w.candidate, What: what, PID: w.id, Root: w.root,
	}
}

func (w worker) acts(at int64) witness.Record { return w.does(at, witness.Act) }

// child is a process that a worker starts.
func (w worker) child() worker {
	w.id++
	return w
}

// TestPlantedFaults: the verdict finds the one fault in each journal, and none in journals without
// faults.
func TestPlantedFaults(t *testing.T) {
	c1, c2, c3 := worker{4, 1, 10, 10}, worker{7, 2, 20, 20}, worker{9, 3, 30, 30}
	again := worker{4, 1, 15, 15}    // c1 runs its worker twice in one term
	lower := worker{3, 2, 20, 20}    // c2 has a token below that of c1
	rival := worker{4, 2, 20, 20}    // c2 has the token of c1
	resumed := worker{12, 1, 10, 10} // a PID is reused in a later term
	type records = []witness.Record
	type verdict = witness.Verdict
	for _, c := range []struct {
		name, why string
		journal   records
		want      verdict // without terms and acts
	}{
		{"nothing", "there is nothing to judge", nil, verdict{}},
		{"in turn", "one after the other", records{
			c1.does(1, witness.Began), c1.acts(2), c1.does(3, witness.Asked), c1.acts(4),
			c1.does(5, witness.Ended), c2.does(6, witness.Began), c2.acts(7), c3.acts(8), resumed.acts(9),
		}, verdict{}},
		{"killed", "a process that is killed leaves no end",
			records{c1.acts(1), c2.acts(2)}, verdict{}},
		{"begun early", "a beginning is not an act",
			records{c1.acts(1), c2.does(2, witness.Began), c1.acts(3), c2.acts(4)}, verdict{}},
		{"children", "the processes of one worker may enter their acts in any order",
			records{c1.acts(1), c1.child().acts(4), c1.acts(3), c2.acts(5)}, verdict{}},
		{"children outlive the worker", "until the next worker begins, they may",
			records{c1.acts(1), c1.does(2, witness.Ended), c1.child().acts(3), c2.acts(4)}, verdict{}},

		{"overlap by one act", "c1 acts after c2 began",
			records{c1.acts(1), c2.acts(3), c1.acts(5), c2.acts(6)}, verdict{Stale: 1, Overlap: 2}},
		{"a stamp at the same time", "no order is proved",
			records{c1.acts(1), c1.acts(3), c2.acts(3)}, verdict{Stale: 1}},
		{"early stamp, late place", "c1 is suspended after the stamp, and acts all the same",
			records{c1.acts(1), c2.acts(3), c1.acts(2)}, verdict{Stale: 1}},
		{"late stamp, early place", "c1 acts after c2 began, though its record is first",
			records{c1.acts(1), c1.acts(5), c2.acts(3)}, verdict{Stale: 1, Overlap: 2}},
		{"a child outlives its term", "a descendant of c1's worker acts after c2 began",
			records{c1.acts(1), c2.acts(2), c1.child().acts(3)}, verdict{Stale: 1, Overlap: 1}},
		{"an equal token", "a resource cannot distinguish two leaders",
			records{c1.acts(1), rival.acts(2)}, verdict{Regressed: 1}},
		{"an equal token of one candidate", "nor two runs of the command",
			records{c1.acts(1), again.acts(2)}, verdict{Regressed: 1}},
		{"two lower tokens", "the highest of all earlier tokens counts",
			records{c2.acts(1), lower.acts(2), rival.acts(3)}, verdict{Regressed: 2}},
		{"an act after the end", "the process works although it said that it ended",
			records{c1.acts(1), c1.does(2, witness.Ended), c1.acts(3), c2.acts(4)}, verdict{AfterEnd: 1}},
		{"two writers at once", "two commands work for one candidate",
			records{c1.acts(1), again.acts(2), c1.acts(3), again.acts(4)},
			verdict{Stale: 1, Overlap: 1, Regressed: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "journal")
			must(t, os.WriteFile(path, nil, 0o600))
			writers := map[uint32]*witness.Writer{}
			for _, r := range c.journal {
				if writers[r.PID] == nil {
					writers[r.PID] = open(t, path)
				}
				must(t, writers[r.PID].Write(r))
			}
			read, err := follow(t, path).Next()
			if err != nil || len(read) != len(c.journal) {
				t.Fatalf("read %d records of %d, %v", len(read), len(c.journal), err)
			}
			got := witness.Judge(read)
			if order := witness.ByOrder(read); order.Overlap != 0 {
				t.Errorf("%v: places are not times", order.Overlap)
			}
			if got.Safe() != (c.want == verdict{}) {
				t.Errorf("safe: %v", got.Safe())
			}
			if got.Acts, got.Terms = 0, 0; got != c.want {
				t.Errorf("%+v, want %+v: %s", got, c.want, c.why)
			}
		})
	}
}
