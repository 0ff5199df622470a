package agent

import (
	_ "embed" // for openapi.json
	"net/http"
)

// openAPI describes the interface.
//
//go:embed openapi.json
var openAPI []byte

func serveOpenAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(openAPI)
}
