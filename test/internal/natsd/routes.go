package natsd

import (
	"github.com/tenure-go/tenure/internal/test/ports"
	"github.com/tenure-go/tenure/test/internal/relay"
)

// nowhere is the address that hidden servers announce to each other. Nothing listens there, so the
// servers connect only by the given routes.
const nowhere = "127.0.0.1:9"

// route is the way from one server to another.
type route struct {
	from, to int
	url      string
	relay    *relay.Relay // nil if the route is direct
}

type routes []route

// layRoutes returns a route from every server to every other, through a relay for each direction if
// relayed is set.
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

// of returns the URLs of the routes from a server.
func (all routes) of(from int) []string {
	var urls []string
	for _, r := range all {
		if r.from == from {
			urls = append(urls, r.url)
		}
	}
	return urls
}

// each calls do for the relays of a server in both directions, if there are any.
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
