package demo

import (
	"errors"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores"
	"github.com/tenure-go/tenure/cmd/internal/stores/kafkatopic"
	"github.com/tenure-go/tenure/cmd/internal/stores/natsbucket"
	"github.com/tenure-go/tenure/cmd/internal/stores/s3bucket"
	"github.com/twmb/franz-go/pkg/kfake"
)

const (
	// Bucket is the bucket of the demo, unless a URL names another one.
	Bucket = "DEMO_ELECTION"
	// s3Bucket is the bucket of the election in the demo's own object storage.
	s3Bucket = "demo-election"
	// KafkaTopic is the topic of the election on the demo's own brokers.
	KafkaTopic = "demo-election"
	// theServer is the setting in errors about a server that the demo has started.
	theServer = "the demo's server"
)

// serve starts a server in this process: on loopback, on free ports, without TLS and users. Close
// ends it.
func (o Options) serve() (place stores.Place, closes func(), err error) {
	hint, what := "give a running one with --store", "the demo's server does not start"
	switch {
	case o.EmbeddedS3:
		place, closes, err = serveS3()
	case o.EmbeddedKafka != nil:
		hint, what = "give running ones with --store", "the demo's brokers do not start"
		place, closes, err = serveKafka(o.EmbeddedKafka)
	default:
		var dir string
		if dir, err = os.MkdirTemp("", "tenure-demo-"); err != nil {
			return place, nil, fault.New("set TMPDIR to a directory that can be written to",
				"the demo's server has no place for its files: %w", err)
		}
		place, closes, err = serveNATS(dir)
	}
	if err != nil {
		return place, nil, fault.New(hint, "%s: %w", what, err)
	}
	return place, closes, nil
}

// serveNATS runs a NATS server with JetStream. Its end removes the directory.
func serveNATS(dir string) (stores.Place, func(), error) {
	s, err := server.NewServer(&server.Options{
		ServerName: "tenure-demo",
		Host:       "127.0.0.1",
		Port:       server.RANDOM_PORT,
		JetStream:  true,
		StoreDir:   dir,
		NoLog:      true,
		NoSigs:     true,
	})
	if err == nil {
		s.Start()
		if !s.ReadyForConnections(10 * time.Second) {
			err = errors.New("not ready after 10 s")
		}
	}
	closes := func() {
		if s != nil {
			s.Shutdown()
			s.WaitForShutdown()
		}
		_ = os.RemoveAll(dir)
	}
	if err != nil {
		closes()
		return stores.Place{}, nil, err
	}
	return natsPlace(s.ClientURL()), closes, nil
}

func natsPlace(url string) stores.Place {
	return stores.Place{Setting: theServer, At: &natsbucket.Place{Servers: []string{url}, Bucket: Bucket, Pristine: true}}
}

// serveS3 runs object storage in memory, without signatures.
func serveS3() (stores.Place, func(), error) {
	backend := s3mem.New()
	if err := backend.CreateBucket(s3Bucket); err != nil {
		return stores.Place{}, nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return stores.Place{}, nil, err
	}
	s := &http.Server{Handler: gofakes3.New(backend).Server(), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.Serve(l) }() // until the end
	return s3Place("http://" + l.Addr().String()), func() { _ = s.Close() }, nil
}

func s3Place(url string) stores.Place {
	return stores.Place{
		Setting: theServer,
		At:      &s3bucket.Place{Bucket: s3Bucket, Endpoint: url, Region: "us-east-1", Anonymous: true},
	}
}

// serveKafka runs three brokers of Kafka in memory.
func serveKafka(like *kafkatopic.Place) (stores.Place, func(), error) {
	c, err := kfake.NewCluster(kfake.NumBrokers(3), kfake.GroupMinSessionTimeout(time.Second))
	if err != nil {
		return stores.Place{}, nil, err
	}
	return kafkaPlace(like, c.ListenAddrs()), c.Close, nil
}

func kafkaPlace(like *kafkatopic.Place, brokers []string) stores.Place {
	k := *like
	k.Brokers = brokers
	return stores.Place{Setting: theServer, At: &k}
}
