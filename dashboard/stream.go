package dashboard

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenure-go/tenure/internal/sse"
)

const (
	// keepAliveAfter is the time between two comments that keep a connection alive.
	keepAliveAfter = 15 * time.Second
)

// serveStream sends changes as server-sent events, until the browser goes or is too slow, or Run's
// context ends.
func (d *Dashboard) serveStream(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodHead { // it would wait for messages, which have no head
		w.Header().Set("Allow", http.MethodGet)
		refuse(w, http.StatusMethodNotAllowed, "a stream has no head")
		return
	}
	var of *key
	if k := requestedKey(r); k != (key{}) {
		of = &k
	}
	s, err := d.hub.open(of, r.Header.Get("Last-Event-ID"))
	if err != nil {
		w.Header().Set("Retry-After", "10")
		refuse(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	defer d.hub.close(s)
	out := sse.NewWriter(w)
	out.Raw("retry: 2000\n\n")
	keep := time.NewTicker(keepAliveAfter)
	defer keep.Stop()
	for out.Err() == nil {
		if s.missed.Swap(false) {
			out.Event("", "reset", []byte("{}"))
		}
		select {
		case m := <-s.pending:
			id := ""
			if m.id != 0 {
				id = d.hub.name(m.id)
			}
			out.Event(id, m.event, m.data)
		case <-keep.C:
			out.Raw(": still here\n\n")
		case <-r.Context().Done():
			return
		case <-d.ended:
			return
		}
	}
}

// hub sends changes to the streams of browsers. It never waits for a stream: one that is too slow
// misses messages, and is then reset.
type hub struct {
	process string // random: distinguishes the ids of this process from others

	mu      sync.Mutex
	last    uint64    // the id of the last message
	recent  []message // the last ones, for streams that are resumed
	streams map[*stream]struct{}
}

const (
	maxStreams = 256
	maxRecent  = 1024
	maxPending = 64 // messages that wait for one stream
)

// message is one event of a stream.
type message struct {
	id    uint64 // 0: a stream cannot resume after it
	event string
	data  []byte
	about key
	// detail: only the stream of this election gets it.
	detail bool
}

// stream is the stream to one browser.
type stream struct {
	only    *key // the election; nil: all
	pending chan message
	missed  atomic.Bool
}

func newHub() *hub {
	return &hub{process: strconv.FormatUint(rand.Uint64(), 36), streams: map[*stream]struct{}{}}
}

var errTooManyStreams = fmt.Errorf("there are %d streams already", maxStreams)

// open begins a stream. It resumes after lastID if the messages since then are still kept.
// Otherwise, unless lastID is empty, the stream begins with a reset.
func (h *hub) open(of *key, lastID string) (*stream, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.streams) >= maxStreams {
		return nil, errTooManyStreams
	}
	s := &stream{only: of, pending: make(chan message, maxPending)}
	h.streams[s] = struct{}{}
	if lastID == "" {
		return s, nil
	}
	process, id, _ := strings.Cut(lastID, "-")
	after, err := strconv.ParseUint(id, 10, 64)
	if process != h.process || err != nil || after+uint64(len(h.recent)) < h.last {
		s.missed.Store(true)
		return s, nil
	}
	for _, m := range h.recent {
		if m.id > after {
			s.queue(m)
		}
	}
	return s, nil
}

func (h *hub) close(s *stream) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.streams, s)
}

// name returns the id of a message as it is sent to browsers.
func (h *hub) name(id uint64) string { return h.process + "-" + strconv.FormatUint(id, 10) }

// changed reports that an election has changed, or its source if the name is empty.
func (h *hub) changed(k key) {
	m := message{event: "change", about: k}
	m.data = encode(k)
	if k.Name == "" {
		m.event, m.data = "source", encode(map[string]string{"name": k.Source})
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last++
	m.id = h.last
	h.recent = bounded(append(h.recent, m), maxRecent)
	h.send(m)
}

// detail sends a message to the streams of one election. It calls data only if there is such a
// stream.
func (h *hub) detail(k key, event string, data func() any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.streams {
		if s.only != nil && *s.only == k {
			h.send(message{event: event, data: encode(data()), about: k, detail: true})
			return
		}
	}
}

// send runs under the lock.
func (h *hub) send(m message) {
	for s := range h.streams {
		s.queue(m)
	}
}

// queue queues a message, unless the stream is for another election.
func (s *stream) queue(m message) {
	if s.only != nil && m.about != *s.only && m.about.Name != "" || s.only == nil && m.detail {
		return
	}
	select {
	case s.pending <- m:
	default:
		s.missed.Store(true)
	}
}

func encode(data any) []byte {
	text, err := json.Marshal(data)
	if err != nil {
		panic(err) // it cannot happen: data has only texts and numbers
	}
	return text
}
