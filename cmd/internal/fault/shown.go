package fault

import (
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Hidden replaces a value that may hold a credential.
const Hidden = "***"

// Shown returns the value of a setting for output, or Hidden if the value may hold a credential,
// because it was meant for another setting: it has one of @ = ? # ; or a line break, perhaps as
// %XX, is a URL with another port than a number, or two, or a colon in its path, or has a word as
// long as a key.
func Shown(value string) string {
	plain := escaped.Replace(value)
	if strings.ContainsAny(plain, "@=?#;\n") || strings.ContainsFunc(plain, longWords()) {
		return Hidden
	}
	u, err := url.Parse(plain)
	if n := strings.Count(plain, "://"); n > 1 || n == 1 && (err != nil || strings.Contains(u.Path, ":")) {
		return Hidden
	}
	return value
}

// escaped replaces the escapes of a URL that matter to Shown, in any text.
var escaped = strings.NewReplacer("%40", "@", "%3D", "=", "%3d", "=", "%3F", "?", "%3f", "?", "%23", "#", "%3A", ":", "%3a", ":", "%2F", "/", "%2f", "/")

// Quote is Shown in quotes.
func Quote(value string) string { return strconv.Quote(Shown(value)) }

// longWord is the length of a word that may be a key: those of NATS have 58 characters.
const longWord = 40

// longWords returns a function that is true for the last character of a long word, if it is called
// with each character of a text.
func longWords() func(rune) bool {
	n := 0
	return func(r rune) bool {
		if r != '_' && r != '+' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') {
			n = 0
			return false
		}
		n++
		return n == longWord
	}
}

// userinfo matches the scheme, the user and the password of a URL in a text.
var userinfo = regexp.MustCompile("[A-Za-z0-9+.-]*://[^\\s\"'`]*@")

// Masked hides the credentials of URLs in a text, such as those in an error of a library. It leaves
// the users that User returns.
func Masked(text string) string {
	return userinfo.ReplaceAllStringFunc(text, func(found string) string {
		scheme, info, _ := strings.Cut(strings.TrimSuffix(found, "@"), "://")
		return scheme + "://" + User(scheme, info) + "@"
	})
}

var (
	// userSchemes are those of URLs in which a token or a key never has the place of the user.
	userSchemes = []string{"postgres", "postgresql", "mysql", "mariadb"}
	userName    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)
)

// User returns for output the credentials that a URL has in front of the @: NAME:*** or NAME for
// the user of a database, and Hidden if it is not certain that NAME is one.
func User(scheme, info string) string {
	name, password, given := strings.Cut(info, ":")
	switch {
	case !slices.Contains(userSchemes, scheme), !userName.MatchString(name), Shown(name) == Hidden, given && password == "":
		return Hidden
	case given:
		return name + ":" + Hidden
	}
	return name
}
