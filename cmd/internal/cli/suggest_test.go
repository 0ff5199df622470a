package cli

import "testing"

func TestClosest(t *testing.T) {
	names := []string{"status", "stores", "watch", "hand-over", "dashboard", "run", "peer", "peer-key", "peer-cert"}
	for typed, want := range map[string]string{
		"staus":     "status",
		"sttaus":    "status",
		"wacth":     "watch",
		"handover":  "hand-over",
		"dash":      "dashboard",
		"rn":        "run",
		"per":       "peer",
		"peer-crt":  "peer-cert",
		"peer-":     "peer",
		"st":        "", // status or stores
		"x":         "",
		"nothing":   "",
		"elections": "",
		"":          "",
	} {
		if got := closest(typed, names); got != want {
			t.Errorf("%s: got %q, want %q", typed, got, want)
		}
	}
}
