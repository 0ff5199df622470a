package stores

import "strings"

// hidden stands for credentials.
const hidden = "***"

// Redact removes from what should be a URL all that may be credentials: everything up to the last @, even where it is not
// a valid URL.
func Redact(raw string) string {
	at := strings.LastIndex(raw, "@")
	if at < 0 {
		return raw
	}
	start := 0
	if i := strings.Index(raw[:at], "://"); i >= 0 {
		start = i + len("://")
	}
	return raw[:start] + hidden + raw[at:]
}
