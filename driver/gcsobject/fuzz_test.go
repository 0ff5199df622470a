package gcsobject

import (
	"net/http"
	"strings"
	"testing"
)

// FuzzAnswer: a generation is a positive number, and no error page makes an error long.
func FuzzAnswer(f *testing.F) {
	f.Add("1700000000000000", []byte(`{"error":{"message":"no","errors":[{"reason":"conditionNotMet"}]}}`), "Mon, 02 Jan 2026 15:04:05 GMT")
	f.Add("+1", []byte("<html>"), "")
	f.Add("", []byte(strings.Repeat("x", 1000)), "Fri, 31 Dec 9999 23:59:59 GMT")
	f.Fuzz(func(t *testing.T, number string, body []byte, date string) {
		if v, err := generation(number); err == nil && (string(v) != number || strings.Trim(number, "0123456789") != "" || strings.Trim(number, "0") == "") {
			t.Errorf("%q is the version %q", number, v)
		}
		e := failure(&http.Response{StatusCode: http.StatusBadGateway}, body)
		if len(e.Message) > 520 {
			t.Errorf("a message of %d bytes", len(e.Message))
		}
		_ = e.missing()
		_ = floor(http.Header{"Date": {date}})
	})
}
