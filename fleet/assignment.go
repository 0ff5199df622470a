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
// best seat. Since both sides go by one weight, the outcome does not depend on the order in which
// elections are looked at (Gale and Shapley, 1962).

// leeway is by how many percent the elections that are assigned to a member may exceed its share.
// Elections that were won because no nominee came add to those that it leads, for a while.
const leeway = 5

// capacity is the most that one member is meant to lead: its share rounded up, or as much more as
// leeway allows.
func capacity(elections, members int) int {
	return max((elections+members-1)/members, elections*(100+leeway)/(100*members))
}

// hashOf stands for the name of an election in all weights.
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

// weight is how much an election is drawn to a seat. No two seats weigh the same for one election.
func weight(election uint64, seat int) uint64 {
	return scramble(election ^ scramble(uint64(seat)+1))
}

// assign returns for each election, given by its hash, the index in seats of the one that it is
// meant for; -1 for all if there are no seats. The order of seats does not matter, that of
// elections only between names of the same hash.
func assign(elections []uint64, seats []int) []int {
	a := assignment{
		elections: elections, seats: seats, most: capacity(len(elections), max(len(seats), 1)),
		at: make([]int, len(elections)), rooms: make([]room, len(seats)),
	}
	for i := range a.at {
		a.at[i] = -1
	}
	if len(seats) == 0 {
		return a.at
	}
	for i := range elections {
		for homeless := i; homeless >= 0; {
			homeless = a.place(homeless)
		}
	}
	return a.at
}

// assignment is one in the making.
type assignment struct {
	elections []uint64
	seats     []int
	most      int
	// by election: the index of the seat that has it, or that has just refused it; -1 before the
	// first
	at    []int
	rooms []room
}

// place gives an election to the best seat that has not refused it, and returns which one that seat
// refuses for it, or -1.
func (a *assignment) place(election int) (refused int) {
	seat, w := a.next(election)
	a.at[election] = seat
	r := &a.rooms[seat]
	heap.Push(r, bid{w, election})
	if r.Len() <= a.most {
		return -1
	}
	return heap.Pop(r).(bid).election
}

// next is the best seat after the one that has refused the election, and all better ones with it.
// There is one, as there is room for all.
func (a *assignment) next(election int) (seat int, w uint64) {
	h, last := a.elections[election], a.at[election]
	seat = -1
	for i, number := range a.seats {
		x := weight(h, number)
		if (last < 0 || x < weight(h, a.seats[last])) && (seat < 0 || x > w) {
			seat, w = i, x
		}
	}
	return seat, w
}

// bid is an election that a seat has, for as long as none of higher weight wants its place.
type bid struct {
	weight   uint64
	election int
}

// room is the list of a seat's elections, as a heap: the next one to be refused comes first.
type room []bid

func (r room) Len() int { return len(r) }
func (r room) Less(i, j int) bool {
	return r[i].weight < r[j].weight || r[i].weight == r[j].weight && r[i].election > r[j].election
}
func (r room) Swap(i, j int) { r[i], r[j] = r[j], r[i] }
func (r *room) Push(x any)   { *r = append(*r, x.(bid)) }
func (r *room) Pop() any {
	last := len(*r) - 1
	x := (*r)[last]
	*r = (*r)[:last]
	return x
}
