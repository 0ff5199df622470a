// Package operator tests an operator of Kubernetes that is built with controller-runtime and elects
// on another store, by package adapt/clientgo.
package operator
