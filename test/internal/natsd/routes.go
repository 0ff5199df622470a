package natsd

import (
	"github.com/tenure-go/tenure/test/internal/ports"
	"github.com/tenure-go/tenure/test/internal/relay"
)

// nowhere is the address that hiding servers announce to each other: nothing listens there, so only
// the given routes come about.
const nowhere = "127.0.0.1:9"

// route is how one server reaches another.
type route struct {
	from, to int
	url      string
	relay    *relay.Relay // nil: directly
}

type routes []route

// layRoutes has every server reach every other, through a relay for each direction if they are to
// be cut.
func layRoutes(forRoutes []int, relayed bool) (all routes, err error) {
	for from := range forRoutes {
		for to, port := range forRoutes {
			if from == to {
				continue
			}
			r := route{from: from, to: to, url: "nats://" + ports.Address(port)}
			if relayed {
				if r.relay, err = relay.New(r.url); err != nil {
					return all, err
				}
				r.url = r.relay.URL()
			}
			all = append(all, r)
		}
	}
	return all, nil
}

// of are the URLs that a server is given.
func (all routes) of(from int) []string {
	var urls []string
	for _, r := range all {
		if r.from == from {
			urls = append(urls, r.url)
		}
	}
	return urls
}

// each does something with the relays of a server in both directions, if there are any.
func (all routes) each(server int, do func(*relay.Relay)) {
	for _, r := range all {
		if r.relay != nil && (r.from == server || r.to == server) {
			do(r.relay)
		}
	}
}

func (all routes) close() {
	for _, r := range all {
		if r.relay != nil {
			r.relay.Close()
		}
	}
}
