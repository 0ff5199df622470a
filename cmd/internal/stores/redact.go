package stores

import (
	"net/url"
	"slices"
	"strings"
)

// hidden replaces credentials in output.
const hidden = "***"

// Redact removes all possible credentials from a text that should be a URL: everything up to the
// last @, even where it is not a valid URL, and the values of all parameters but those that are
// known to be harmless.
func Redact(raw string) string {
	at := strings.LastIndex(raw, "@")
	if at < 0 {
		return redactParameters(raw)
	}
	start := 0
	if i := strings.Index(raw[:at], "://"); i >= 0 {
		start = i + len("://")
	}
	return raw[:start] + hidden + redactParameters(raw[at:])
}

func redactParameters(raw string) string {
	raw, _, fragment := strings.Cut(raw, "#")
	place, query, ok := strings.Cut(raw, "?")
	if ok {
		all := strings.Split(query, "&")
		for i, p := range all {
			all[i] = redactParameter(p)
		}
		place += "?" + strings.Join(all, "&")
	}
	if fragment {
		place += "#" + hidden
	}
	return place
}

// redactParameter also hides the value of a harmless parameter if it has an @, perhaps as %40.
func redactParameter(p string) string {
	key, value, ok := strings.Cut(p, "=")
	plain, err := url.QueryUnescape(value)
	if slices.Contains(natsParameters, p) {
		return p
	}
	if ok && err == nil && slices.Contains(slices.Concat(parameters, kafkaParameters, sqlParameters), key) && !strings.Contains(plain, "@") {
		return p
	}
	if !ok {
		return hidden
	}
	return key + "=" + hidden
}
