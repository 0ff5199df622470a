// Package gcsfake is a server of the JSON interface of Google Cloud Storage within the process, as
// far as elections use it, with rights and faults.
package gcsfake

import (
	"cmp"
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
	"time"

	"github.com/tenure-go/tenure/internal/test/objectfake"
)

// All are the permissions that a candidate needs.
var All = []string{"storage.objects.create", "storage.objects.delete", "storage.objects.get", "storage.objects.list"}

// Server is a server with buckets. It must be made by New. Its users are access tokens. Set its
// fields before the first request.
type Server struct {
	*objectfake.Server
	// Ignore names conditions that the server ignores: "0" that of a missing object, "1" others.
	Ignore string
	// Settings is the JSON of the buckets' settings.
	Settings string
	// Pace is the shortest time between two writes to an object that the server takes; 0: any.
	Pace time.Duration
}

// New returns a server with empty buckets. Its generations never recur, and do not increase.
func New(buckets ...string) *Server {
	s := &Server{Settings: "{}"}
	generation := func(n uint64) string { return strconv.FormatUint(1+n*0x9e3779b97f4a7c15>>2, 10) }
	s.Server = objectfake.New(generation, s.answer, buckets...)
	return s
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, body []byte) {
	path, upload := strings.CutPrefix(r.URL.EscapedPath(), "/upload")
	parts := strings.SplitN(strings.TrimPrefix(path, "/storage/v1/b/"), "/", 3)
	for i := range parts {
		var err error
		if parts[i], err = url.PathUnescape(parts[i]); err != nil {
			Refuse(w, http.StatusBadRequest, "invalid", "Invalid path")
			return
		}
	}
	objects, exists := s.Objects(parts[0])
	have, known := s.Rights(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), All...)
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
	case r.Method == http.MethodDelete && !lacks(w, have, "storage.objects.delete"):
		delete(objects, parts[2])
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodDelete:
	default:
		get(w, parts[0], parts[2], objects, have)
	}
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
		s.Make(in.Name)
	}
	fmt.Fprint(w, "{}")
}

func get(w http.ResponseWriter, bucket, name string, objects map[string]objectfake.Object, have []string) {
	o, there := objects[name]
	if lacks(w, have, "storage.objects.get") || !there && lacks(w, have, "storage.objects.list") {
		return
	}
	if !there {
		http.Error(w, "No such object: "+bucket+"/"+name, http.StatusNotFound)
		return
	}
	w.Header().Set("X-Goog-Generation", o.Version)
	fmt.Fprint(w, o.Value)
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
func list(w http.ResponseWriter, r *http.Request, objects map[string]objectfake.Object, have []string) {
	if lacks(w, have, "storage.objects.list") {
		return
	}
	q := r.URL.Query()
	names, next := objectfake.Page(objects, q.Get("prefix"), q.Get("pageToken"))
	page := map[string]any{}
	var items []map[string]string
	for _, name := range names {
		items = append(items, map[string]string{"name": name, "size": strconv.Itoa(len(objects[name].Value))})
	}
	page["items"] = items
	if next != "" {
		page["nextPageToken"] = next
	}
	_ = json.NewEncoder(w).Encode(page)
}

func (s *Server) upload(w http.ResponseWriter, r *http.Request, bucket string, body []byte, have []string) {
	metadata, value, err := parts(r, body)
	if err != nil {
		Refuse(w, http.StatusBadRequest, "invalid", err.Error())
		return
	}
	objects, _ := s.Objects(bucket)
	o, there := objects[metadata["name"]]
	match := r.URL.Query().Get("ifGenerationMatch")
	unmet := match != cmp.Or(o.Version, "0")
	switch {
	case lacks(w, have, "storage.objects.create"), there && lacks(w, have, "storage.objects.delete"):
	case unmet && !(match == "0" && s.Ignore == "0") && !(match != "0" && s.Ignore == "1"):
		Refuse(w, http.StatusPreconditionFailed, "conditionNotMet", "At least one of the pre-conditions you specified did not hold.")
	case there && time.Since(o.At) < s.Pace:
		Refuse(w, http.StatusTooManyRequests, "rateLimitExceeded", "The object exceeded the rate limit for object mutation operations.")
	default:
		fmt.Fprintf(w, `{"generation":%q}`, s.Put(bucket, metadata["name"], value, metadata))
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
