// Package problem answers HTTP requests in JSON, with errors as RFC 9457 defines them.
package problem

import (
	"encoding/json"
	"net/http"
)

// Problem is an error for a client.
type Problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	// Remedy is the way out, and Errors lists the fields at fault.
	Remedy string   `json:"remedy"`
	Errors []string `json:"errors,omitempty"`
}

// Answer writes the problem as the answer to a request.
func (p *Problem) Answer(w http.ResponseWriter) { Write(w, p.Status, "application/problem+json", p) }

// Write writes a value of texts and numbers as the answer to a request, in this type.
func Write(w http.ResponseWriter, status int, kind string, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // it cannot happen with such a value
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n'))
}
