package fleet

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// named returns the hashes of n elections.
func named(prefix string, n int) []uint64 {
	all := make([]uint64, n)
	for i := range all {
		all[i] = hashOf(fmt.Sprint(prefix, i))
	}
	return all
}

// seated returns n random seats of many. The same dice give the same seats.
func seated(dice *rand.Rand, n int) []int {
	all := dice.Perm(max(64, 2*n))[:n]
	slices.Sort(all)
	return all
}

// loads returns how many elections each seat has.
func loads(at []int, seats int) []int {
	all := make([]int, seats)
	for _, seat := range at {
		all[seat]++
	}
	return all
}

// moved returns how many elections have another seat, by the seat's number.
func moved(before []int, of []int, after []int, to []int) (n int) {
	for i := range before {
		if of[before[i]] != to[after[i]] {
			n++
		}
	}
	return n
}

func TestNoSeatExceedsItsShareByMoreThanATenth(t *testing.T) {
	for seed := range uint64(100) {
		dice := rand.New(rand.NewPCG(seed, 0))
		elections, members := dice.IntN(3000), 1+dice.IntN(70)
		seats := seated(dice, members)
		at := assign(named(fmt.Sprint("job-", seed, "-"), elections), seats)
		rounded := (elections + members - 1) / members
		for i, n := range loads(at, members) {
			if n > rounded && 10*n*members > 11*elections {
				t.Fatalf("seed %d: seat %d has %d of %d elections, one of %d members", seed, seats[i], n, elections, members)
			}
		}
	}
}

func TestAssignmentIsIndependentOfTheOrder(t *testing.T) {
	for seed := range uint64(100) {
		dice := rand.New(rand.NewPCG(seed, 1))
		elections, seats := named("job-", dice.IntN(500)), seated(dice, 1+dice.IntN(20))
		at := assign(elections, seats)
		order, turned := dice.Perm(len(elections)), slices.Clone(seats)
		dice.Shuffle(len(turned), func(i, j int) { turned[i], turned[j] = turned[j], turned[i] })
		other := make([]uint64, len(elections))
		for i, j := range order {
			other[i] = elections[j]
		}
		for i, seat := range assign(other, turned) {
			if turned[seat] != seats[at[order[i]]] {
				t.Fatalf("seed %d: election %d has seat %d in one order and %d in another", seed, order[i], seats[at[order[i]]], turned[seat])
			}
		}
	}
}

// Two names with the same hash are distinguished by their order, which is the order of the names.
func TestElectionsWithOneHashAreBounded(t *testing.T) {
	seats := []int{1, 5, 9, 20}
	at := assign(make([]uint64, 100), seats)
	if n := slices.Max(loads(at, len(seats))); n > 26 {
		t.Errorf("%d of 100 elections have one of 4 seats", n)
	}
}

// When a member comes or goes, its share must move. The bound on loads moves a little more.
func TestFewElectionsMove(t *testing.T) {
	for _, x := range []struct {
		elections, members int
		most               float64 // of the number that must move
	}{
		{10_000, 3, 1.05}, {10_000, 10, 1.1}, {10_000, 40, 1.35}, {1_000, 3, 1.2}, {1_000, 10, 1.4}, {100, 3, 2}, {100, 10, 3},
	} {
		var joins, leaves, worst float64
		const plays = 10
		for seed := range uint64(plays) {
			dice := rand.New(rand.NewPCG(seed, 2))
			elections, with := named(fmt.Sprint("job-", seed, "-"), x.elections), seated(dice, x.members+1)
			without := slices.Delete(slices.Clone(with), x.members/2, x.members/2+1)
			all, fewer := assign(elections, with), assign(elections, without)
			has := float64(x.elections) / float64(x.members+1)
			n := float64(moved(all, with, fewer, without))
			joins, worst = joins+n/has, max(worst, n/has)
			leaves += n / float64(loads(all, len(with))[x.members/2])
		}
		t.Logf("%d elections, %d members and one more: %.2f of its share move, %.2f at most; %.2f of what it had", x.elections,
			x.members, joins/plays, worst, leaves/plays)
		if worst > x.most {
			t.Errorf("%d elections, %d members: %.2f of the share of one move when it comes, more than %.2f", x.elections, x.members, worst, x.most)
		}
	}
}

// During a rollout the lists of members differ for a while. Then only few elections are assigned to
// different members.
func TestSimilarListsAreAssignedAlike(t *testing.T) {
	dice := rand.New(rand.NewPCG(3, 3))
	elections, seats := named("job-", 10_000), seated(dice, 10)
	more := append(slices.Clone(elections), named("new-", 100)...)
	before, after := assign(elections, seats), assign(more, seats)
	if n := moved(before, seats, after, seats); n > 100 {
		t.Errorf("%d of 10,000 elections are assigned otherwise because there are 100 more", n)
	}
}

func TestAssignmentWithoutSeats(t *testing.T) {
	if at := assign(named("job-", 3), nil); !slices.Equal(at, []int{-1, -1, -1}) {
		t.Errorf("meant for %v", at)
	}
	if at := assign(nil, []int{4}); len(at) != 0 {
		t.Errorf("%v", at)
	}
}

// BenchmarkAssign measures the computation that every member makes at each change of members.
func BenchmarkAssign(b *testing.B) {
	elections, seats := named("job-", 10_000), seated(rand.New(rand.NewPCG(4, 4)), 64)
	for b.Loop() {
		assign(elections, seats)
	}
}
