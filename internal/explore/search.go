package main

import "slices"

// result is what a search has found.
type result struct {
	states, moves int
	depth         int  // the most moves to a state
	whole         bool // each state within the bounds was reached
	trace         []move
	fault         string
}

// node is how a state was first reached.
type node struct {
	parent int32
	by     move
}

// search visits each state once, nearest first, so the first fault has a shortest trace.
func (mo *model) search(most int) result {
	first := mo.first()
	seen := map[key]struct{}{first.key(): {}}
	nodes := []node{{parent: -1}}
	level, at := []*world{first}, []int32{0}
	var r result
	for len(level) > 0 {
		if len(seen) > most {
			r.states = len(seen)
			return r
		}
		var next []*world
		var nextAt []int32
		for i, w := range level {
			level[i] = nil
			for _, v := range w.moves() {
				r.moves++
				c := w.after(v)
				if c.fault == "" {
					k := c.key()
					if _, ok := seen[k]; ok {
						continue
					}
					seen[k] = struct{}{}
				}
				nodes = append(nodes, node{at[i], v})
				n := int32(len(nodes) - 1)
				if c.fault != "" {
					r.states, r.fault, r.trace, r.depth = len(seen), c.fault, trace(nodes, n), r.depth+1
					return r
				}
				next, nextAt = append(next, c), append(nextAt, n)
			}
		}
		level, at = next, nextAt
		r.depth++
	}
	r.states, r.whole = len(seen), true
	return r
}

func trace(nodes []node, n int32) (all []move) {
	for ; nodes[n].parent >= 0; n = nodes[n].parent {
		all = append(all, nodes[n].by)
	}
	slices.Reverse(all)
	return all
}
