package neli

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/tenure-go/tenure/driver/kafkalog/clientprops"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	brokers      = "bootstrap.servers"
	brokersAlias = "metadata.broker.list"
)

// properties holds the parsed KafkaConfig.
type properties struct {
	connection []kgo.Opt
	silence    time.Duration     // max.poll.interval.ms
	heartbeat  time.Duration     // heartbeat.interval.ms; 0 if not given
	instance   string            // group.instance.id
	needless   map[string]string // accepted without effect, and why
}

// The default and the maximum of max.poll.interval.ms are librdkafka's.
const (
	defaultSilence = 5 * time.Minute
	mostSilence    = 24 * time.Hour
)

// sort separates the properties of a connection, which package clientprops knows, from those of
// consumers and producers.
func sort(given KafkaConfigMap) (properties, error) {
	p := properties{silence: defaultSilence, needless: map[string]string{}}
	rest := map[string]string{}
	var bad []error
	for _, name := range slices.Sorted(maps.Keys(given)) {
		value, err := text(given[name])
		switch {
		case err != nil:
		case own[name] != "":
			err = fmt.Errorf("is set by %s (leave it out)", own[name])
		case refused[name] != "":
			err = fmt.Errorf("is not supported (%s)", refused[name])
		case needless[name] != "":
			p.needless[name] = needless[name]
		case name == "max.poll.interval.ms":
			p.silence, err = millis(value, mostSilence)
		case name == "heartbeat.interval.ms":
			p.heartbeat, err = millis(value, time.Hour)
		case name == "group.instance.id":
			p.instance, err = value, legal(value)
		default:
			rest[name] = value
		}
		if err != nil {
			bad = append(bad, fmt.Errorf("%s %w", name, err))
		}
	}
	var err error
	p.connection, err = clientprops.Options(rest)
	if err = errors.Join(errors.Join(bad...), err); err != nil {
		return properties{}, fmt.Errorf("KafkaConfig: %w", err)
	}
	return p, nil
}

// text returns a value as it would be written in a file of properties.
func text(value interface{}) (string, error) {
	switch reflect.ValueOf(value).Kind() {
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64:
		return fmt.Sprint(value), nil
	}
	return "", fmt.Errorf("is a %T (give a string, a number or a boolean)", value)
}

func legal(name string) error {
	if name == "" || strange.MatchString(name) || len(name) > maxTopic {
		return errors.New("is not of letters, digits and . _ - alone")
	}
	return nil
}

func millis(value string, most time.Duration) (time.Duration, error) {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < 1 || n > most.Milliseconds() {
		return 0, fmt.Errorf("is no number of milliseconds from 1 to %d", most.Milliseconds())
	}
	return time.Duration(n) * time.Millisecond, nil
}

// report logs properties without effect, once.
func (p properties) report(log *slog.Logger) {
	for _, name := range slices.Sorted(maps.Keys(p.needless)) {
		log.Info("neli: a property of KafkaConfig has no effect", "property", name, "because", p.needless[name])
	}
}
