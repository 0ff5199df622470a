//go:build !no_etcd

package stores

import "github.com/tenure-go/tenure/cmd/internal/stores/etcdprefix"

func init() { kinds = append(kinds, etcdprefix.Kind()) }
