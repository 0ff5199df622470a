package stores

import (
	"context"
	"maps"
	"strings"
	"time"

	"github.com/tenure-go/tenure/driver/kafkalog"
	"github.com/tenure-go/tenure/driver/kafkalog/clientprops"
	"github.com/twmb/franz-go/pkg/kgo"
)

// open connects and opens the topic.
func (k *Kafka) open(ctx context.Context, o Options) (*Store, error) {
	news := newBrokerNews(o.OnConnection)
	connection, err := k.connection(o, news)
	if err != nil {
		return nil, err
	}
	store, err := kafkalog.Open(ctx, connection, k.Topic, k.driverOptions(o)...)
	if err != nil {
		return nil, k.explain(news.silence(err))
	}
	return &Store{Driver: store, close: store.Close, connection: connection, create: o.Create, logger: o.Logger}, nil
}

func (k *Kafka) driverOptions(o Options) []kafkalog.Option {
	var opts []kafkalog.Option
	if d := k.timeout(o.Lease); d != 0 {
		opts = append(opts, kafkalog.WithTimeout(d))
	}
	if k.Replicas != 0 {
		opts = append(opts, kafkalog.WithReplicas(k.Replicas))
	}
	if !o.Create {
		opts = append(opts, kafkalog.WithoutCreate())
	}
	return opts
}

// timeout returns the time for one broker to answer. It depends on the lease: after a broker that
// does not answer, there must be time to ask another one.
func (k *Kafka) timeout(lease time.Duration) time.Duration {
	if k.Timeout != 0 || lease == 0 {
		return k.Timeout
	}
	return min(max(lease/2, shortTimeout), usualTimeout)
}

// connection returns the options of the client. It reads the file of the properties again for each
// connection.
func (k *Kafka) connection(o Options, news *brokerNews) ([]kgo.Opt, error) {
	read := func() (map[string]string, error) {
		now := *k
		if k.file != "" {
			if err := now.readSettings(); err != nil {
				return nil, err
			}
		}
		return now.clientProperties(o), nil
	}
	opts, err := clientprops.Live(read, o.stale)
	switch {
	case len(problems(err)) > 0:
		return nil, k.explainProperties(err)
	case err != nil:
		return nil, err
	}
	return append(opts, kgo.WithHooks(news)), nil
}

// clientProperties returns those of the client. The URL has precedence over the properties.
func (k *Kafka) clientProperties(o Options) map[string]string {
	p := map[string]string{}
	maps.Copy(p, k.Properties)
	delete(p, "metadata.broker.list")
	p["bootstrap.servers"] = strings.Join(k.brokers(), ",")
	if p["client.id"] == "" && o.Client != "" {
		p["client.id"] = strings.ReplaceAll(o.Client, " ", "-")
	}
	if k.User != "" {
		logIn(p, k.User, k.Password)
	}
	return p
}

func (k *Kafka) check(ctx context.Context, s *Store, key string) error {
	if _, err := s.Driver.Read(ctx, key); err != nil {
		return k.explain(err)
	}
	return nil
}
