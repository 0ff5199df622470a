// Package broker is what the packages on Kafka share in dealing with brokers.
package broker
