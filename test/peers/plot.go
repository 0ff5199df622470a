package main

import (
	"fmt"
	"strings"
)

const (
	rowHeight = 26
	leftEdge  = 190 // of the axis
	perLease  = 200 // pixels
	mostShown = 2.5 // leases
)

// plot draws a line for each peer: the time from a crash to the next leader, and the longest time
// for which a leader that was cut off and the next one both answered yes.
func plot(results []*result) string {
	var b strings.Builder
	height, width := rowHeight*(len(results)+3), leftEdge+int(perLease*mostShown)+20
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", width, height)
	fmt.Fprintf(&b, `<text x="%d" y="16" fill="#1668b8">crash to the next leader: median, least and most</text>`+"\n", leftEdge)
	fmt.Fprintf(&b, `<text x="%d" y="32" fill="#c22">cut off: longest time with two leaders</text>`+"\n", leftEdge)
	for leases := 0.0; leases <= mostShown; leases += 0.5 {
		fmt.Fprintf(&b, `<line x1="%[1]d" x2="%[1]d" y1="40" y2="%[2]d" stroke="#ddd"/><text x="%[1]d" y="%[3]d" text-anchor="middle">%.1[4]f</text>`+"\n",
			across(leases), height-26, height-12, leases)
	}
	fmt.Fprintf(&b, `<text x="10" y="%d">leases</text>`+"\n", height-12)
	for i, r := range results {
		r.draw(&b, 2*rowHeight+i*rowHeight)
	}
	return b.String() + "</svg>\n"
}

func (r *result) draw(b *strings.Builder, y int) {
	fmt.Fprintf(b, `<text x="10" y="%d">%s, %s</text>`+"\n", y+4, r.name, r.store)
	if s := r.summary(crash); s.next > 0 {
		lease := r.lease.Seconds()
		fmt.Fprintf(b, `<line x1="%[1]d" x2="%[2]d" y1="%[3]d" y2="%[3]d" stroke="#1668b8" stroke-width="2"/><circle cx="%[4]d" cy="%[3]d" r="4" fill="#1668b8"/>`+"\n",
			across(s.took.Min().Seconds()/lease), across(s.took.Max().Seconds()/lease), y-3, across(s.took.Median().Seconds()/lease))
	}
	if s := r.summary(cut); s.stale > 0 {
		fmt.Fprintf(b, `<rect x="%d" y="%d" width="%d" height="5" fill="#c22"/>`+"\n",
			leftEdge, y+3, across(s.longest.Seconds()/r.lease.Seconds())-leftEdge)
	}
}

// across returns the place of a number of leases on the axis.
func across(leases float64) int { return leftEdge + int(perLease*min(leases, mostShown)) }
