package connection

import (
	"bytes"
	"time"
)

const (
	// While a stream elects its leader, requests vanish, usually for 4 to 8 s, and the connection
	// is not at fault.
	silentFor = 4 * time.Second
	// A server that reports that it does not reach the others may be the only one.
	explainedFor = 2 * time.Second
	// nextOutage is how long after a failure the next one belongs to another outage.
	nextOutage = 10 * time.Second
)

// outage is a time in which no request succeeded. Its zero value is none.
type outage struct {
	since, last time.Time
	explained   bool // the server has given the reason
}

// add adds the failure of a request that began at a time.
func (o *outage) add(began time.Time, explained bool) {
	now := time.Now()
	if !o.ongoing() {
		*o = outage{since: began}
	}
	o.last, o.explained = now, o.explained || explained
}

// ongoing reports whether the next failure belongs to the outage.
func (o *outage) ongoing() bool { return !o.since.IsZero() && time.Since(o.last) <= nextOutage }

// age is 0 if the outage is over.
func (o *outage) age() time.Duration {
	if !o.ongoing() {
		return 0
	}
	return time.Since(o.since)
}

// tooLong reports whether outages are reason enough to leave the connection made at a time. Earlier
// failures do not count.
func tooLong(connected time.Time, outages ...outage) bool {
	limit, age := silentFor, time.Duration(0)
	for _, o := range outages {
		if o.ongoing() && o.explained {
			limit = explainedFor
		}
		age = max(age, o.age())
	}
	return min(age, time.Since(connected)) >= limit
}

// unable reports whether a server answers that it cannot carry out the request now: it has no
// leader, or an earlier write is under way. It searches the text, which is safe: the answer to a
// write holds no data, and other answers hold data only in base64.
func unable(answer []byte, p Purpose) bool {
	says := func(text string) bool { return bytes.Contains(answer, []byte(text)) }
	return says(`"code":503`) || p == Write && (says(`"err_code":10164`) || says(`"err_code":10158`))
}

// refused reports whether a write was answered by an error.
func refused(answer []byte) bool { return bytes.Contains(answer, []byte(`"error":`)) }
