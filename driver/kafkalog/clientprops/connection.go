package clientprops

import (
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func (r *reader) connection() []kgo.Opt {
	var opts []kgo.Opt
	if r.has("bootstrap.servers") {
		opts = append(opts, kgo.SeedBrokers(r.brokers()...))
	}
	if id := r.values["client.id"]; id != "" {
		opts = append(opts, kgo.ClientID(id))
	}
	if d, ok := r.millis("connections.max.idle.ms"); ok {
		opts = append(opts, kgo.ConnIdleTimeout(d))
	}
	if d, ok := r.millis("metadata.max.age.ms"); ok {
		opts = append(opts, kgo.MetadataMaxAge(d))
	}
	return opts
}

func (r *reader) brokers() []string {
	all := list(r.values["bootstrap.servers"])
	for _, b := range all {
		if !validBroker(b) {
			r.wrong("bootstrap.servers", "names a broker that is not host:port", "give them as kafka-1:9092,kafka-2:9092")
			return nil
		}
	}
	if len(all) == 0 {
		r.wrong("bootstrap.servers", "names no broker", "give them as kafka-1:9092,kafka-2:9092")
	}
	return all
}

// validBroker reports whether this is a host, or a host and a port from 1 to 65535.
func validBroker(broker string) bool {
	host, port, err := net.SplitHostPort(broker)
	if err != nil {
		host, port, err = net.SplitHostPort(broker + ":1")
	}
	n, notNumber := strconv.ParseUint(port, 10, 16)
	return err == nil && host != "" && notNumber == nil && n > 0 && !strings.ContainsAny(host, "/@ ")
}

// millis returns a time that is given in milliseconds.
func (r *reader) millis(name string) (time.Duration, bool) {
	if !r.has(name) {
		return 0, false
	}
	n, err := strconv.ParseInt(r.values[name], 10, 32)
	if err != nil || n < int64(leastMillis) {
		r.wrong(name, "is not a number of milliseconds of at least "+strconv.Itoa(leastMillis), "leave it out, or give such a number")
		return 0, false
	}
	return time.Duration(n) * time.Millisecond, true
}

// leastMillis is the shortest useful time for keeping a connection, or metadata of the brokers.
const leastMillis = 1000
