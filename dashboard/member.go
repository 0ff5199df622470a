package dashboard

import (
	"encoding/json"
	"net/http"

	"github.com/tenure-go/tenure"
)

// Report returns a handler that serves, as a JSON array, the tenure.Member of each election that
// the given function returns. A Dashboard in another process reads it: see Source.Members. So do
// tenure status and tenure list, with --member. The handler calls the function for each request,
// and does not authenticate requests.
func Report(elections func() []*tenure.Election) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		all := []tenure.Member{}
		for _, e := range elections() {
			all = append(all, e.Member())
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_ = json.NewEncoder(w).Encode(all) // an error means that the reader has gone
	})
}
