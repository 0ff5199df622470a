// Package k8sfake is a small stand-in for a Kubernetes API server, with Leases alone. It has the
// same resource versions, conflicts, watches and refusals. The soak runs the same tests on the
// library k8s.io/apiserver.
package k8sfake

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Server serves the Leases of all namespaces. It must be made by Open.
type Server struct {
	store  *store
	access access
}

// Open returns a server with its Leases and its access in a directory. Without a directory, all is
// in memory, every client has all rights, and every namespace exists.
func Open(dir string) (*Server, error) {
	s, err := openStore(dir)
	if err != nil {
		return nil, err
	}
	return &Server{s, access{dir}}, nil
}

// Close closes the file of the Leases.
func (a *Server) Close() error {
	if a.store.file == nil {
		return nil
	}
	return a.store.file.Close()
}

// refusal is an answer that is an error.
type refusal struct {
	code                  int
	reason, message, kind string
}

// Error returns the message.
func (r *refusal) Error() string { return r.message }

func (r *refusal) status() map[string]any {
	return map[string]any{
		"kind": "Status", "apiVersion": "v1", "metadata": map[string]any{}, "status": "Failure", "code": r.code,
		"reason": r.reason, "message": r.message, "details": map[string]any{"kind": r.kind},
	}
}

// request is one for a Lease, or for all of a namespace if the name is empty.
type request struct {
	namespace, name, verb string
}

func (r request) key() string { return r.namespace + "/" + r.name }

var path = regexp.MustCompile(`^/apis/coordination\.k8s\.io/v1/namespaces/([^/]+)/leases(?:/([^/]*))?$`)

func parse(r *http.Request) (request, bool) {
	m := path.FindStringSubmatch(r.URL.Path)
	if m == nil {
		return request{}, false
	}
	q := request{namespace: m[1], name: m[2]}
	query := r.URL.Query()
	switch {
	case r.Method == http.MethodGet && query.Get("watch") == "true":
		q.verb = "watch"
	case r.Method == http.MethodGet && q.name == "":
		q.verb = "list"
	default:
		q.verb = map[string]string{http.MethodGet: "get", http.MethodPost: "create", http.MethodPut: "update", http.MethodDelete: "delete"}[r.Method]
	}
	if only, ok := strings.CutPrefix(query.Get("fieldSelector"), "metadata.name="); ok {
		q.name = only
	}
	return q, q.verb != ""
}

// ServeHTTP answers one request.
func (a *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q, ok := parse(r)
	if !ok {
		http.NotFound(w, r)
		return
	}
	if err := a.access.check(r, q); err != nil {
		answer(w, err.code, err.status())
		return
	}
	var result any
	var err error
	switch q.verb {
	case "watch":
		a.watch(w, r, q)
		return
	case "list":
		result = a.list(q)
	case "get":
		result, err = a.get(q)
	default:
		result, err = a.write(r, q)
	}
	var refused *refusal
	switch {
	case errors.As(err, &refused):
		answer(w, refused.code, refused.status())
	case err != nil:
		answer(w, http.StatusInternalServerError, (&refusal{http.StatusInternalServerError, "InternalError", err.Error(), "leases"}).status())
	default:
		answer(w, http.StatusOK, result)
	}
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

func (a *Server) get(q request) (lease, error) {
	l, _ := a.store.get(q.key())
	if l == nil {
		return nil, notFound(q)
	}
	return l, nil
}

func notFound(q request) *refusal {
	return &refusal{http.StatusNotFound, "NotFound", fmt.Sprintf("leases.coordination.k8s.io %q not found", q.name), "leases"}
}

func (a *Server) list(q request) any {
	all, revision := a.store.list(q.namespace)
	items := []lease{}
	for _, l := range all {
		if q.name == "" || l.text("name") == q.name {
			items = append(items, l)
		}
	}
	return map[string]any{
		"kind": "LeaseList", "apiVersion": "coordination.k8s.io/v1", "items": items,
		"metadata": map[string]any{"resourceVersion": strconv.FormatUint(revision, 10)},
	}
}

// write creates, updates or deletes a Lease.
func (a *Server) write(r *http.Request, q request) (lease, error) {
	var body lease
	if q.verb != "delete" {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(text, &body); err != nil {
			return nil, &refusal{http.StatusBadRequest, "BadRequest", err.Error(), ""}
		}
	}
	decide := map[string]func(request, lease, lease) (lease, error){
		"create": a.create, "update": update, "delete": remove,
	}[q.verb]
	if q.verb == "create" {
		q.name = body.text("name")
	}
	return a.store.write(q.key(), func(now lease) (lease, error) {
		next, err := decide(q, now, body)
		if err == nil && r.URL.Query().Has("dryRun") {
			err = &refusal{http.StatusUnprocessableEntity, "Invalid", "the fake has no dry run that would be carried out", "leases"}
		}
		return next, err
	})
}

var validName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)

