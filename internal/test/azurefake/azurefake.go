// Package azurefake is a server of Azure Blob Storage within the process, as far as elections use
// it, with rights and faults.
package azurefake

import (
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Rights, by the letters of SAS tokens: r reads blobs, c creates them, w creates and replaces them,
// l lists them, d deletes them. The letter i is not Azure's. It makes containers, and reads
// settings of the account and its containers.
const (
	Candidate = "rw" // all that a candidate needs
	All       = "rcwldi"
)

// Account is the account of a server, whose endpoint is the server's URL, a slash and this name.
const Account = "myaccount"

// Server is a handler for the containers that it was made with. It must be made by New. Set its
// fields before the first request.
type Server struct {
	// Ignore names the header whose condition the server ignores: If-Match or If-None-Match.
	Ignore string
	// SKU is the redundancy of the account.
	SKU string
	// SoftDelete is for how many days replaced blobs are kept.
	SoftDelete int
	// Versioning makes the server name a version in the answer to each write.
	Versioning bool
	// Headers are those that the properties of a container have.
	Headers map[string]string
	// Intercept may answer a request itself, and then returns true. It may call serve, which
	// carries the request out and answers, with a writer of its own.
	Intercept func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) bool

	mu         sync.Mutex
	containers map[string]map[string]blob
	users      map[string]string // rights by SAS signature, access token or key; nil: all have all
	made       uint64            // ETags
	requests   map[string]int    // by method
}

type blob struct {
	etag, value string
	header      http.Header
	leased      bool
}

// New returns a server with empty containers.
func New(containers ...string) *Server {
	s := &Server{SKU: "Standard_LRS", containers: map[string]map[string]blob{}, requests: map[string]int{}}
	for _, c := range containers {
		s.containers[c] = map[string]blob{}
	}
	return s
}

// Allow gives the bearer of a secret these rights, and no others: the sig of a SAS token, an access
// token, or "key" for requests that are signed with the key of the account, which is not checked.
// Without any call, all requests have all rights.
func (s *Server) Allow(secret, rights string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users == nil {
		s.users = map[string]string{}
	}
	s.users[secret] = rights
}

// Revoke makes a secret unknown.
func (s *Server) Revoke(secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.users, secret)
}

// Delete removes a blob.
func (s *Server) Delete(container, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.containers[container], name)
}

// Recreate makes a container, in place of one with this name if there is one.
func (s *Server) Recreate(container string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.containers[container] = map[string]blob{}
}

// Set writes a blob without any condition, and returns its ETag.
func (s *Server) Set(container, name, value string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.set(container, name, value, nil)
}

// Lease begins or ends the lease of another program on a blob.
func (s *Server) Lease(container, name string, leased bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.containers[container][name]
	b.leased = leased
	s.containers[container][name] = b
}

// Value returns the content of a blob, and the headers with which it was written.
func (s *Server) Value(container, name string) (value string, header http.Header) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.containers[container][name]
	return b.value, b.header
}

// Requests counts the requests of a method.
func (s *Server) Requests(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[method]
}

func (s *Server) set(container, name, value string, header http.Header) string {
	s.made++
	b := blob{etag: fmt.Sprintf(`"0x%X"`, 0x8DE000000000000+s.made), value: value, header: header}
	s.containers[container][name] = b
	return b.etag
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
	path := strings.TrimPrefix(strings.TrimPrefix(r.URL.EscapedPath(), "/"+Account), "/")
	container, name, inside := strings.Cut(path, "/")
	if name, err = url.PathUnescape(name); err != nil {
		Refuse(w, http.StatusBadRequest, "InvalidUri", "The requested URI does not represent any resource on the server.")
		return
	}
	blobs, exists := s.containers[container]
	have, known := s.rights(r)
	q := r.URL.Query()
	switch {
	case !known:
		s.stranger(w, r)
	case q.Get("restype") == "account" || q.Get("restype") == "service":
		s.account(w, q, have)
	case !inside && r.Method == http.MethodPut:
		s.create(w, container, exists, have)
	case !exists:
		Refuse(w, http.StatusNotFound, "ContainerNotFound", "The specified container does not exist.")
	case !inside && q.Get("comp") == "list":
		list(w, q, blobs, have)
	case !inside:
		s.properties(w, have)
	case r.Method == http.MethodPut:
		s.put(w, r, container, name, string(body), have)
	case r.Method == http.MethodDelete:
		s.remove(w, container, name, have)
	default:
		get(w, name, blobs, have)
	}
}

// rights returns those of a request.
func (s *Server) rights(r *http.Request) (have string, known bool) {
	if s.users == nil {
		return All, true
	}
	secret := r.URL.Query().Get("sig")
	switch scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " "); scheme {
	case "Bearer":
		secret = token
	case "SharedKey":
		secret = "key"
	}
	have, known = s.users[secret]
	return have, known
}

