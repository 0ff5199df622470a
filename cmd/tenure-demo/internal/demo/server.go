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

// natsServer runs a NATS server with JetStream in this process: on loopback, on a free port, with
// temporary files.
type natsServer struct {
	server *server.Server
	dir    string
}

func serveNATS() (*natsServer, error) {
	dir, err := os.MkdirTemp("", "tenure-demo-")
	if err != nil {
		return nil, fault.New("set TMPDIR to a directory that can be written to",
			"the demo's server has no place for its files: %w", err)
	}
	e := &natsServer{dir: dir}
	if err := e.start(); err != nil {
		e.close()
		return nil, fault.New("give a running one with --store", "the demo's server does not start: %w", err)
	}
	return e, nil
}

func (e *natsServer) start() error {
	s, err := server.NewServer(&server.Options{
		ServerName: "tenure-demo",
		Host:       "127.0.0.1",
		Port:       server.RANDOM_PORT,
		JetStream:  true,
		StoreDir:   e.dir,
		NoLog:      true,
		NoSigs:     true,
	})
	if err != nil {
		return err
	}
	e.server = s
	s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		return errors.New("not ready after 10 s")
	}
	return nil
}

func (e *natsServer) place() stores.Place { return natsPlace(e.server.ClientURL()) }

func natsPlace(url string) stores.Place {
	return stores.Place{Setting: theServer, At: &natsbucket.Place{Servers: []string{url}, Bucket: Bucket, Pristine: true}}
}

func (e *natsServer) close() {
	if e.server != nil {
		e.server.Shutdown()
		e.server.WaitForShutdown()
	}
	_ = os.RemoveAll(e.dir)
}

// s3Bucket is the bucket of the election in the demo's own object storage.
const s3Bucket = "demo-election"

// s3Server runs object storage in this process: in memory, on loopback, on a free port, without TLS
// and signatures.
type s3Server struct {
	http *http.Server
	url  string
}

func serveS3() (*s3Server, error) {
	backend := s3mem.New()
	if err := backend.CreateBucket(s3Bucket); err != nil {
		return nil, fault.New("give a running one with --store", "the demo's server does not start: %w", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fault.New("give a running one with --store", "the demo's server does not start: %w", err)
	}
	s := &s3Server{
		http: &http.Server{Handler: gofakes3.New(backend).Server(), ReadHeaderTimeout: 10 * time.Second},
		url:  "http://" + l.Addr().String(),
	}
	go func() { _ = s.http.Serve(l) }() // until close
	return s, nil
}

func (s *s3Server) place() stores.Place { return s3Place(s.url) }

func s3Place(url string) stores.Place {
	return stores.Place{
		Setting: theServer,
		At:      &s3bucket.Place{Bucket: s3Bucket, Endpoint: url, Region: "us-east-1", Anonymous: true},
	}
}

func (s *s3Server) close() { _ = s.http.Close() }

// KafkaTopic is the topic of the election on the demo's own brokers.
const KafkaTopic = "demo-election"

// kafkaServer runs three brokers of Kafka in this process: in memory, on loopback, on free ports,
// without TLS and users.
type kafkaServer struct {
	cluster *kfake.Cluster
	like    *kafkatopic.Place
}

func serveKafka(like *kafkatopic.Place) (*kafkaServer, error) {
	c, err := kfake.NewCluster(kfake.NumBrokers(3), kfake.GroupMinSessionTimeout(time.Second))
	if err != nil {
		return nil, fault.New("give running ones with --store", "the demo's brokers do not start: %w", err)
	}
	return &kafkaServer{c, like}, nil
}

func (s *kafkaServer) place() stores.Place { return kafkaPlace(s.like, s.cluster.ListenAddrs()) }

func kafkaPlace(like *kafkatopic.Place, brokers []string) stores.Place {
	k := *like
	k.Brokers = brokers
	return stores.Place{Setting: theServer, At: &k}
}

func (s *kafkaServer) close() { s.cluster.Close() }
