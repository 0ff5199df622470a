package sse

import (
	"net/http/httptest"
	"strings"
	"testing"
)

// FuzzEvent: an event is read by a client as one event with these fields, whatever line they hold.
func FuzzEvent(f *testing.F) {
	f.Add("p-1", "change", "{}")
	f.Add("", "", " leading space")
	f.Fuzz(func(t *testing.T, id, name, data string) {
		if strings.ContainsAny(id+name+data, "\r\n") {
			return // the caller's part: data is one line
		}
		w := httptest.NewRecorder()
		NewWriter(w).Event(id, name, []byte(data))
		got := map[string]string{}
		lines := strings.Split(w.Body.String(), "\n")
		for i, line := range lines {
			field, value, _ := strings.Cut(line, ":")
			if line == "" && i < len(lines)-2 {
				t.Fatalf("%q ends early", w.Body)
			}
			got[field] = strings.TrimPrefix(value, " ")
		}
		if got["id"] != id || got["event"] != name || got["data"] != data || !strings.HasSuffix(w.Body.String(), "\n\n") {
			t.Errorf("%q, %q, %q are read as %v", id, name, data, got)
		}
	})
}
