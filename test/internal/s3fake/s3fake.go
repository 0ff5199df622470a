// Package s3fake is a server of object storage within the process that can fail on purpose.
package s3fake

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/tenure-go/tenure/internal/pipenet"
)

// Region is the region of all buckets.
const Region = "us-east-1"

// Server answers without TLS and with any signature.
type Server struct {
	*Faults
	http    *httptest.Server
	network *pipenet.Network // nil for the loopback interface
}

// Start starts a server that holds these buckets in memory, with the faults of the plan. It listens
// on a port of the loopback interface. Close stops it.
func Start(seed uint64, plan Plan, buckets ...string) (*Server, error) {
	return start(seed, plan, buckets, net.Listen, nil)
}

// StartOn is Start on a network of pipes. With a network that was made in a bubble of
// testing/synctest, the server works in that bubble.
func StartOn(n *pipenet.Network, seed uint64, plan Plan, buckets ...string) (*Server, error) {
	listen := func(network, _ string) (net.Listener, error) { return n.Listen(network, "") }
	return start(seed, plan, buckets, listen, n)
}

func start(seed uint64, plan Plan, buckets []string,
	listen func(network, address string) (net.Listener, error), n *pipenet.Network) (*Server, error) {
	handler, err := Memory(buckets...)
	if err != nil {
		return nil, err
	}
	l, err := listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	f := Wrap(handler, seed, plan)
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: f}}
	s := &Server{Faults: f, http: server, network: n}
	s.http.Start()
	return s, nil
}

// Memory returns a server without faults. It has two users; one of them has no rights.
func Memory(buckets ...string) (http.Handler, error) {
	backend := s3mem.New()
	for _, b := range buckets {
		if err := backend.CreateBucket(b); err != nil {
			return nil, err
		}
	}
	inner := gofakes3.New(backend).Server()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Header.Get("Authorization"), "Credential="+nobody+"/") {
			refuse(w, http.StatusForbidden, "AccessDenied")
			return
		}
		inner.ServeHTTP(w, r)
	}), nil
}

// URL returns the endpoint.
func (s *Server) URL() string { return s.http.URL }

// Close waits for the requests under way, and ends the server and all its connections.
func (s *Server) Close() {
	s.http.CloseClientConnections()
	s.http.Close()
}

// Client returns a new client of the server, with connections of its own.
func (s *Server) Client() *s3.Client { return s.ClientOf(s.URL()) }

// The users.
const (
	anybody = "test"
	nobody  = "nobody"
)

// ClientOf returns a new client of a relay to the server, at a URL, with connections of its own.
func (s *Server) ClientOf(url string) *s3.Client { return s.newClient(url, anybody) }

// Nobody returns a client without any rights.
func (s *Server) Nobody(url string) *s3.Client { return s.newClient(url, nobody) }

func (s *Server) newClient(url, user string) *s3.Client {
	o := s3.Options{
		Region:       Region,
		BaseEndpoint: &url,
		UsePathStyle: true,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: user, SecretAccessKey: "testtest"}, nil
		}),
	}
	if s.network != nil {
		o.HTTPClient = s.network.Client()
	}
	return s3.New(o)
}

// Fault is a fault of a request.
type Fault int

const (
	// None lets the request pass.
	None Fault = iota
	// Contended answers a conditional write with 409 and does nothing.
	Contended
	// TooMany answers with 429 and does nothing.
	TooMany
	// Broken answers with 500 and does nothing.
	Broken
	// BrokenLate answers with 500 after it has carried the request out.
	BrokenLate
	// LoseRequest ends the connection and does nothing.
	LoseRequest
	// LoseAnswer carries the request out and ends the connection.
	LoseAnswer
	// DelayBefore waits, at most the plan's MaxDelay, and then carries the request out, even if its
	// sender waits no longer.
	DelayBefore
	// DelayAfter carries the request out, and waits with the answer.
	DelayAfter
	// Refuse answers a conditional write with 412 though its condition may be met.
	Refuse
	// RefuseQuoted answers 412 if the ETag in If-Match has quotes.
	RefuseQuoted
	// Missing answers with 404 instead of 412 if the condition If-Match of a write is not met.
	Missing

	faultCount = int(Missing) + 1
)

