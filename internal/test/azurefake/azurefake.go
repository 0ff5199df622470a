// Package azurefake is a server of Azure Blob Storage within the process, as far as elections use
// it, with rights and faults.
package azurefake

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/tenure-go/tenure/internal/test/objectfake"
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

// Server is a server with containers. It must be made by New. Its users are the sig of a SAS token,
// an access token, or "key" for requests that are signed with the key of the account, which is not
// checked. Set its fields before the first request.
type Server struct {
	*objectfake.Server
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
}

// New returns a server with empty containers.
func New(containers ...string) *Server {
	s := &Server{SKU: "Standard_LRS"}
	etag := func(n uint64) string { return fmt.Sprintf(`"0x%X"`, 0x8DE000000000000+n) }
	s.Server = objectfake.New(etag, s.answer, containers...)
	return s
}

// Lease begins or ends the lease of another program on a blob.
func (s *Server) Lease(container, name string, leased bool) {
	s.Edit(container, name, func(b *objectfake.Object) { b.Leased = leased })
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, body []byte) {
	path := strings.TrimPrefix(strings.TrimPrefix(r.URL.EscapedPath(), "/"+Account), "/")
	container, name, inside := strings.Cut(path, "/")
	name, err := url.PathUnescape(name)
	if err != nil {
		Refuse(w, http.StatusBadRequest, "InvalidUri", "The requested URI does not represent any resource on the server.")
		return
	}
	blobs, exists := s.Objects(container)
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
	case r.Method == http.MethodDelete && !lacks(w, have, "d"):
		delete(blobs, name)
		w.WriteHeader(http.StatusAccepted)
	case r.Method == http.MethodDelete:
	default:
		get(w, name, blobs, have)
	}
}

// rights returns those of a request.
func (s *Server) rights(r *http.Request) (have string, known bool) {
	secret := r.URL.Query().Get("sig")
	switch scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " "); scheme {
	case "Bearer":
		secret = token
	case "SharedKey":
		secret = "key"
	}
	rights, known := s.Rights(secret, All)
	return strings.Join(rights, ""), known
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
		s.Make(container)
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

func get(w http.ResponseWriter, name string, blobs map[string]objectfake.Object, have string) {
	b, there := blobs[name]
	switch {
	case lacks(w, have, "r"):
	case !there:
		Refuse(w, http.StatusNotFound, "BlobNotFound", "The specified blob does not exist.")
	default:
		status := map[bool]string{false: "unlocked", true: "locked"}[b.Leased]
		w.Header().Set("X-Ms-Lease-Status", status)
		w.Header().Set("ETag", b.Version)
		fmt.Fprint(w, b.Value)
	}
}

// list gives pages of two names.
func list(w http.ResponseWriter, q url.Values, blobs map[string]objectfake.Object, have string) {
	if lacks(w, have, "l") {
		return
	}
	names, next := objectfake.Page(blobs, q.Get("prefix"), q.Get("marker"))
	w.Header().Set("Content-Type", "application/xml")
	fmt.Fprint(w, "<EnumerationResults><Blobs>")
	for _, name := range names {
		fmt.Fprint(w, "<Blob><Name>")
		_ = xml.EscapeText(w, []byte(name))
		fmt.Fprint(w, "</Name><Properties><Content-Length>"+strconv.Itoa(len(blobs[name].Value))+"</Content-Length></Properties></Blob>")
	}
	fmt.Fprint(w, "</Blobs><NextMarker>")
	_ = xml.EscapeText(w, []byte(next))
	fmt.Fprint(w, "</NextMarker></EnumerationResults>")
}

// put has the order of checks of the service: rights, conditions, leases.
func (s *Server) put(w http.ResponseWriter, r *http.Request, container, name, value, have string) {
	blobs, _ := s.Objects(container)
	b, there := blobs[name]
	match, none := r.Header.Get("If-Match"), r.Header.Get("If-None-Match")
	switch {
	case there && lacks(w, have, "w"), !there && !strings.Contains(have, "w") && lacks(w, have, "c"):
	case none == "*" && there && s.Ignore != "If-None-Match":
		Refuse(w, http.StatusConflict, "BlobAlreadyExists", "The specified blob already exists.")
	case match != "" && match != b.Version && s.Ignore != "If-Match":
		Refuse(w, http.StatusPreconditionFailed, "ConditionNotMet", "The condition specified using HTTP conditional header(s) is not met.")
	case b.Leased:
		Refuse(w, http.StatusPreconditionFailed, "LeaseIdMissing", "There is currently a lease on the blob and no lease ID was specified in the request.")
	default:
		w.Header().Set("ETag", s.Put(container, name, value, map[string]string{
			"cacheControl": r.Header.Get("X-Ms-Blob-Cache-Control"), "contentType": r.Header.Get("X-Ms-Blob-Content-Type"),
		}))
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
