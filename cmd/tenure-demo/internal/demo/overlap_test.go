package demo

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/cmd/internal/stamp"
)

// act is one act of a plan.
type act struct {
	token uint64
	by    actor
	at    int
}

var (
	one = actor{"c1", 101}
	two = actor{"c2", 102}
	six = actor{"c1", 106} // the first candidate in a new process
)

func TestCheckerFindsPlantedOverlapsAndNoOthers(t *testing.T) {
	for _, c := range []struct {
		why  string
		acts []act
		want []string
	}{
		{"terms one after another", []act{{1, one, 10}, {1, one, 20}, {4, two, 30}, {4, two, 40}, {7, one, 50}}, nil},
		{"one act each", []act{{1, one, 10}, {2, two, 11}}, nil},
		{"a leader that is killed and leads again in a new process", []act{{1, one, 10}, {2, six, 20}}, nil},
		{
			"an act of an older term after a newer has begun",
			[]act{{1, one, 10}, {2, two, 20}, {1, one, 25}},
			[]string{"c1 (process 101) acts in term 1 5ms after c2 (process 102) first acted in term 2"},
		},
		{
			"the same, and the newer term's report came late",
			[]act{{1, one, 10}, {1, one, 25}, {2, two, 20}},
			[]string{"c1 (process 101) acts in term 1 5ms after c2 (process 102) first acted in term 2"},
		},
		{
			"an older term within a newer one",
			[]act{{2, two, 10}, {2, two, 30}, {1, one, 20}},
			[]string{"c1 (process 101) acts in term 1 10ms after c2 (process 102) first acted in term 2"},
		},
		{
			"a term that goes backwards, long after",
			[]act{{5, one, 10}, {5, one, 20}, {3, two, 100}},
			[]string{"c2 (process 102) acts in term 3 90ms after c1 (process 101) first acted in term 5"},
		},
		{
			"the very same moment",
			[]act{{1, one, 10}, {2, two, 10}},
			[]string{"c1 (process 101) acts in term 1 0s after c2 (process 102) first acted in term 2"},
		},
		{
			"one term, two processes",
			[]act{{1, one, 10}, {1, two, 20}, {1, two, 30}},
			[]string{"c1 (process 101) and c2 (process 102) both act in term 1"},
		},
		{
			"a term that is not the neighbour",
			[]act{{1, one, 10}, {2, two, 20}, {3, six, 30}, {1, one, 25}},
			[]string{"c1 (process 101) acts in term 1 5ms after c2 (process 102) first acted in term 2"},
		},
		{
			"two at once with a third",
			[]act{{1, one, 10}, {2, two, 20}, {3, six, 30}, {1, one, 35}},
			[]string{
				"c1 (process 101) acts in term 1 15ms after c2 (process 102) first acted in term 2",
				"c1 (process 101) acts in term 1 5ms after c1 (process 106) first acted in term 3",
			},
		},
	} {
		t.Run(c.why, func(t *testing.T) {
			var k checker
			var got []string
			for _, a := range c.acts {
				for _, o := range k.act(a.token, a.by, at(a.at)) {
					got = append(got, o.String())
				}
			}
			if strings.Join(got, "\n") != strings.Join(c.want, "\n") {
				t.Errorf("got %q\nwant %q", got, c.want)
			}
			if k.acts != len(c.acts) || len(k.found) != len(c.want) {
				t.Errorf("counted %d acts and %d overlaps", k.acts, len(k.found))
			}
		})
	}
}

// In whatever order the acts come, the pairs of terms that overlap are those that a look at all pairs of acts finds.
func TestCheckerAgreesWithALookAtAllPairs(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		acts := randomActs(r)
		var k checker
		for _, a := range acts {
			k.act(a.token, a.by, at(a.at))
		}
		got := map[[2]uint64]bool{}
		for _, o := range k.found {
			got[[2]uint64{o.older.token, o.newer.token}] = true
		}
		want := allPairs(acts)
		if len(got) != len(want) || len(k.found) != len(want) {
			t.Fatalf("seed %d: found %v, want %v, in %v", seed, got, want, acts)
		}
		for pair := range want {
			if !got[pair] {
				t.Fatalf("seed %d: %v is missing, in %v", seed, pair, acts)
			}
		}
	}
}

// randomActs are those of terms that mostly come one after another.
func randomActs(r *rand.Rand) []act {
	var acts []act
	for token := range uint64(6) {
		by, begin := actor{"c", int(token)}, int(token)*20+r.IntN(15)
		for range 1 + r.IntN(4) {
			acts = append(acts, act{token + 1, by, begin + r.IntN(15)})
		}
	}
	r.Shuffle(len(acts), func(i, j int) { acts[i], acts[j] = acts[j], acts[i] })
	return acts
}

func allPairs(acts []act) map[[2]uint64]bool {
	found := map[[2]uint64]bool{}
	for _, a := range acts {
		for _, b := range acts {
			if a.token < b.token && a.at >= b.at {
				found[[2]uint64{a.token, b.token}] = true
			}
		}
	}
	return found
}

func TestCheckerKnowsTheLastActOfATerm(t *testing.T) {
	var k checker
	k.act(3, one, at(10))
	k.act(3, one, at(30))
	k.act(3, one, at(20))
	if last, ok := k.lastAct(3); !ok || last != at(30) {
		t.Errorf("got %v, %v", last, ok)
	}
	if last, ok := k.lastAct(2); ok || last != stamp.Time(0) {
		t.Errorf("got %v of a term that there was not", last)
	}
}
