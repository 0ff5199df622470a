//go:build integration

package dashboard

import (
	"os"
	"testing"
	"time"

	"github.com/tenure-go/tenure/internal/test/wait"
)

// TestPictures takes the screenshots for the documentation, after some minutes of crashes and
// hand-overs: go test -tags integration -run Pictures ./test/dashboard -shots DIR.
func TestPictures(t *testing.T) {
	if *shots == "" {
		t.Skip("no screenshots are asked for")
	}
	if err := os.MkdirAll(*shots, 0o755); err != nil {
		t.Fatal(err)
	}
	s := newStage(t)
	if _, err := s.bucket.Put(wait.Context(t), "nightly-reports", []byte("kept by another program")); err != nil {
		t.Fatal(err)
	}
	s.startDashboard("billing", "nightly-reports", "scheduler", "search-index", "unused")
	for _, election := range []string{"scheduler", "search-index"} {
		s.start(election, election+"-1")
	}
	ids := []string{"node-1", "node-2", "node-3"}
	for _, id := range ids {
		s.start("billing", id)
	}
	p := openPage(t, s.url)
	for round := range 10 {
		leader := p.leads("billing", ids...)
		time.Sleep(25 * time.Second) // so that there is a history to show
		if round%3 == 1 {
			s.candidates[leader].Kill()
			p.leads("billing", without(ids, leader)...)
			s.start("billing", leader)
			continue
		}
		next := without(ids, leader)[round%2]
		s.do("hand-over", "--store", s.store, "--election", "billing", "--to", next)
		p.leads("billing", next)
	}
	time.Sleep(20 * time.Second)
	p.shoot("overview", 1280, 560, "light")
	p.shoot("overview-dark", 1280, 560, "dark")
	p.shoot("overview-phone", 390, 1000, "light")
	p.click(`a[href$="/billing"]`)
	p.says("Timeline of leaders")
	p.click(`.zoom a[href$="zoom=all"]`)
	p.until("all is shown", `document.querySelector('.zoom a[aria-current]').innerText === 'All'`)
	p.shoot("election", 1280, 900, "light")
	p.shoot("election-dark", 1280, 900, "dark")
	p.shoot("election-phone", 390, 1600, "light")
}
