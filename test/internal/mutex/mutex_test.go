package mutex_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tenure-go/tenure/internal/witness"
	"github.com/tenure-go/tenure/test/internal/mutex"
)

// act is an act of a process of candidate c that tenure started, or of its descendant.
func act(c uint32, token uint64, pid uint32, at int64) witness.Record {
	return witness.Record{What: witness.Act, Candidate: c, Root: c * 10, PID: c*10 + pid, Token: token, At: at}
}

func TestFaults(t *testing.T) {
	began := act(2, 5, 0, 25)
	began.What = witness.Began
	for why, c := range map[string]struct {
		journal []witness.Record
		legal   bool
	}{
		"nothing":                        {nil, true},
		"one act":                        {[]witness.Record{act(1, 3, 0, 10)}, true},
		"one after the other":            {[]witness.Record{act(1, 3, 0, 10), act(1, 3, 0, 20), act(2, 5, 0, 30)}, true},
		"the next begins during an act":  {[]witness.Record{act(1, 3, 0, 10), began, act(1, 3, 0, 28), act(2, 5, 0, 30)}, true},
		"two at once":                    {[]witness.Record{act(1, 3, 0, 10), act(2, 5, 0, 20), act(1, 3, 0, 30)}, false},
		"a fence that falls":             {[]witness.Record{act(1, 5, 0, 10), act(2, 3, 0, 20)}, false},
		"a fence of two processes":       {[]witness.Record{act(1, 3, 0, 10), act(2, 3, 0, 20)}, false},
		"descendants at once":            {[]witness.Record{act(1, 3, 1, 10), act(1, 3, 2, 20), act(1, 3, 1, 30), act(1, 3, 2, 40)}, true},
		"one descendant after the other": {[]witness.Record{act(1, 3, 1, 10), act(1, 3, 2, 20), act(2, 5, 0, 30)}, true},
		"a descendant that is late":      {[]witness.Record{act(1, 3, 1, 10), act(2, 5, 0, 20), act(1, 3, 2, 30)}, false},
		"a candidate that leads twice":   {[]witness.Record{act(1, 3, 0, 10), act(2, 5, 0, 20), act(1, 7, 0, 30)}, true},
	} {
		if faults := mutex.Faults(c.journal, mutex.ByTime); (len(faults) == 0) != c.legal {
			t.Errorf("%s: %q", why, faults)
		}
	}
}

// TestModelsAndWitnessAgree judges random journals in both ways.
func TestModelsAndWitnessAgree(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	legal := map[bool]int{}
	for n := range 4000 {
		var journal []witness.Record
		at, token := int64(0), uint64(0)
		for range 1 + random.IntN(4) { // terms
			token += uint64(1 + random.IntN(2))
			c := uint32(1 + random.IntN(3))
			for range 1 + random.IntN(4) {
				at += 10
				journal = append(journal, act(c, token, uint32(random.IntN(2)), at))
			}
		}
		for range random.IntN(3) { // faults
			i := random.IntN(len(journal))
			if random.IntN(2) == 0 {
				journal[i].At = int64(random.IntN(len(journal)))*10 + 1 + int64(i%9)
			} else {
				journal[i].Token = uint64(1 + random.IntN(int(token)))
			}
		}
		v := witness.ByTime(journal)
		want := v.Stale == 0 && v.Regressed == 0
		legal[want]++
		for _, fault := range mutex.Faults(journal, mutex.ByTime) {
			if want {
				t.Fatalf("journal %d: %s, and the witness says %v:%s", n, fault, v, lines(journal))
			}
		}
		if !want && len(mutex.Faults(journal, mutex.ByTime)) != 2 {
			t.Fatalf("journal %d: a model explains it, and the witness says %v:%s", n, v, lines(journal))
		}
	}
	if legal[true] < 200 || legal[false] < 200 {
		t.Errorf("too few journals of one kind: %v", legal)
	}
}

func lines(journal []witness.Record) (text string) {
	for _, r := range journal {
		text += fmt.Sprintf("\n%+v", r)
	}
	return text
}
