//go:build integration && unix

package main

import (
	"testing"
	"time"

	"github.com/tenure-go/tenure"
)

func TestEndLeaseLetsTheNextCandidateClaim(t *testing.T) {
	t.Parallel()
	h := natsHome(t)
	h.put(`{"leaderID":"node-1","term":7,"leaseMillis":3000000,"incarnation":"i","seq":9,"nonce":"n"}`)
	waits := h.join(tenure.Config{ID: "node-0", Lease: time.Second}, nil)
	for _, wrong := range [][]string{{}, {"--no-leader", "other"}} {
		h.says("end-lease", wrong...).must(t, 2, `^error: --no-leader is "(|other)": it must be the name of the election, "billing"$`, `^hint: stop every process`)
	}
	h.says("end-lease", "--no-leader", "billing").must(t, 0, `^was  held by node-1, with a lease of 50m0s$`,
		`^now  released in term \d+: the next candidate claims at once$`)
	h.await(waits, leads) // long before 50 minutes are over
	waits.leave()
	h.says("end-lease", "--no-leader", "billing", "--json").must(t, 0, `"event":"lease-ended",.*"was":"released"}$`)
	h.put("bytes of another program")
	h.says("end-lease", "--no-leader", "billing").must(t, 1, `^error: .*not an election record`, `^hint: .*tenure reset --force`)
}
