// Package gcsfake is a server of the JSON interface of Google Cloud Storage within the process, as
// far as elections use it, with rights and faults.
package gcsfake

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// All are the permissions that a candidate needs.
var All = []string{"storage.objects.create", "storage.objects.delete", "storage.objects.get", "storage.objects.list"}

// Server is a handler for the buckets that it was made with. It must be made by New. Set its fields
// before the first request.
type Server struct {
	// Ignore names conditions that the server ignores: "0" that of a missing object, "1" others.
	Ignore string
	// Settings is the JSON of the buckets' settings.
	Settings string
	// Pace is the shortest time between two writes to an object that the server takes; 0: any.
	Pace time.Duration
	// Intercept may answer a request itself, and then returns true. It may call serve, which
	// carries the request out and answers, with a writer of its own.
	Intercept func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) bool

	mu       sync.Mutex
	buckets  map[string]map[string]object
	users    map[string][]string // permissions by token; nil: all have all of them
	made     uint64              // generations
	requests map[string]int      // by method
}

type object struct {
	generation uint64
	value      string
	metadata   map[string]string
	at         time.Time
}

// New returns a server with empty buckets.
func New(buckets ...string) *Server {
	s := &Server{Settings: "{}", buckets: map[string]map[string]object{}, requests: map[string]int{}}
	for _, b := range buckets {
		s.buckets[b] = map[string]object{}
	}
	return s
}

// Allow gives a bearer of a token these permissions, and no others. Without any call, all requests
// have all rights.
func (s *Server) Allow(token string, permissions ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users == nil {
		s.users = map[string][]string{}
	}
	s.users[token] = permissions
}

// Revoke makes a token unknown.
func (s *Server) Revoke(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.users, token)
}

// Delete removes an object.
func (s *Server) Delete(bucket, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.buckets[bucket], name)
}

// Recreate makes a bucket, in place of one with this name if there is one.
func (s *Server) Recreate(bucket string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buckets[bucket] = map[string]object{}
}

// Set writes an object without any condition, and returns its generation.
func (s *Server) Set(bucket, name, value string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.set(bucket, name, value, nil)
}

// Value returns the content of an object, and its metadata.
func (s *Server) Value(bucket, name string) (value string, metadata map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.buckets[bucket][name]
	return o.value, o.metadata
}

// Requests counts the requests of a method.
func (s *Server) Requests(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[method]
}

// set gives generations that never recur, and do not increase.
func (s *Server) set(bucket, name, value string, metadata map[string]string) string {
	s.made++
	o := object{1 + s.made*0x9e3779b97f4a7c15>>2, value, metadata, time.Now()}
	s.buckets[bucket][name] = o
	return strconv.FormatUint(o.generation, 10)
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
	path, upload := strings.CutPrefix(r.URL.EscapedPath(), "/upload")
	parts := strings.SplitN(strings.TrimPrefix(path, "/storage/v1/b/"), "/", 3)
	for i := range parts {
		if parts[i], err = url.PathUnescape(parts[i]); err != nil {
			Refuse(w, http.StatusBadRequest, "invalid", "Invalid path")
			return
		}
	}
	objects, exists := s.buckets[parts[0]]
	have, known := s.rights(r)
	switch {
	case !known:
		Refuse(w, http.StatusUnauthorized, "authError", "Invalid Credentials")
	case !exists && r.Method == http.MethodPost && path == "/storage/v1/b":
		s.create(w, body)
	case !exists:
		Refuse(w, http.StatusNotFound, "notFound", "The specified bucket does not exist.")
	case upload:
		s.upload(w, r, parts[0], body, have)
	case len(parts) == 1:
		fmt.Fprint(w, s.Settings)
	case parts[1] == "iam":
		test(w, r, have)
	case len(parts) == 2:
		list(w, r, objects, have)
	case r.Method == http.MethodDelete:
		s.remove(w, parts[0], parts[2], have)
	default:
		get(w, parts[0], parts[2], objects, have)
	}
}

