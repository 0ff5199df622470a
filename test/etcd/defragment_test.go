//go:build integration

package etcd

import (
	"context"
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/etcdd"
	"github.com/tenure-go/tenure/test/internal/rig"
)

// BenchmarkDefragmentation measures the longest write while etcd defragments its database. Run it
// with -benchtime 1x.
func BenchmarkDefragmentation(b *testing.B) {
	for _, megabytes := range []int{125, 500} {
		b.Run(fmt.Sprintf("MB=%d", megabytes), func(b *testing.B) {
			s := etcdd.One(b)
			store, operator := s.Direct(b), etcdd.Operator(b, s.Cluster)
			ctx := wait.Context(b)
			value := make([]byte, 1e6)
			for i := range megabytes {
				_, _ = rand.Read(value) // it never fails
				_, err := operator.Put(ctx, fmt.Sprint("fill/", i), string(value))
				rig.Must(b, err)
			}
			version, err := store.CompareAndSwap(ctx, key, "", []byte("0"))
			rig.Must(b, err)
			longest := time.Duration(0)
			for b.Loop() {
				defragmented := make(chan error, 1)
				go func() {
					_, err := operator.Defragment(context.WithoutCancel(ctx), s.Servers[0].Address())
					defragmented <- err
				}()
				for n, done := 0, false; !done; n++ {
					began := time.Now()
					version, err = store.CompareAndSwap(ctx, key, version, fmt.Append(nil, n))
					rig.Must(b, err)
					longest = max(longest, time.Since(began))
					select {
					case err := <-defragmented:
						rig.Must(b, err)
						done = true
					default:
					}
				}
			}
			b.ReportMetric(longest.Seconds(), "s/longest-write")
		})
	}
}
