package main

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

// judge returns the first fault of each rule.
func (h *history) judge() []string {
	faults := map[string]string{}
	note := func(rule, format string, args ...any) {
		if faults[rule] == "" {
			faults[rule] = rule + ": " + fmt.Sprintf(format, args...)
		}
	}
	h.overlaps(note, "overlap", func(a act) int64 { return a.at })
	if !h.asks {
		h.overlaps(note, "order", func(a act) int64 { return a.place })
	}
	h.holders(note)
	for _, a := range h.late {
		note("end", "%v acts after its own end", a)
	}
	h.twice(note)
	h.outside(note)
	return slices.Sorted(maps.Values(faults))
}

type notes func(rule, format string, args ...any)

// tokens returns the tokens of all acts, the lowest first.
func (h *history) tokens() []uint64 {
	all := map[uint64]bool{}
	for _, a := range h.acts {
		all[a.token] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// overlaps finds acts that come after the first act with a higher token.
func (h *history) overlaps(note notes, rule string, when func(act) int64) {
	first := map[uint64]int64{}
	for _, a := range h.acts {
		if at, ok := first[a.token]; !ok || when(a) < at {
			first[a.token] = when(a)
		}
	}
	next := map[uint64]int64{} // the first act with any higher token
	least := int64(math.MaxInt64)
	for _, token := range slices.Backward(h.tokens()) {
		next[token] = least
		least = min(least, first[token])
	}
	for _, a := range h.acts {
		switch end := next[a.token]; {
		case end == math.MaxInt64 || when(a) < end:
		case first[a.token] > end:
			note("token", "%v begins after an act with a higher token", a)
		default:
			note(rule, "%v acts %d after the first act with a higher token", a, when(a)-end)
		}
	}
}

// holders finds tokens that two processes have, each with its descendants, or two candidates.
func (h *history) holders(note notes) {
	type holder struct{ candidate, root uint32 }
	of := map[uint64]holder{}
	claimants := map[uint64][]string{}
	for _, c := range h.claims {
		claimants[c.token] = append(claimants[c.token], c.candidate)
	}
	for _, a := range h.acts {
		now := holder{a.candidate, a.root}
		if h.jobs {
			now.root = 0
		}
		if was, ok := of[a.token]; ok && was != now {
			note("holder", "%v acts with the token of process %d of candidate %d", a, was.root, was.candidate)
		}
		of[a.token] = now
		if by := claimants[a.token]; by != nil && !slices.Contains(by, fmt.Sprint("c", a.candidate)) {
			note("holder", "%v acts with the token that %v has claimed", a, by)
		}
	}
}

// twice finds claims that contradict each other.
func (h *history) twice(note notes) {
	bySent := slices.Clone(h.claims)
	slices.SortFunc(bySent, func(a, b claim) int { return cmp.Compare(a.sent, b.sent) })
	for i, c := range bySent {
		for _, other := range bySent[i+1:] {
			switch {
			case c.token == other.token:
				note("claims", "%s and %s have both claimed token %d", c.candidate, other.candidate, c.token)
			case c.answered < other.sent && other.token < c.token:
				note("claims", "%s has claimed token %d after %s has claimed token %d", other.candidate, other.token, c.candidate, c.token)
			}
		}
	}
}

// outside finds acts before the claim of their token, or after its release.
func (h *history) outside(note notes) {
	claimed := map[uint64]int64{}
	for _, c := range h.claims {
		if at, ok := claimed[c.token]; !ok || c.sent < at {
			claimed[c.token] = c.sent
		}
	}
	for _, a := range h.acts {
		if at, ok := claimed[a.token]; ok && a.at < at {
			note("claim", "%v acts %v before the claim was sent", a, time.Duration(at-a.at))
		}
		if at, ok := h.releases[a.token]; ok && a.at > at {
			note("release", "%v acts %v after the release was sent", a, time.Duration(a.at-at))
		}
	}
}

func (a act) String() string {
	return fmt.Sprintf("record %d: process %d of candidate %d with token %d", a.place, a.pid, a.candidate, a.token)
}
