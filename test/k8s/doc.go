// Package k8s tests what only the store on Kubernetes has: its electors beside those of client-go.
package k8s
