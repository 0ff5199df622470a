//go:build integration

package dashboard

import "testing"

// The store goes away and comes back. One banner says so, the page is no longer live, and the
// election keeps its last known leader. Afterwards the outage is in the list of failovers.
func TestPageShowsAnOutage(t *testing.T) {
	s := newStage(t)
	s.startDashboard("billing")
	s.start("billing", "node-1")
	p := openPage(t, s.url)
	p.leads("billing", "node-1")
	s.server.Kill()
	p.until("one banner reports it", `document.querySelectorAll('.away').length === 1`)
	p.until("the page is not live", `document.getElementById('live').innerText === 'Stale'`)
	p.until("the last known leader is shown", leaderCell("billing")+`.replace(/\s+/g, ' ') === 'node-1 last known'`)
	p.until("the row has no error", `document.querySelector('tbody .problem') === null`)
	p.shoot("outage", 1280, 560, "light")
	p.click(`a[href$="/billing"]`)
	p.says("Last known leader")
	if text := value[string](p, `document.querySelector('.away p').innerText`); len(text) > 250 {
		t.Errorf("the banner is long: %s", text)
	}
	p.until("nothing contradicts it", `!document.querySelector('.headline').innerText.includes('No leader')`)
	p.shoot("outage-election", 1280, 900, "dark")
	p.shoot("outage-phone", 390, 800, "light")
	if err := s.server.Start(); err != nil {
		t.Fatal(err)
	}
	p.until("the banner goes", `document.querySelector('.away') === null && document.getElementById('live').innerText === 'Live'`)
	p.says("Store OK")
	p.until("the outage is listed", `document.querySelector('.failovers .outage') !== null && document.querySelector('.events .store') !== null`)
	p.until("it leads again", `document.querySelector('.headline').innerText.includes('Leads for')`)
	p.shoot("recovered", 1280, 900, "light")
}
