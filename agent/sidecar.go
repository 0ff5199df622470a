package agent

import (
	"net/http"
	"strings"
)

// name is the answer of a sidecar: the ID of the leader that the record names, or an empty text.
type name struct {
	Name string `json:"name"`
}

// serveName answers the leader of Config.Sidecar, or sends each one as an event.
func (a *Agent) serveName(w http.ResponseWriter, r *http.Request) {
	if strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		a.tellNews(w, r, a.cfg.Sidecar, "", func(s *sighting) any { return name{s.Leader} })
		return
	}
	one, release, err := a.observers.follow(a.cfg.Sidecar)
	if err != nil {
		refuse(w, observerProblem(err))
		return
	}
	defer release()
	answer(w, name{one.await(r.Context(), "", firstLook).Leader})
}
