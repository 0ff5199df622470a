package dashboard

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// hub hands what happens to the streams of browsers. It never waits for one: a stream that is too
// slow misses messages, and hears that it did.
type hub struct {
	boot string // tells the ids of this process from those of another one

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
	id    uint64 // 0: it cannot be resumed at
	event string
	data  []byte
	about key
	// detail: only the stream of this election gets it.
	detail bool
}

// stream is one browser's.
type stream struct {
	of      *key // nil: of all elections
	pending chan message
	missed  atomic.Bool
}

func newHub() *hub {
	return &hub{boot: strconv.FormatUint(rand.Uint64(), 36), streams: map[*stream]struct{}{}}
}

var errTooManyStreams = fmt.Errorf("there are %d streams already", maxStreams)

// open begins a stream. It resumes after lastID, if that is known still; otherwise the stream
// begins with a reset if there was one before.
func (h *hub) open(of *key, lastID string) (*stream, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.streams) >= maxStreams {
		return nil, errTooManyStreams
	}
	s := &stream{of: of, pending: make(chan message, maxPending)}
	h.streams[s] = struct{}{}
	if lastID == "" {
		return s, nil
	}
	after, err := h.parse(lastID)
	if err != nil || after+uint64(len(h.recent)) < h.last {
		s.missed.Store(true)
		return s, nil
	}
	for _, m := range h.recent {
		if m.id > after {
			s.take(m)
		}
	}
	return s, nil
}

func (h *hub) close(s *stream) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.streams, s)
}

// name is the id of a message as a browser gets it.
func (h *hub) name(id uint64) string { return h.boot + "-" + strconv.FormatUint(id, 10) }

func (h *hub) parse(name string) (uint64, error) {
	boot, id, _ := strings.Cut(name, "-")
	if boot != h.boot {
		return 0, errors.New("the id is of another process")
	}
	return strconv.ParseUint(id, 10, 64)
}

// changed reports that an election has changed, or with an empty name its source.
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

// detail reports something that only the stream of one election shows. It calls data only if there
// is such a stream.
func (h *hub) detail(k key, event string, data func() any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.streams {
		if s.of != nil && *s.of == k {
			h.send(message{event: event, data: encode(data()), about: k, detail: true})
			return
		}
	}
}

// send runs under the lock.
func (h *hub) send(m message) {
	for s := range h.streams {
		s.take(m)
	}
}

// take queues a message if the stream is about it.
func (s *stream) take(m message) {
	if s.of != nil && m.about != *s.of && m.about.Name != "" || s.of == nil && m.detail {
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
		panic(err) // it is made of texts and numbers
	}
	return text
}
