package kind

import (
	"errors"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tenure-go/tenure/cmd/internal/fault"
)

// ParseURL reads a URL without credentials and without a fragment. Its errors have hints: where
// credentials belong, and what a URL looks like.
func ParseURL(raw, chain, likeThis string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err == nil && u.User != nil, err != nil && strings.Contains(raw, "@"):
		return nil, fault.New(chain, "has credentials in it")
	case err != nil:
		return nil, fault.New(likeThis, "is not a valid URL")
	case u.Fragment != "" || strings.HasSuffix(raw, "#"):
		return nil, fault.New("write # of a name as %23", "has a fragment behind #")
	}
	return u, nil
}

// Endpoint reads the URL of a server from a parameter, and cuts a slash at its end. Its hint says
// where credentials belong.
func Endpoint(value, chain string) (string, error) {
	u, err := url.Parse(value)
	switch {
	case err == nil && (u.User != nil || u.Query().Has("sig")), err != nil && strings.Contains(value, "@"):
		return "", fault.New(chain, "has credentials in it")
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Host == "", u.RawQuery != "", u.Fragment != "":
		return "", errors.New("must be the URL of a server, with http:// or https://")
	}
	return strings.TrimSuffix(value, "/"), nil
}

// Query reads the parameters of a URL. Its errors have hints.
type Query struct {
	// Known are the names of the parameters.
	Known []string
	// Hint is the remedy for a wrong value.
	Hint string
	// Elsewhere is the remedy for a parameter that IsCredential takes for one.
	Elsewhere    string
	IsCredential func(key string) bool
}

// Each calls set for each parameter in the order in which they are given. A hint of an error of set
// replaces that of the query.
func (q Query) Each(query string, set func(key, value string) error) error {
	values, err := ParseQuery(query)
	if err != nil {
		return err
	}
	for _, key := range KeysIn(query) {
		value := values.Get(key)
		switch {
		case !slices.Contains(q.Known, key):
			return q.unknown(key, value)
		case len(values[key]) > 1:
			return fault.New("leave out one of them", "parameter %s is given twice", key)
		case value == "":
			err = errors.New("is empty")
		default:
			err = set(key, value)
		}
		var hinted *fault.Error
		if errors.As(err, &hinted) {
			return err
		}
		if err != nil {
			return fault.New(q.Hint, "parameter %s %w", key, err)
		}
	}
	return nil
}

func (q Query) unknown(key, value string) error {
	hint := "known are " + strings.Join(q.Known, ", ")
	if !IsName(key, value) {
		return fault.New(hint, "an unknown parameter has no value")
	}
	if q.IsCredential(key) {
		hint = q.Elsewhere
	}
	return fault.New(hint, "parameter %.40q is unknown", key)
}

// ParseQuery is url.ParseQuery with a hint.
func ParseQuery(query string) (url.Values, error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, fault.New("write & and % of a value as %26 and %25", "the parameters behind ? cannot be read")
	}
	return values, nil
}

// KeysIn returns the names of the parameters in the order in which they are given. So a part of a
// secret with & in it comes after the parameter that has the secret.
func KeysIn(query string) []string {
	var keys []string
	for p := range strings.SplitSeq(query, "&") {
		key, _, _ := strings.Cut(p, "=")
		if name, err := url.QueryUnescape(key); err == nil && p != "" && !slices.Contains(keys, name) {
			keys = append(keys, name)
		}
	}
	return keys
}

// Bool reads the value of a parameter.
func Bool(value string) (bool, error) {
	on, err := strconv.ParseBool(value)
	if err != nil {
		return false, errors.New("must be true or false")
	}
	return on, nil
}

// Duration reads the value of a parameter.
func Duration(value string, least, most time.Duration) (time.Duration, error) {
	d, err := time.ParseDuration(value)
	if err != nil || d < least || d > most {
		return 0, errors.New("must be a time from " + least.String() + " to " + most.String())
	}
	return d, nil
}

// With adds the parameters that have a value to a URL. The first of them follows the sign.
func With(place, sign string, parameters ...[2]string) string {
	for _, p := range parameters {
		if p[1] != "" {
			place += sign + p[0] + "=" + p[1]
			sign = "&"
		}
	}
	return place
}

// ValidHost reports whether a text is a host, perhaps with a port.
func ValidHost(host string) bool {
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		u := url.URL{Host: host}
		return u.Hostname() != "" && u.Port() == "" && !strings.HasSuffix(host, ":")
	}
	n, err := strconv.Atoi(port)
	return err == nil && name != "" && 1 <= n && n <= 65535
}

// CutLast is strings.Cut at the last separator. If there is none, before is empty.
func CutLast(s, at string) (before, after string, found bool) {
	if i := strings.LastIndex(s, at); i >= 0 {
		return s[:i], s[i+len(at):], true
	}
	return "", s, false
}