// String names the fault.
func (f Fault) String() string {
	names := [faultCount]string{"none", "409", "429", "500", "500 after all", "lost request", "lost answer", "delay before",
		"delay after", "412", "412 for quotes", "404 for 412"}
	if f < 0 || int(f) >= faultCount {
		return fmt.Sprintf("fault(%d)", int(f))
	}
	return names[f]
}

// strikes reports whether the fault can happen to a request.
func (f Fault) strikes(r *http.Request) bool {
	match := r.Header.Get("If-Match")
	switch f {
	case None:
		return false
	case Contended, Refuse:
		return r.Method == http.MethodPut && match+r.Header.Get("If-None-Match") != ""
	case RefuseQuoted:
		return r.Method == http.MethodPut && strings.HasPrefix(match, `"`)
	case Missing:
		return r.Method == http.MethodPut && match != ""
	}
	return true
}

// Plan holds the chances of faults.
type Plan struct {
	// Chances holds the probability of each fault, from 0 to 1, for a request that can have it. A
	// request has one fault at most. If the chances add up to more than 1, the faults that are
	// declared last happen less often.
	Chances map[Fault]float64
	// MaxDelay bounds all delays. The default is 100 ms.
	MaxDelay time.Duration
}

// Faults is a handler in front of a server.
type Faults struct {
	inner http.Handler

	mu       sync.Mutex
	rng      *rand.Rand
	plan     Plan
	struck   [faultCount]int
	requests map[string]int // by method
}

// Wrap puts faults in front of a server. The seed decides which requests fail, in the order of
// their arrival.
func Wrap(inner http.Handler, seed uint64, plan Plan) *Faults {
	return &Faults{inner: inner, rng: rand.New(rand.NewPCG(seed, 0)), plan: plan, requests: map[string]int{}}
}

// SetPlan replaces the plan, for requests that arrive later.
func (f *Faults) SetPlan(plan Plan) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.plan = plan
}

// Struck counts how often a fault has happened.
func (f *Faults) Struck(fault Fault) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.struck[fault]
}

// Requests counts the requests of a method, for the cost of stores.
func (f *Faults) Requests(method string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.requests[method]
}

func (f *Faults) draw(r *http.Request) (Fault, time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests[r.Method]++
	left, most := f.rng.Float64(), f.plan.MaxDelay
	if most == 0 {
		most = 100 * time.Millisecond
	}
	delay := time.Duration(f.rng.Int64N(int64(most) + 1))
	for fault := range Fault(faultCount) {
		if !fault.strikes(r) {
			continue
		}
		if left -= f.plan.Chances[fault]; left < 0 {
			f.struck[fault]++
			return fault, delay
		}
	}
	return None, 0
}

// ServeHTTP answers the request, or injects a fault.
func (f *Faults) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch fault, delay := f.draw(r); fault {
	case Contended:
		refuse(w, http.StatusConflict, "ConditionalRequestConflict")
	case TooMany:
		refuse(w, http.StatusTooManyRequests, "TooManyRequests")
	case Broken:
		refuse(w, http.StatusInternalServerError, "InternalError")
	case BrokenLate:
		f.outcome(r)
		refuse(w, http.StatusInternalServerError, "InternalError")
	case LoseRequest:
		panic(http.ErrAbortHandler)
	case LoseAnswer:
		f.outcome(r)
		panic(http.ErrAbortHandler)
	case DelayBefore:
		// With the whole request, the server carries it out even if the sender gives up.
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		time.Sleep(delay)
		f.inner.ServeHTTP(w, r)
	case DelayAfter:
		answer := f.outcome(r)
		time.Sleep(delay)
		pass(w, answer)
	case Refuse, RefuseQuoted:
		refuse(w, http.StatusPreconditionFailed, "PreconditionFailed")
	case Missing:
		answer := f.outcome(r)
		if answer.Code == http.StatusPreconditionFailed {
			refuse(w, http.StatusNotFound, "NoSuchKey")
			return
		}
		pass(w, answer)
	default:
		f.inner.ServeHTTP(w, r)
	}
}

// outcome carries a request out and keeps the answer.
func (f *Faults) outcome(r *http.Request) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	f.inner.ServeHTTP(answer, r)
	return answer
}

// pass sends an answer on.
func pass(w http.ResponseWriter, answer *httptest.ResponseRecorder) {
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>on purpose</Message></Error>", code)
}
