package etcdd

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
)

// way is one direction between two members of a cluster.
type way struct{ from, to *Server }

// network is between the members of a cluster. A proxy in front of each member passes the requests
// of the others. So each way can be cut alone, although all others reach a member at one address.
type network struct {
	proxies []*http.Server

	mu     sync.Mutex
	at     map[string]*Server // by the address at which others reach it
	cut    map[way]bool
	healed chan struct{} // closed at the end of the cuts
}

func newNetwork() *network {
	return &network{at: map[string]*Server{}, healed: make(chan struct{})}
}

// join starts the proxy of a member that has not started yet, and returns its address.
func (n *network) join(s *Server) (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	target, address := &url.URL{Scheme: "http", Host: s.listensForPeers()}, "http://"+l.Addr().String()
	quiet := log.New(io.Discard, "", 0)
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		FlushInterval: -1, // a stream has no end
		Transport:     &http.Transport{},
		ErrorLog:      quiet,
		ModifyResponse: func(r *http.Response) error {
			r.Body = &crossing{r.Body, n, n.way(r.Request, s), r.Request.Context()}
			return nil
		},
	}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n.stops(r.Context(), n.way(r, s)) {
			panic(http.ErrAbortHandler)
		}
		proxy.ServeHTTP(w, r)
	})
	n.mu.Lock()
	n.at[address] = s
	n.mu.Unlock()
	server := &http.Server{Handler: handler, ErrorLog: quiet}
	n.proxies = append(n.proxies, server)
	go func() { _ = server.Serve(l) }()
	return address, nil
}

// way returns the way of the messages of a request to a member. The answer to a GET is the stream
// of that member's messages.
func (n *network) way(r *http.Request, to *Server) way {
	n.mu.Lock()
	from := n.at[r.Header.Get("X-PeerURLs")]
	n.mu.Unlock()
	if r.Method == http.MethodGet {
		return way{to, from}
	}
	return way{from, to}
}

// part cuts ways. Neither side notices at once: what is sent over them is held back until heal, and
// is lost then.
func (n *network) part(ways ...way) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut = map[way]bool{}
	for _, w := range ways {
		n.cut[w] = true
	}
}

// heal undoes part.
func (n *network) heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut = nil
	close(n.healed)
	n.healed = make(chan struct{})
}

// stops reports whether a way is cut. If so, it returns when that has ended, or the context.
func (n *network) stops(ctx context.Context, w way) bool {
	n.mu.Lock()
	cut, healed := n.cut[w], n.healed
	n.mu.Unlock()
	if cut {
		select {
		case <-healed:
		case <-ctx.Done():
		}
	}
	return cut
}

// close ends the proxies and all connections.
func (n *network) close() {
	n.heal()
	for _, p := range n.proxies {
		_ = p.Close()
	}
}

// crossing is the body of an answer.
type crossing struct {
	io.ReadCloser
	n   *network
	way way
	ctx context.Context
}

var errLost = errors.New("the bytes are lost")

func (c *crossing) Read(b []byte) (int, error) {
	size, err := c.ReadCloser.Read(b)
	if c.n.stops(c.ctx, c.way) {
		return 0, errLost
	}
	return size, err
}
