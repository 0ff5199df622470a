package broker

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kgo"
)

// errOthers names the options that would change the kind of a client.
var errOthers = errors.New("leave out kgo.ConsumerGroup and kgo.TransactionalID: this package sets them itself where it needs them")

// Connect makes a client with a user's options of a connection, and with others that the user
// cannot change.
func Connect(connection []kgo.Opt, held ...kgo.Opt) (*kgo.Client, error) {
	opts := append([]kgo.Opt{}, connection...)
	client, err := kgo.NewClient(append(append(opts, held...), kgo.DisableClientMetrics())...)
	if err != nil {
		return nil, err
	}
	if err := plain(client); err != nil {
		client.Close()
		return nil, err
	}
	return client, nil
}

func plain(client *kgo.Client) error {
	group, _ := client.OptValue(kgo.ConsumerGroup).(string)
	transaction, _ := client.OptValue(kgo.TransactionalID).(string)
	if group != "" || transaction != "" {
		return errOthers
	}
	return nil
}
