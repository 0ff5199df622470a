package s3fake

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"
)

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
