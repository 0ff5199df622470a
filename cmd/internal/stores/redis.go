//go:build !no_redis

package stores

import "github.com/tenure-go/tenure/cmd/internal/stores/redisprefix"

func init() { kinds = append(kinds, redisprefix.Kind()) }
