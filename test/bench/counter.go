package main

import (
	"errors"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path"
	"sync"
)

// counter stands before the server and counts the requests of one member.
type counter struct {
	listener net.Listener
	server   http.Server
	done     sync.WaitGroup

	mu  sync.Mutex
	all map[request]int
}

// request is what is counted apart: the method, and the last part of the path, which is the election.
type request struct{ method, election string }

func newCounter(server string) (*counter, error) {
	target, err := url.Parse(server)
	if err != nil {
		return nil, err
	}
	c := &counter{all: map[request]int{}}
	if c.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	proxy := &httputil.ReverseProxy{
		// The host is signed, so it stays what the member wrote.
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host
		},
		Transport: &http.Transport{MaxIdleConnsPerHost: 100, DisableCompression: true},
		ErrorLog:  log.New(io.Discard, "", 0),
	}
	c.server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.count(request{r.Method, path.Base(r.URL.Path)})
		proxy.ServeHTTP(w, r)
	})
	c.done.Go(func() {
		if err := c.server.Serve(c.listener); !errors.Is(err, http.ErrServerClosed) {
			panic(err) // nothing would be counted any more
		}
	})
	return c, nil
}

func (c *counter) url() string { return "http://" + c.listener.Addr().String() }

func (c *counter) close() {
	_ = c.server.Close()
	c.done.Wait()
}

func (c *counter) count(r request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all[r]++
}

// take returns what was counted since the last time.
func (c *counter) take() map[request]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := maps.Clone(c.all)
	clear(c.all)
	return all
}
