package kind

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/tenure-go/tenure/cmd/internal/fault"
)

// hidden replaces credentials in output.
const hidden = fault.Hidden

// Redact returns a text that should be the URL of a store of these kinds, without all possible
// credentials: those in front of the @, except the user of a database, and the values of all
// parameters but those that are known to be harmless. If the text is not certainly such a URL, it
// returns at most the scheme.
func Redact(kinds []*Kind, raw string) string {
	scheme, rest, _ := strings.Cut(raw, ":")
	behind, slashes := strings.CutPrefix(rest, "//")
	s, k := Find(kinds, scheme)
	if k != nil {
		kinds = []*Kind{k} // a parameter that is harmless in one kind can be a secret in another
	}
	known := s != nil && (slashes || s.Opaque) || isRefused(kinds, scheme)
	switch {
	case !known && (!slashes || !schemeName.MatchString(scheme)):
		return hidden
	case s != nil && s.Opaque:
		return begin(scheme, slashes) + redactFile(kinds, behind)
	}
	if user, place, ok := CutUser(behind); ok && known {
		if info, given := strings.CutSuffix(user, "@"); given {
			user = fault.User(scheme, info) + "@"
		}
		return begin(scheme, slashes) + user + redactTail(kinds, place)
	}
	return begin(scheme, slashes) + hidden
}

// Find returns the scheme of this name and its kind, or nil.
func Find(kinds []*Kind, name string) (*Scheme, *Kind) {
	for _, k := range kinds {
		for i, s := range k.Schemes {
			if s.Name == name || slices.Contains(s.Aliases, name) {
				return &k.Schemes[i], k
			}
		}
	}
	return nil, nil
}

// Memory is the scheme of a store that no command takes.
const Memory = "memory"

func isRefused(kinds []*Kind, scheme string) bool {
	return scheme == Memory || slices.ContainsFunc(kinds, func(k *Kind) bool { return k.Refused[scheme] != nil })
}

// begin returns the beginning of a URL.
func begin(scheme string, slashes bool) string {
	if slashes {
		return scheme + "://"
	}
	return scheme + ":"
}

var schemeName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*$`)

// CutUser cuts the part of a URL behind :// into the user, with password and @, and the place. It
// returns false unless it is certain that the place holds no part of a password: the hosts are
// such, their ports are numbers, and no @ follows.
func CutUser(rest string) (user, place string, ok bool) {
	end := strings.IndexAny(rest+"/", "/?#")
	user, hosts, given := CutLast(rest[:end], "@")
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

// CheckName refuses names that may hold settings of another program.
func (s *Scheme) CheckName(raw string) error {
	place, _, _ := strings.Cut(strings.TrimPrefix(raw, s.Name+":"), "?")
	odd := settingsInFile
	if !s.Opaque {
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
func redactFile(kinds []*Kind, name string) string {
	path, _, _ := strings.Cut(name, "?")
	if user, _, _ := CutLast(name, "@"); strings.Contains(user, ":") || strings.ContainsAny(path, settingsInFile) {
		return hidden
	}
	return redactTail(kinds, name)
}

// redactTail hides parameters and a fragment.
func redactTail(kinds []*Kind, place string) string {
	place, _, fragment := strings.Cut(place, "#")
	place, query, ok := strings.Cut(place, "?")
	if ok {
		place += "?" + redactParameters(kinds, query)
	}
	if fragment {
		place += "#" + hidden
	}
	return place
}

// redactParameters leaves out all that follows the first hidden value, since it may be a part of
// it.
func redactParameters(kinds []*Kind, query string) string {
	all := strings.Split(query, "&")
	for i, p := range all {
		key, value, _ := strings.Cut(p, "=")
		switch {
		case IsHarmless(kinds, key, value) && fault.Shown(value) == value:
			continue
		case IsName(key, value):
			all[i] = key + "=" + hidden
		default:
			all[i] = hidden
		}
		return strings.Join(all[:i+1], "&")
	}
	return query
}

// IsHarmless reports whether the value of a parameter is no secret.
func IsHarmless(kinds []*Kind, key, value string) bool {
	return slices.ContainsFunc(kinds, func(k *Kind) bool {
		return slices.Contains(k.Harmless, key) || slices.ContainsFunc(k.Parameters, func(p Parameter) bool {
			return p.Name == key && (!p.Fixed || p.Value == value)
		})
	})
}

// IsName reports whether the text before = is the name of a parameter. Without a value it may be a
// secret, as one in base64 ends in =.
func IsName(key, value string) bool {
	return strings.Trim(value, "=") != "" && fault.Shown(key) == key && schemeName.MatchString(strings.ReplaceAll(key, "_", "-"))
}
