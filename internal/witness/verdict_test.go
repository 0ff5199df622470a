package witness_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tenure-go/tenure/internal/witness"
)

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
		{"not the neighbor", "the term in between does not matter",
			records{c1.acts(1), c2.acts(2), c3.acts(3), c1.acts(4)}, verdict{Stale: 1, Overlap: 2}},
		{"an equal token", "a resource cannot distinguish two leaders",
			records{c1.acts(1), rival.acts(2)}, verdict{Regressed: 1}},
		{"an equal token of one candidate", "nor two runs of the command",
			records{c1.acts(1), again.acts(2)}, verdict{Regressed: 1}},
		{"an equal token after others", "the highest of all earlier tokens counts",
			records{c1.acts(1), c2.acts(2), rival.acts(3)}, verdict{Regressed: 1}},
		{"a lower token", "a resource refuses the new leader",
			records{c1.acts(1), lower.acts(2)}, verdict{Regressed: 1}},
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
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			writers := map[uint32]*witness.Writer{}
			for _, r := range c.journal {
				if writers[r.PID] == nil {
					writers[r.PID] = open(t, path)
				}
				if err := writers[r.PID].Write(r); err != nil {
					t.Fatal(err)
				}
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
