// Package broker has the code for brokers that the packages on Kafka share.
package broker
