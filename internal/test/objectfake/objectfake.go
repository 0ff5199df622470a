// Package objectfake has what the servers of object storage for tests share: objects, users, counts
// of requests, and faults.
package objectfake

import (
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Object is an object of a bucket, or a blob of a container.
type Object struct {
	Version, Value string
	// Metadata came with the last write.
	Metadata map[string]string
	// At is the time of the last write.
	At time.Time
	// Leased: another program has a lease of Azure on it.
	Leased bool
}

// Server is a handler for the buckets or containers that it was made with. It must be made by New.
type Server struct {
	// Intercept may answer a request itself, and then returns true. It may call serve, which
	// carries the request out and answers, with a writer of its own. Set it before the first
	// request.
	Intercept func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) bool

	version func(n uint64) string
	answer  func(w http.ResponseWriter, r *http.Request, body []byte)

	mu       sync.Mutex
	places   map[string]map[string]Object
	users    map[string][]string // nil: all have all rights
	made     uint64              // versions
	requests map[string]int      // by method
}

// New returns a server with empty places. The nth write gets version n. Answer carries a request
// out. One request is under way at a time; only answer may call the methods that say so.
func New(version func(n uint64) string, answer func(w http.ResponseWriter, r *http.Request, body []byte), places ...string) *Server {
	s := &Server{version: version, answer: answer, places: map[string]map[string]Object{}, requests: map[string]int{}}
	for _, p := range places {
		s.Make(p)
	}
	return s
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests[r.Method]++
	s.mu.Unlock()
	if s.Intercept == nil || !s.Intercept(w, r, s.serve) {
		s.serve(w, r)
	}
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer(w, r, body)
}

// Objects returns those of a place. Only an answer may call it.
func (s *Server) Objects(place string) (objects map[string]Object, exists bool) {
	objects, exists = s.places[place]
	return objects, exists
}

// Make makes an empty place. Only an answer may call it.
func (s *Server) Make(place string) { s.places[place] = map[string]Object{} }

// Put writes an object, and returns its version. Only an answer may call it.
func (s *Server) Put(place, name, value string, metadata map[string]string) string {
	s.made++
	o := Object{Version: s.version(s.made), Value: value, Metadata: metadata, At: time.Now()}
	s.places[place][name] = o
	return o.Version
}

// Rights returns those of a user, or all if Allow was never called. Only an answer may call it.
func (s *Server) Rights(user string, all ...string) (have []string, known bool) {
	if s.users == nil {
		return all, true
	}
	have, known = s.users[user]
	return have, known
}

// Page returns the first two names with a prefix behind another name, and the last of them if more
// follow.
func Page(objects map[string]Object, prefix, after string) (names []string, next string) {
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		switch {
		case !strings.HasPrefix(name, prefix) || name <= after:
		case len(names) == 2:
			return names, names[1]
		default:
			names = append(names, name)
		}
	}
	return names, ""
}

// Allow gives a user these rights, and no others. Without any call, all requests have all rights.
func (s *Server) Allow(user string, rights ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users == nil {
		s.users = map[string][]string{}
	}
	s.users[user] = rights
}

// Revoke makes a user unknown.
func (s *Server) Revoke(user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.users, user)
}

// Delete removes an object.
func (s *Server) Delete(place, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.places[place], name)
}

// Recreate makes a place, instead of one with this name if there is one.
func (s *Server) Recreate(place string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Make(place)
}

// Set writes an object without any condition, and returns its version.
func (s *Server) Set(place, name, value string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Put(place, name, value, nil)
}

// Edit changes an object that exists, and leaves its version.
func (s *Server) Edit(place, name string, change func(*Object)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.places[place][name]
	change(&o)
	s.places[place][name] = o
}

// Object returns an object, or the zero value.
func (s *Server) Object(place, name string) Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.places[place][name]
}

// Requests counts the requests of a method.
func (s *Server) Requests(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[method]
}
