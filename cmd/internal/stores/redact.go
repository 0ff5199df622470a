package stores

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/tenure-go/tenure/cmd/internal/fault"
)

// hidden replaces credentials in output.
const hidden = fault.Hidden

// Redact returns a text that should be the URL of a store, without all possible credentials: those
// in front of the @, except the user of a database, and the values of all parameters but those that
// are known to be harmless. If the text is not certainly such a URL, it returns at most the scheme.
func Redact(raw string) string {
	scheme, rest, _ := strings.Cut(raw, ":")
	behind, slashes := strings.CutPrefix(rest, "//")
	known := isScheme(scheme) && slashes || slices.Contains(opaque, scheme)
	switch {
	case !known && (!slashes || !schemeName.MatchString(scheme)):
		return hidden
	case scheme == "sqlite":
		return begin(scheme, slashes) + redactFile(behind)
	}
	if user, place, ok := cutUser(behind); ok && known {
		if info, given := strings.CutSuffix(user, "@"); given {
			user = fault.User(scheme, info) + "@"
		}
		return begin(scheme, slashes) + user + redactTail(place)
	}
	return begin(scheme, slashes) + hidden
}

// begin returns the beginning of a URL.
func begin(scheme string, slashes bool) string {
	if slashes {
		return scheme + "://"
	}
	return scheme + ":"
}

var (
	// opaque are the schemes without //.
	opaque     = []string{"sqlite", "memory", "s3-embedded", "kafka-embedded"}
	schemeName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*$`)
)

// cutUser cuts the part of a URL behind :// into the user, with password and @, and the place. It
// returns false unless it is certain that the place holds no part of a password: the hosts are
// such, their ports are numbers, and no @ follows.
func cutUser(rest string) (user, place string, ok bool) {
	end := strings.IndexAny(rest+"/", "/?#")
	user, hosts, given := cutLast(rest[:end], "@")
	if given {
		user += "@"
	}
	path, _, _ := strings.Cut(rest[end:], "?")
	plain, err := url.PathUnescape(path)
	ok = err == nil && !strings.Contains(plain+rest[end:], "@") && !strings.ContainsAny(plain, settings)
	for host := range strings.SplitSeq(hosts, ",") {
		ok = ok && hostName.MatchString(host)
	}
	return user, hosts + rest[end:], ok
}

// hostName matches a host, perhaps with a port, a bucket, the directory of a socket, or nothing.
var hostName = regexp.MustCompile(`^((%2F|%2f|[A-Za-z0-9._*-])*|\[[0-9A-Fa-f:.]+\])(:[0-9]{0,5})?$`)

// settings has the characters that separate settings, such as "database;password=...", and that are
// in no sensible name of a database, bucket, prefix or topic. Names of files may have others.
const (
	settings       = " ;=:,'\"`|&<>(){}"
	settingsInFile = ";="
)

// checkName refuses names that may hold settings of another program.
func checkName(scheme, raw string) error {
	place, _, _ := strings.Cut(strings.TrimPrefix(raw, scheme+":"), "?")
	odd := settingsInFile
	if scheme != "sqlite" {
		_, place, _ = strings.Cut(strings.TrimPrefix(place, "//"), "/")
		odd = settings
	}
	if plain, err := url.PathUnescape(place); err == nil && strings.ContainsAny(plain, odd) {
		return fault.New("parameters stand behind a ?, with & between them; passwords have files and variables of their own: tenure help stores",
			"has one of the characters %s in a name", strings.Join(strings.Split(strings.TrimSpace(odd), ""), " "))
	}
	return nil
}

// redactFile returns the name of a file, which may have an @, unless a user and a password may be
// in front of that, or settings behind it.
func redactFile(name string) string {
	path, _, _ := strings.Cut(name, "?")
	if user, _, _ := cutLast(name, "@"); strings.Contains(user, ":") || strings.ContainsAny(path, settingsInFile) {
		return hidden
	}
	return redactTail(name)
}

// redactTail hides parameters and a fragment.
func redactTail(place string) string {
	place, _, fragment := strings.Cut(place, "#")
	place, query, ok := strings.Cut(place, "?")
	if ok {
		place += "?" + redactParameters(query)
	}
	if fragment {
		place += "#" + hidden
	}
	return place
}

// redactParameters leaves out all that follows the first hidden value, since it may be a part of
// it.
func redactParameters(query string) string {
	all := strings.Split(query, "&")
	for i, p := range all {
		key, value, _ := strings.Cut(p, "=")
		switch {
		case slices.Contains(natsParameters, p), harmless(key) && fault.Shown(value) == value:
			continue
		case names(key, value):
			all[i] = key + "=" + hidden
		default:
			all[i] = hidden
		}
		return strings.Join(all[:i+1], "&")
	}
	return query
}

// harmless reports whether the value of a parameter is no secret.
func harmless(key string) bool {
	return slices.Contains(parameters, key) || slices.Contains(kafkaParameters, key) || slices.Contains(sqlParameters, key)
}

// names reports whether the text before = is the name of a parameter. Without a value it may be a
// secret, as one in base64 ends in =.
func names(key, value string) bool {
	return strings.Trim(value, "=") != "" && fault.Shown(key) == key && schemeName.MatchString(strings.ReplaceAll(key, "_", "-"))
}

// keysIn returns the names of the parameters in the order in which they are given. So a part of a
// secret with & in it comes after the parameter that has the secret.
func keysIn(query string) []string {
	var keys []string
	for p := range strings.SplitSeq(query, "&") {
		key, _, _ := strings.Cut(p, "=")
		if name, err := url.QueryUnescape(key); err == nil && p != "" && !slices.Contains(keys, name) {
			keys = append(keys, name)
		}
	}
	return keys
}
