package main

import (
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/tenure-go/tenure/driver/etcdkv"
)

func tenureOnEtcd(at place) (client, error) {
	s, err := etcdkv.Open(clientv3.Config{Endpoints: []string{at.Address()}}, at.Bucket)
	return withTenure(at, s, err)
}
