package fleet

import (
	"container/heap"
	"hash/fnv"
)

// An assignment maps each election to a member. All members compute it from the same two lists and
// so need not agree on anything else. It is rendezvous hashing (Thaler and Ravishankar, "Using
// name-based mappings to increase hit rates", 1998): each pair of an election and a seat has a
// weight, and an election goes to the seat where its weight is highest, so that a member that comes
// takes elections from all others and moves none between them. The number for each member is
// bounded (Mirrokni, Thorup and Zadimoghaddam, "Consistent hashing with bounded loads", 2018): a
// full one keeps the elections of the highest weight, and those that it refuses go on to their next
// best seat. Since elections and seats use the same weight, the outcome does not depend on the
// order in which elections are looked at (Gale and Shapley, 1962).

// maxExcess is by how many percent the elections that are assigned to a member may exceed its
// share. A member may lead more for a while, if it won elections that their nominees did not claim.
const maxExcess = 5

// capacity is the maximum number of elections that are assigned to one member: its share rounded
// up, or its share plus maxExcess if that is more.
func capacity(elections, members int) int {
	return max((elections+members-1)/members, elections*(100+maxExcess)/(100*members))
}

// hashOf returns the hash of an election's name, from which its weights are computed.
func hashOf(name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return scramble(h.Sum64())
}

// scramble is a permutation in which each bit of the outcome depends on all bits of x: the
// finalizer of SplitMix64 (Steele, Lea and Flood, 2014).
func scramble(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// weight orders the seats for an election: it goes to the seat with the highest weight. No two
// seats have the same weight for one election.
func weight(election uint64, seat int) uint64 {
	return scramble(election ^ scramble(uint64(seat)+1))
}

// assign returns for each election, given by its hash, the index in seats of its assigned seat; -1
// for all if there are no seats. The order of seats does not matter. The order of elections matters
// only between names with the same hash.
func assign(elections []uint64, seats []int) []int {
	a := assignment{
		elections: elections, seats: seats, capacity: capacity(len(elections), max(len(seats), 1)),
		seatOf: make([]int, len(elections)), placed: make([]placedElections, len(seats)),
	}
	for i := range a.seatOf {
		a.seatOf[i] = -1
	}
	if len(seats) == 0 {
		return a.seatOf
	}
	for i := range elections {
		for unplaced := i; unplaced >= 0; {
			unplaced = a.place(unplaced)
		}
	}
	return a.seatOf
}

// assignment is the state of assign.
type assignment struct {
	elections []uint64
	seats     []int
	capacity  int
	// seatOf has, for each election, the index of the seat that has it, or that has just refused
	// it; -1 before the first
	seatOf []int
	placed []placedElections
}

// place gives an election to the best seat that has not refused it. If that seat is full, it
// refuses an election in exchange, which place returns; otherwise -1.
func (a *assignment) place(election int) (refused int) {
	seat, w := a.next(election)
	a.seatOf[election] = seat
	r := &a.placed[seat]
	heap.Push(r, placement{w, election})
	if r.Len() <= a.capacity {
		return -1
	}
	return heap.Pop(r).(placement).election
}

// next returns the best seat after the one that refused the election last. There is one, because
// the seats have room for all elections.
func (a *assignment) next(election int) (seat int, w uint64) {
	h, last := a.elections[election], a.seatOf[election]
	seat = -1
	for i, number := range a.seats {
		x := weight(h, number)
		if (last < 0 || x < weight(h, a.seats[last])) && (seat < 0 || x > w) {
			seat, w = i, x
		}
	}
	return seat, w
}

// placement is an election that a seat has. It loses it if the seat is full and an election of
// higher weight comes.
type placement struct {
	weight   uint64
	election int
}

// placedElections is the heap of a seat's elections: the next one to be refused comes first.
type placedElections []placement

func (r placedElections) Len() int { return len(r) }
func (r placedElections) Less(i, j int) bool {
	return r[i].weight < r[j].weight || r[i].weight == r[j].weight && r[i].election > r[j].election
}
func (r placedElections) Swap(i, j int) { r[i], r[j] = r[j], r[i] }
func (r *placedElections) Push(x any)   { *r = append(*r, x.(placement)) }
func (r *placedElections) Pop() any {
	last := len(*r) - 1
	x := (*r)[last]
	*r = (*r)[:last]
	return x
}
