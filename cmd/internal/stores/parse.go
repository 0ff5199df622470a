package stores

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/tenure-go/tenure/cmd/internal/fault"
)

// shape shows the form of every URL in hints.
const shape = "give a URL such as " + shapeNATS + ", tls://host/ELECTIONS, " +
	shapeKafka + ", " + shapeS3 + ", " + shapePostgres + ", " + shapeMySQL + " or " + shapeSQLite

// Missing returns the error if the store, and perhaps another setting, must be given.
func Missing(store string, others ...string) error {
	text := store + " is missing"
	if len(others) > 0 {
		text = strings.Join(append([]string{store}, others...), " and ") + " are missing"
	}
	return &fault.Error{Err: errors.New(text), Hint: shape + "; or a context of the nats command with --context", Code: fault.Usage}
}

// Parse reads the URL of a store: nats:// and tls:// for NATS, s3:// for object storage, kafka://
// for Kafka, postgres:// (or postgresql://), mysql:// (or mariadb://) and sqlite: for databases.
// Its errors name the setting and show no credentials.
func Parse(setting, raw string) (Place, error) {
	p, shown := Place{Setting: setting}, raw
	scheme, err := schemeOf(raw)
	if usual, ok := sameAs[scheme]; ok {
		scheme, raw = usual, usual+strings.TrimPrefix(raw, scheme)
	}
	switch {
	case err != nil:
	case scheme == "s3":
		p.S3, err = parseS3(raw)
	case scheme == "kafka":
		p.Kafka, err = parseKafka(raw)
	case slices.Contains(sqlSchemes, scheme):
		p.SQL, err = parseSQL(scheme, raw)
	default:
		p.NATS, err = parseNATS(raw)
	}
	if odd := checkName(scheme, raw); odd != nil && isScheme(scheme) {
		err = odd // other errors may quote the name
	}
	if err != nil {
		return Place{}, given(setting, shown, err)
	}
	return p, nil
}

// given puts the setting, and its value as far as it holds no credentials, in front of an error.
func given(setting, raw string, err error) error {
	if shown := Redact(raw); shown != hidden {
		setting += " " + strconv.Quote(shown)
	}
	return inFront(setting, err)
}

var (
	sqlSchemes = []string{"postgres", "mysql", "sqlite"}
	schemes    = append([]string{"nats", "tls", "s3", "kafka"}, sqlSchemes...)
	// sameAs has other names of these.
	sameAs = map[string]string{"postgresql": "postgres", "mariadb": "mysql"}
)

func isScheme(name string) bool { return slices.Contains(schemes, name) || sameAs[name] != "" }

func schemeOf(raw string) (string, error) {
	scheme, rest, ok := strings.Cut(raw, ":")
	switch {
	case !ok:
		return "", fault.New(shape, "is not a URL")
	case scheme == "memory":
		return "", fault.New(shape,
			"a store in memory is inside one process, and candidates are processes of their own")
	case scheme == "s3-embedded":
		return "", fault.New("give s3-embedded: to tenure-demo, with nothing behind the colon, or "+shapeS3,
			"the server of s3-embedded runs inside tenure-demo alone")
	case scheme == "kafka-embedded":
		return "", fault.New("give kafka-embedded: to tenure-demo, with parameters behind a ? at most, or "+shapeKafka,
			"the brokers of kafka-embedded run inside tenure-demo alone")
	case !isScheme(scheme):
		return "", fault.New(shape, "unknown scheme; known are %s", strings.Join(schemes, ", "))
	case !strings.HasPrefix(rest, "//") && scheme != "sqlite":
		return "", fault.New(shape, "is not a URL: // is missing")
	}
	return scheme, nil
}
