//go:build integration

package s3

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/s3d/s3d"
)

// TestRealCarelessServerElectsNobody: on a server that ignores conditions, candidates report that
// and do not lead. Without the check they lead: both, if they claim at once.
func TestRealCarelessServerElectsNobody(t *testing.T) {
	eachReal(t, []s3d.Kind{s3d.Rclone, s3d.Stub}, func(t *testing.T, server *s3d.Server) {
		bucket, url := server.Bucket(t), server.URLs()[0]
		ctx, cancel := context.WithCancel(wait.Context(t))
		var all sync.WaitGroup
		defer all.Wait()
		defer cancel()
		reports := make(chan string)
		for _, id := range []string{"a", "b"} {
			e, err := tenure.New(s3d.NewStore(t, url, bucket), "billing", tenure.Config{ID: id, OnEvent: func(ev tenure.Event) {
				if errors.Is(ev.Cause, tenure.ErrUnfit) {
					select {
					case reports <- id:
					case <-ctx.Done():
					}
				}
			}})
			if err != nil {
				t.Fatal(err)
			}
			all.Go(func() {
				if term, err := e.Campaign(ctx); err == nil {
					t.Errorf("%s is elected with token %d", id, term.Token())
					cancel()
				}
			})
		}
		// The third report comes after two refused tries.
		for told := map[string]int{}; ctx.Err() == nil && (told["a"] < 3 || told["b"] < 3); {
			select {
			case id := <-reports:
				told[id]++
			case <-ctx.Done():
			}
		}
		if e, err := s3d.NewStore(t, url, bucket).Read(wait.Context(t), "billing"); err != nil || !e.Absent() {
			t.Errorf("the cell holds %q (%v)", e.Value, err)
		}
	})
}

// contenders is the number of processes that write at once.
const contenders = 16

// TestRealFirstWritesOfManyProcesses: they check at once, and none takes the others for a fault of
// the server.
func TestRealFirstWritesOfManyProcesses(t *testing.T) {
	eachReal(t, s3d.Sound(), func(t *testing.T, server *s3d.Server) {
		urls := server.URLs()
		for range 20 {
			bucket := server.Bucket(t)
			var all sync.WaitGroup
			for i := range contenders {
				store := s3d.NewStore(t, urls[i%len(urls)], bucket)
				all.Go(func() {
					if _, err := store.CompareAndSwap(wait.Context(t), fmt.Sprint("cell", i), "", []byte("value")); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			keys, err := s3d.NewStore(t, urls[0], bucket).Keys(wait.Context(t))
			if err != nil || len(keys) != contenders {
				t.Errorf("%d elections are listed, of %d (%v)", len(keys), contenders, err)
			}
		}
	})
}

// TestRealLongNames: a server holds the longest names that the driver accepts, and the driver
// refuses longer ones itself.
func TestRealLongNames(t *testing.T) {
	eachReal(t, s3d.Sound(), func(t *testing.T, server *s3d.Server) {
		store := s3d.NewStore(t, server.URLs()[0], server.Bucket(t))
		long := func(parts, bytes int) string {
			return strings.Repeat(strings.Repeat("p", 255)+"/", parts) + strings.Repeat("k", bytes)
		}
		for _, name := range []string{long(0, 255), long(3, 255), strings.Repeat("é", 127), strings.Repeat(strings.Repeat("p", 245)+"/", 4) + "k"} {
			if _, err := store.CompareAndSwap(wait.Context(t), name, "", []byte("value")); err != nil {
				t.Errorf("%d bytes: %v", len(name), err)
			}
			if e, err := store.Read(wait.Context(t), name); err != nil || string(e.Value) != "value" {
				t.Errorf("%d bytes: read %q (%v)", len(name), e.Value, err)
			}
		}
		for _, name := range []string{long(0, 256), long(0, 300), long(1, 300)} {
			_, err := tenure.New(store, name, tenure.Config{ID: "a"})
			var wrong *tenure.ConfigError
			if !errors.As(err, &wrong) || wrong.Field != "Name" || !strings.Contains(err.Error(), "of at most 255") {
				t.Errorf("%d bytes: %v", len(name), err)
			}
		}
	})
}

// TestRealPaths: if "a" is a file, "a/b" cannot exist. That must not look like another candidate's
// success, and must harm neither.
func TestRealPaths(t *testing.T) {
	eachReal(t, []s3d.Kind{s3d.Versity}, func(t *testing.T, server *s3d.Server) {
		ctx, store := wait.Context(t), s3d.NewStore(t, server.URLs()[0], server.Bucket(t))
		for _, pair := range [][2]string{{"file", "file/below"}, {"folder/file", "folder"}} {
			version, err := store.CompareAndSwap(ctx, pair[0], "", []byte("first"))
			if err != nil {
				t.Fatal(err)
			}
			if e, err := store.Read(ctx, pair[1]); err != nil || !e.Absent() {
				t.Errorf("%q beside %q holds %q (%v), want nothing", pair[1], pair[0], e.Value, err)
			}
			_, err = store.CompareAndSwap(ctx, pair[1], "", []byte("second"))
			t.Logf("%q beside %q: %v", pair[1], pair[0], err)
			if err == nil || errors.Is(err, driver.ErrConflict) {
				t.Errorf("%q beside %q: %v, want an error that is no conflict", pair[1], pair[0], err)
			}
			if e, err := store.Read(ctx, pair[0]); err != nil || e.Version != version {
				t.Errorf("%q holds %q now (%v)", pair[0], e.Value, err)
			}
		}
	})
}
