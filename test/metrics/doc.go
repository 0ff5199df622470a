// Package metrics tests the alerts and the board of deploy: with a real Prometheus that scrapes
// real candidates, and against the definitions of the metrics.
package metrics