// rights returns the permissions of a request. A token that is unknown has none.
func (s *Server) rights(r *http.Request) (have []string, known bool) {
	if s.users == nil {
		return All, true
	}
	have, known = s.users[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
	return have, known
}

// lacks answers 403 if a permission is missing.
func lacks(w http.ResponseWriter, have []string, permission string) bool {
	if slices.Contains(have, permission) {
		return false
	}
	Refuse(w, http.StatusForbidden, "forbidden", "Permission '"+permission+"' denied on resource (or it may not exist).")
	return true
}

func (s *Server) create(w http.ResponseWriter, body []byte) {
	var in struct{ Name string }
	if json.Unmarshal(body, &in) == nil {
		s.buckets[in.Name] = map[string]object{}
	}
	fmt.Fprint(w, "{}")
}

func get(w http.ResponseWriter, bucket, name string, objects map[string]object, have []string) {
	o, there := objects[name]
	if lacks(w, have, "storage.objects.get") || !there && lacks(w, have, "storage.objects.list") {
		return
	}
	if !there {
		http.Error(w, "No such object: "+bucket+"/"+name, http.StatusNotFound)
		return
	}
	w.Header().Set("X-Goog-Generation", strconv.FormatUint(o.generation, 10))
	fmt.Fprint(w, o.value)
}

func (s *Server) remove(w http.ResponseWriter, bucket, name string, have []string) {
	if lacks(w, have, "storage.objects.delete") {
		return
	}
	delete(s.buckets[bucket], name)
	w.WriteHeader(http.StatusNoContent)
}

func test(w http.ResponseWriter, r *http.Request, have []string) {
	var granted []string
	for _, p := range r.URL.Query()["permissions"] {
		if slices.Contains(have, p) {
			granted = append(granted, p)
		}
	}
	_ = json.NewEncoder(w).Encode(map[string][]string{"permissions": granted})
}

// list gives pages of two names.
func list(w http.ResponseWriter, r *http.Request, objects map[string]object, have []string) {
	if lacks(w, have, "storage.objects.list") {
		return
	}
	var names []string
	q := r.URL.Query()
	for name := range objects {
		if strings.HasPrefix(name, q.Get("prefix")) && name > q.Get("pageToken") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	page := map[string]any{}
	var items []map[string]string
	for _, name := range names[:min(2, len(names))] {
		items = append(items, map[string]string{"name": name, "size": strconv.Itoa(len(objects[name].value))})
	}
	page["items"] = items
	if len(names) > 2 {
		page["nextPageToken"] = names[1]
	}
	_ = json.NewEncoder(w).Encode(page)
}

func (s *Server) upload(w http.ResponseWriter, r *http.Request, bucket string, body []byte, have []string) {
	metadata, value, err := parts(r, body)
	if err != nil {
		Refuse(w, http.StatusBadRequest, "invalid", err.Error())
		return
	}
	o, there := s.buckets[bucket][metadata["name"]]
	match := r.URL.Query().Get("ifGenerationMatch")
	unmet := match != strconv.FormatUint(o.generation, 10)
	switch {
	case lacks(w, have, "storage.objects.create"), there && lacks(w, have, "storage.objects.delete"):
	case unmet && !(match == "0" && s.Ignore == "0") && !(match != "0" && s.Ignore == "1"):
		Refuse(w, http.StatusPreconditionFailed, "conditionNotMet", "At least one of the pre-conditions you specified did not hold.")
	case there && time.Since(o.at) < s.Pace:
		Refuse(w, http.StatusTooManyRequests, "rateLimitExceeded", "The object exceeded the rate limit for object mutation operations.")
	default:
		fmt.Fprintf(w, `{"generation":%q}`, s.set(bucket, metadata["name"], value, metadata))
	}
}

// parts returns those of an upload in one request.
func parts(r *http.Request, body []byte) (metadata map[string]string, value string, err error) {
	_, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return nil, "", err
	}
	reader := multipart.NewReader(strings.NewReader(string(body)), params["boundary"])
	var texts []string
	for {
		p, err := reader.NextRawPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, "", err
		}
		text, err := io.ReadAll(p)
		if err != nil {
			return nil, "", err
		}
		texts = append(texts, string(text))
	}
	if len(texts) != 2 {
		return nil, "", fmt.Errorf("the upload has %d parts", len(texts))
	}
	err = json.Unmarshal([]byte(texts[0]), &metadata)
	return metadata, texts[1], err
}

// Refuse answers with an error as Google describes it.
func Refuse(w http.ResponseWriter, status int, reason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{
		"code": status, "message": message, "errors": []map[string]string{{"reason": reason, "message": message}},
	}})
}
