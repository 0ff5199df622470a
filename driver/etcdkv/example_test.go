package etcdkv_test

import (
	"context"
	"log"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/etcdkv"
)

// Give the endpoints of all members of one cluster.
func Example() {
	store, err := etcdkv.Open(clientv3.Config{
		Endpoints: []string{"etcd-1:2379", "etcd-2:2379", "etcd-3:2379"},
	}, "/elections/")
	if err != nil {
		log.Fatal(err)
	}
	e, err := tenure.New(store, "billing", tenure.Config{ID: "node-1"})
	if err != nil {
		log.Fatal(err)
	}
	err = e.Run(context.Background(), func(ctx context.Context, _ *tenure.Term) error {
		<-ctx.Done() // the work
		return nil
	})
	if err != nil {
		log.Print(err)
	}
	if err := store.Close(); err != nil { // after Run has returned
		log.Print(err)
	}
}