// stranger refuses an unknown access token as the service does, and other credentials.
func (s *Server) stranger(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.Header.Get("Authorization"), "Bearer ") {
		w.Header().Set("WWW-Authenticate", `Bearer authorization_uri=https://login.microsoftonline.com/tenant/oauth2/authorize resource_id=https://storage.azure.com`)
		Refuse(w, http.StatusUnauthorized, "InvalidAuthenticationInfo", "Server failed to authenticate the request.")
		return
	}
	Refuse(w, http.StatusForbidden, "AuthenticationFailed", "Server failed to authenticate the request. Make sure the value of "+
		"Authorization header is formed correctly including the signature.\nRequestId:1\nTime:2")
}

// lacks answers 403 if a right is missing.
func lacks(w http.ResponseWriter, have, right string) bool {
	if strings.Contains(have, right) {
		return false
	}
	Refuse(w, http.StatusForbidden, "AuthorizationPermissionMismatch", "This request is not authorized to perform this operation using this permission.")
	return true
}

func (s *Server) account(w http.ResponseWriter, q url.Values, have string) {
	switch {
	case lacks(w, have, "i"):
	case q.Get("restype") == "account":
		w.Header().Set("X-Ms-Sku-Name", s.SKU)
		w.Header().Set("X-Ms-Account-Kind", "StorageV2")
	default:
		fmt.Fprintf(w, "<StorageServiceProperties><DeleteRetentionPolicy><Enabled>%t</Enabled><Days>%d</Days></DeleteRetentionPolicy></StorageServiceProperties>",
			s.SoftDelete > 0, s.SoftDelete)
	}
}

func (s *Server) create(w http.ResponseWriter, container string, exists bool, have string) {
	switch {
	case lacks(w, have, "i"):
	case exists:
		Refuse(w, http.StatusConflict, "ContainerAlreadyExists", "The specified container already exists.")
	default:
		s.containers[container] = map[string]blob{}
		w.WriteHeader(http.StatusCreated)
	}
}

func (s *Server) properties(w http.ResponseWriter, have string) {
	if lacks(w, have, "i") {
		return
	}
	for name, value := range s.Headers {
		w.Header().Set(name, value)
	}
}

func get(w http.ResponseWriter, name string, blobs map[string]blob, have string) {
	b, there := blobs[name]
	switch {
	case lacks(w, have, "r"):
	case !there:
		Refuse(w, http.StatusNotFound, "BlobNotFound", "The specified blob does not exist.")
	default:
		status := map[bool]string{false: "unlocked", true: "locked"}[b.leased]
		w.Header().Set("X-Ms-Lease-Status", status)
		w.Header().Set("ETag", b.etag)
		fmt.Fprint(w, b.value)
	}
}

func (s *Server) remove(w http.ResponseWriter, container, name, have string) {
	if lacks(w, have, "d") {
		return
	}
	delete(s.containers[container], name)
	w.WriteHeader(http.StatusAccepted)
}

// list gives pages of two names.
func list(w http.ResponseWriter, q url.Values, blobs map[string]blob, have string) {
	if lacks(w, have, "l") {
		return
	}
	var names []string
	for name := range blobs {
		if strings.HasPrefix(name, q.Get("prefix")) && name > q.Get("marker") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	w.Header().Set("Content-Type", "application/xml")
	fmt.Fprint(w, "<EnumerationResults><Blobs>")
	for _, name := range names[:min(2, len(names))] {
		fmt.Fprint(w, "<Blob><Name>")
		_ = xml.EscapeText(w, []byte(name))
		fmt.Fprint(w, "</Name><Properties><Content-Length>"+strconv.Itoa(len(blobs[name].value))+"</Content-Length></Properties></Blob>")
	}
	fmt.Fprint(w, "</Blobs><NextMarker>")
	if len(names) > 2 {
		_ = xml.EscapeText(w, []byte(names[1]))
	}
	fmt.Fprint(w, "</NextMarker></EnumerationResults>")
}

// put has the order of checks of the service: rights, conditions, leases.
func (s *Server) put(w http.ResponseWriter, r *http.Request, container, name, value, have string) {
	b, there := s.containers[container][name]
	match, none := r.Header.Get("If-Match"), r.Header.Get("If-None-Match")
	switch {
	case there && lacks(w, have, "w"), !there && !strings.Contains(have, "w") && lacks(w, have, "c"):
	case none == "*" && there && s.Ignore != "If-None-Match":
		Refuse(w, http.StatusConflict, "BlobAlreadyExists", "The specified blob already exists.")
	case match != "" && match != b.etag && s.Ignore != "If-Match":
		Refuse(w, http.StatusPreconditionFailed, "ConditionNotMet", "The condition specified using HTTP conditional header(s) is not met.")
	case b.leased:
		Refuse(w, http.StatusPreconditionFailed, "LeaseIdMissing", "There is currently a lease on the blob and no lease ID was specified in the request.")
	default:
		w.Header().Set("ETag", s.set(container, name, value, r.Header))
		if s.Versioning {
			w.Header().Set("X-Ms-Version-Id", "2026-11-29T12:00:00.0000000Z")
		}
		w.WriteHeader(http.StatusCreated)
	}
}

// Refuse answers with an error as Azure describes it.
func Refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/xml")
	w.Header().Set("X-Ms-Error-Code", code)
	w.WriteHeader(status)
	fmt.Fprintf(w, "<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>%s</Code><Message>%s</Message></Error>", code, message)
}
