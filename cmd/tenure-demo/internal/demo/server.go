package demo

import "github.com/tenure-go/tenure/cmd/internal/stores"

// Bucket is where the demo keeps its election unless a URL names another one.
const Bucket = "DEMO_ELECTION"

// theServer names the setting of a place that was not set.
const theServer = "the demo's server"

// embedded is one that the demo starts, inside of its own process.
type embedded interface {
	place() stores.Place
	close()
}

func (o Options) serve() (embedded, error) {
	if o.EmbeddedS3 {
		return serveS3()
	}
	if o.EmbeddedKafka != nil {
		return serveKafka(o.EmbeddedKafka)
	}
	return serveNATS()
}
