package peer

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Handler serves the records of the elections that this process leads. It ignores the path: mount
// it on Config.Path of an existing server.
//
//	GET /health/leadership?election=billing    200 with the record's bytes, its version as ETag
//	GET /health/leadership                     the same, if this process leads exactly one election
//	Accept: text/event-stream                  a stream: the present state, then each write of the leader
//	Tenure-Challenge: 32 bytes in base64url    adds the proof: as header Tenure-Proof, or as "proof"
//	                                           of each event
//
// It answers 404 if this process does not lead, or its lease is not valid now; 400 for a malformed
// challenge, and for a request without election if this process leads several; 405 unless the
// method is GET or HEAD. A stream gets 503 beyond Config.MaxStreams or Config.MaxStreamsPerAddress,
// and after Close. The server's own WriteTimeout and ReadTimeout do not end streams.
func (s *Store) Handler() http.Handler { return http.HandlerFunc(s.answer) }

func (s *Store) answer(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "use GET or HEAD", http.StatusMethodNotAllowed)
		return
	}
	challenge, err := parseChallenge(r.Header.Get(challengeHeader))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	key, ok := s.requestedKey(w, r)
	if !ok {
		return
	}
	if r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), eventStream) {
		s.stream(w, r, key, challenge)
		return
	}
	s.answerOnce(w, key, challenge)
}

// requestedKey returns the key that a request asks for. If there is none, it answers the request.
func (s *Store) requestedKey(w http.ResponseWriter, r *http.Request) (key string, ok bool) {
	if query := r.URL.Query(); query.Has("election") {
		return query.Get("election"), true
	}
	switch keys := s.books.led(); len(keys) {
	case 0:
		notLed(w)
		return "", false
	case 1:
		return keys[0], true
	default:
		slices.Sort(keys)
		http.Error(w, fmt.Sprintf("several elections are led here: name one, as in ?election=%s", url.QueryEscape(keys[0])),
			http.StatusBadRequest)
		return "", false
	}
}

func notLed(w http.ResponseWriter) {
	http.Error(w, "not led here, or not by a lease that is valid now", http.StatusNotFound)
}

// answerOnce sends one record, not a stream.
func (s *Store) answerOnce(w http.ResponseWriter, key string, challenge []byte) {
	_, p := s.books.look(key)
	if p == nil {
		notLed(w)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(p.value)))
	h.Set("ETag", `"`+escape(p.version)+`"`)
	if challenge != nil {
		h.Set(proofHeader, s.prove(key, p, challenge, 0))
	}
	_, _ = w.Write(p.value) // for HEAD, the server drops the body
}

func (s *Store) prove(key string, p *leaderWrite, challenge []byte, place uint64) string {
	return s.keys.prove(p.record.Incarnation, statement{
		challenge: challenge, place: place, key: key, version: p.version, value: p.value,
	})
}
