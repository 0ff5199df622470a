package sqltable

import (
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores/kind"
)

// The forms of URLs of databases in hints.
const (
	examplePostgres = "postgres://user@host/database?table=tenure"
	exampleMySQL    = "mysql://user@host/database?table=tenure"
	exampleSQLite   = "sqlite:/path/elections.db"
)

var mysqlParameters = []string{"table", "tls", "ssl-ca", "ssl-cert", "ssl-key"}

// secretParameters matches parameters that must not be in a URL, where other users could see them.
var secretParameters = regexp.MustCompile(`(?i)pass|secret|token`)

// parse reads a URL of the form postgres://[user[:password]@][host[:port],...]/database[?...],
// mysql://... or sqlite:PATH[?table=NAME].
func parse(scheme, raw string) (*Place, error) {
	s := &Place{Scheme: scheme}
	example := databases[scheme].example
	if _, behind, _ := strings.Cut(strings.TrimPrefix(raw, scheme+"://"), "/"); scheme != "sqlite" && strings.Contains(behind, "@") ||
		scheme != "sqlite" && strings.LastIndex(raw, "@") > strings.IndexAny(raw+"?", "?") {
		return nil, fault.New("write / ? and @ of a password or a value as %2F, %3F and %40", "has an @ behind the first / or ?")
	}
	if scheme == "postgres" && !isPlainPostgres(raw) {
		return nil, fault.New("write special characters of a user or a password as %XX, such as %40 for @; give a URL such as "+example, "is not a valid URL")
	}
	place, query, _ := strings.Cut(strings.TrimPrefix(raw, scheme+":"), "?")
	if strings.Contains(place, "#") || strings.Contains(query, "#") {
		return nil, fault.New("write # as %23", "has a fragment behind #")
	}
	rest, err := s.takeOwn(query)
	if err != nil {
		return nil, err
	}
	switch {
	case scheme == "sqlite" && rest != "":
		return nil, fault.New("known are table and pristine, as in "+exampleSQLite+"?table=tenure&pristine=true", "has a parameter that SQLite does not take")
	case scheme == "sqlite":
		s.URL = strings.TrimPrefix(place, "//")
		if s.URL == "" || s.URL == ":memory:" {
			return nil, fault.New("give a file, as in "+exampleSQLite, "names no file; all candidates must share one")
		}
	default:
		s.URL = place
		if rest != "" {
			s.URL += "?" + rest
		}
		if _, name, _ := strings.Cut(strings.TrimPrefix(place, "//"), "/"); scheme == "mysql" && name == "" {
			return nil, fault.New("give a URL such as "+example, "names no database")
		}
	}
	if _, err := s.Limits(); err != nil { // of the table
		return nil, fault.New("give a URL such as "+example, "%w", err)
	}
	return s, nil
}

// isPlainPostgres reports whether all programs see the same user, password and hosts in a URL:
// where the user or the password has an @, PostgreSQL's tools take the rest for a host.
func isPlainPostgres(raw string) bool {
	user, _, ok := kind.CutUser(strings.TrimPrefix(raw, "postgres://"))
	_, err := url.PathUnescape(user)
	return ok && err == nil && strings.Count(user, "@") <= 1 && !strings.Contains(user, " ")
}

// takeOwn takes out the parameters that are not the database's own, and returns the others.
func (s *Place) takeOwn(query string) (rest string, err error) {
	values, err := kind.ParseQuery(query)
	if err != nil {
		return "", err
	}
	for _, key := range kind.KeysIn(query) {
		all := values[key]
		switch {
		case secretParameters.MatchString(key):
			return "", fault.New("use PGPASSFILE, PGPASSWORD, MYSQL_PWD or ~/.my.cnf", "has a secret behind ?, where others could see it")
		case !kind.IsHarmless([]*kind.Kind{Kind()}, key, all[0]) && !kind.IsName(key, all[0]):
			return "", fault.New("give a URL such as "+databases[s.Scheme].example, "an unknown parameter has no value")
		case len(all) > 1:
			return "", fault.New("leave out one of them", "parameter %.40q is given twice", key)
		case all[0] == "":
			return "", fault.New("give a URL such as "+databases[s.Scheme].example, "parameter %.40q is empty", key)
		case s.Scheme == "mysql" && !slices.Contains(mysqlParameters, key):
			return "", fault.New("known are "+strings.Join(mysqlParameters, ", "), "parameter %.40q is unknown", key)
		case s.Scheme == "mysql" && strings.HasPrefix(key, "ssl-") && !slices.Contains([]string{"", "true"}, values.Get("tls")):
			return "", fault.New("give tls=true, or leave tls out", "has %s, and tls=%.40s, which checks no certificate", key, fault.Shown(values.Get("tls")))
		}
	}
	s.Table = values.Get("table")
	values.Del("table")
	switch given := values.Get("pristine"); {
	case given == "":
	case s.Scheme != "sqlite":
		return "", fault.New("leave it out", "parameter pristine is for SQLite, not for %s", s.Scheme)
	case given != "true":
		return "", fault.New("give pristine=true for a new file, or leave it out", "parameter pristine is %s, not true", fault.Quote(given))
	default:
		s.Pristine = true
		values.Del("pristine")
	}
	if s.Scheme == "postgres" {
		s.Listen, s.Push = values.Get("listen"), values.Get("push")
		values.Del("listen")
		values.Del("push")
	}
	return values.Encode(), s.checkPush()
}

// checkPush checks the settings of pushes.
func (s *Place) checkPush() error {
	switch s.Push {
	case "off":
		if s.Listen != "" {
			return fault.New("leave one of them out", "has push=off and an address to listen at")
		}
	case "on":
		s.Push = "" // it is the default
	case "":
	default:
		return fault.New("give push=on or push=off", "parameter push is %s, not on or off", fault.Quote(s.Push))
	}
	if s.Listen == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(s.Listen)
	if _, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || host == "" {
		return fault.New("give listen=HOST:PORT", "parameter listen is %s, not HOST:PORT", fault.Quote(s.Listen))
	}
	return nil
}
