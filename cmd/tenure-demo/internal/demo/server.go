package demo

import "github.com/tenure-go/tenure/cmd/internal/stores"

// Bucket is the bucket of the demo, unless a URL names another one.
const Bucket = "DEMO_ELECTION"

// theServer is the setting in errors about a server that the demo has started.
const theServer = "the demo's server"

// embedded is a server that the demo starts in its own process.
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
