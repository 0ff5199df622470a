//go:build integration

package dashboard

import "testing"

// The time that the timeline shows follows keys and a drag, and the address keeps it.
func TestPageRangeOfTime(t *testing.T) {
	s := newStage(t)
	s.flags = []string{"--log-url", "https://logs.example/?q={election}&id={leader}"}
	s.startDashboard("billing", "unused")
	s.start("billing", "node 1")
	p := openPage(t, s.url)
	p.leads("billing", "node 1")
	p.click(`thead a[href*="sort=name"]`)
	p.until("the first by name", `document.querySelector('tbody th a').innerText === 'billing'`)
	p.click(`a[href$="/billing"]`)
	p.until("the logs have a link", `document.querySelector('a[href="https://logs.example/?q=billing&id=node%201"]')?.innerText === 'Logs'`)
	p.until("the words are explained without a pointer", `document.querySelector('.meanings dd') !== null`)
	p.until("several times are shown", `document.querySelectorAll('.timeline text.tick').length >= 3`)
	const length = `(() => { const [a, b] = /zoom=(\d+)-(\d+)/.exec(location.hash)?.slice(1) ?? [0, 0]; return b - a })()`
	value[bool](p, `document.querySelector('.timeline .part').dispatchEvent(new KeyboardEvent('keydown', {key: '+', bubbles: true, cancelable: true}))`)
	p.until("a key halves it", length+` > 440000 && `+length+` < 460000`)
	value[any](p, `(() => {
		const svg = document.querySelector('.timeline'), box = svg.getBoundingClientRect()
		for (const [kind, x] of [['down', 400], ['move', 500], ['up', 600]]) {
			svg.dispatchEvent(new PointerEvent('pointer' + kind, {clientX: box.left + x, clientY: box.top + 5, button: 0, bubbles: true}))
		}
	})()`)
	p.until("a drag chooses a part", length+` > 50000 && `+length+` < 130000`)
	p.shoot("range", 1280, 700, "light")
}
