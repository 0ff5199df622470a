// Package metrics tests the Prometheus alerts and the Grafana board of deploy: with a real
// Prometheus that scrapes real candidates, and against the definitions of the metrics.
package metrics
