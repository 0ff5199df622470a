//go:build !no_kubernetes

package stores

import "github.com/tenure-go/tenure/cmd/internal/stores/k8snamespace"

func init() { kinds = append(kinds, k8snamespace.Kind()) }