func (a *Server) create(q request, now, body lease) (lease, error) {
	switch {
	case !a.access.exists(q.namespace):
		return nil, &refusal{http.StatusNotFound, "NotFound", fmt.Sprintf("namespaces %q not found", q.namespace), "namespaces"}
	case !validName.MatchString(q.name):
		return nil, &refusal{http.StatusUnprocessableEntity, "Invalid", fmt.Sprintf("Lease %q is invalid: metadata.name", q.name), "Lease"}
	case now != nil:
		return nil, &refusal{http.StatusConflict, "AlreadyExists", fmt.Sprintf("leases.coordination.k8s.io %q already exists", q.name), "leases"}
	}
	next := body.clone()
	next.metadata()["namespace"] = q.namespace
	next.metadata()["uid"] = uuid()
	next.metadata()["creationTimestamp"] = time.Now().UTC().Format(time.RFC3339)
	return next, nil
}

func uuid() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func update(q request, now, body lease) (lease, error) {
	conflict := func(why string) *refusal {
		return &refusal{http.StatusConflict, "Conflict", fmt.Sprintf("Operation cannot be fulfilled on leases.coordination.k8s.io %q: %s", q.name, why), "leases"}
	}
	switch uid := body.text("uid"); {
	case uid != "" && uid != now.text("uid"):
		return nil, conflict("Precondition failed: UID in precondition: " + uid + ", UID in object meta: " + now.text("uid"))
	case now == nil:
		return nil, notFound(q)
	case body.revision() != now.revision():
		return nil, conflict("the object has been modified; please apply your changes to the latest version and try again")
	}
	next := body.clone()
	for _, kept := range []string{"uid", "namespace", "creationTimestamp"} {
		next.metadata()[kept] = now.metadata()[kept]
	}
	return next, nil
}

func remove(q request, now, _ lease) (lease, error) {
	if now == nil {
		return nil, notFound(q)
	}
	return nil, nil
}

// bookmarks is the time between two bookmarks of a watch.
const bookmarks = time.Second

// watch sends the changes of a namespace after a revision, until the client goes or the server
// stops.
func (a *Server) watch(w http.ResponseWriter, r *http.Request, q request) {
	from, err := strconv.ParseUint(r.URL.Query().Get("resourceVersion"), 10, 64)
	if err != nil {
		answer(w, http.StatusBadRequest, (&refusal{http.StatusBadRequest, "BadRequest", err.Error(), ""}).status())
		return
	}
	control := http.NewResponseController(w)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	send := func(kind string, object any) bool {
		err := json.NewEncoder(w).Encode(map[string]any{"type": kind, "object": object})
		return err == nil && control.Flush() == nil
	}
	_ = control.Flush()
	tick := time.NewTicker(bookmarks)
	defer tick.Stop()
	for {
		changes, now, more, ok := a.store.after(from)
		if !ok {
			send("ERROR", (&refusal{http.StatusGone, "Expired", fmt.Sprintf("too old resource version: %d", from), ""}).status())
			return
		}
		for _, c := range changes {
			if strings.HasPrefix(c.Key, q.namespace+"/") && !send(c.Type, c.Object) {
				return
			}
			from = c.Object.revision()
		}
		select {
		case <-more:
		case <-tick.C:
			from = max(from, now)
			mark := map[string]any{
				"kind": "Lease", "apiVersion": "coordination.k8s.io/v1",
				"metadata": map[string]any{"resourceVersion": strconv.FormatUint(from, 10)},
			}
			if !send("BOOKMARK", mark) {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}
