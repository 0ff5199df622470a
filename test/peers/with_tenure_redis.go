package main

import (
	"context"

	"github.com/redis/rueidis"

	"github.com/tenure-go/tenure/driver/redisstore"
)

func tenureOnRedis(at place) (client, error) {
	s, err := redisstore.Open(context.Background(), rueidis.ClientOption{InitAddress: []string{at.Address()}},
		redisstore.WithPrefix(at.Bucket+":"))
	return withTenure(at, s, err)
}
