package demo

import (
	"time"

	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores"
	"github.com/twmb/franz-go/pkg/kfake"
)

// KafkaTopic is the topic of the election on the demo's own brokers.
const KafkaTopic = "demo-election"

// kafkaServer runs three brokers of Kafka in this process: in memory, on loopback, on free ports,
// without TLS and users.
type kafkaServer struct {
	cluster *kfake.Cluster
	like    *stores.Kafka
}

func serveKafka(like *stores.Kafka) (*kafkaServer, error) {
	c, err := kfake.NewCluster(kfake.NumBrokers(3), kfake.GroupMinSessionTimeout(time.Second))
	if err != nil {
		return nil, fault.New("give running ones with --store", "the demo's brokers do not start: %w", err)
	}
	return &kafkaServer{c, like}, nil
}

func (s *kafkaServer) place() stores.Place { return kafkaPlace(s.like, s.cluster.ListenAddrs()) }

func kafkaPlace(like *stores.Kafka, brokers []string) stores.Place {
	k := *like
	k.Brokers = brokers
	return stores.Place{Setting: theServer, Kafka: &k}
}

func (s *kafkaServer) close() { s.cluster.Close() }
