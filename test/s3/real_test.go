//go:build integration

package s3

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/s3object"
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
				if errors.Is(ev.Cause, driver.ErrUnfit) {
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
		store := s3d.NewStore(t, url, bucket)
		if err := store.CheckRights(wait.Context(t), "billing"); !errors.Is(err, driver.ErrUnfit) {
			t.Errorf("the check of rights: %v", err)
		}
		if e, err := store.Read(wait.Context(t), "billing"); err != nil || !e.Absent() {
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
			if !errors.As(err, &wrong) || wrong.Fields[0].Field != "Name" || !strings.Contains(err.Error(), "of at most 255") {
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

// TestRealEnvironment: the variables of AWS's own tools are enough.
func TestRealEnvironment(t *testing.T) {
	eachReal(t, []s3d.Kind{s3d.Versity}, func(t *testing.T, server *s3d.Server) {
		for name, value := range map[string]string{
			"AWS_ENDPOINT_URL": server.URLs()[0], "AWS_REGION": s3d.Region,
			"AWS_ACCESS_KEY_ID": s3d.Access, "AWS_SECRET_ACCESS_KEY": s3d.Secret, "AWS_SESSION_TOKEN": "",
			"AWS_PROFILE": "", "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
		} {
			t.Setenv(name, value)
		}
		store, err := s3object.FromEnvironment(wait.Context(t), server.Bucket(t), s3object.WithPrefix("elections"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.CompareAndSwap(wait.Context(t), "cell", "", []byte("first")); err != nil {
			t.Fatal(err)
		}
		if e, err := store.Read(wait.Context(t), "cell"); err != nil || string(e.Value) != "first" {
			t.Errorf("read %q (%v)", e.Value, err)
		}
	})
}

// TestRealInspectPasses: users ignore a warning that always appears.
func TestRealInspectPasses(t *testing.T) {
	eachReal(t, s3d.Sound(), func(t *testing.T, server *s3d.Server) {
		for _, f := range inspectReal(t, server) {
			t.Log(f)
			if f.Severity == driver.Unsafe {
				t.Errorf("unsafe is only what can make two leaders, and %s cannot", server.Kind)
			}
		}
	})
}

// TestRealInspectWarns covers servers that ignore conditions, and one that checks them and then
// writes.
func TestRealInspectWarns(t *testing.T) {
	eachReal(t, []s3d.Kind{s3d.Rclone, s3d.Azurite, s3d.Stub}, func(t *testing.T, server *s3d.Server) {
		if server.Kind == s3d.Azurite {
			sequentially(t, server)
		}
		unsafe := 0
		for _, f := range inspectReal(t, server) {
			t.Log(f)
			if f.Severity == driver.Unsafe {
				unsafe++
			}
		}
		if unsafe == 0 {
			t.Errorf("two can lead on %s at once, and no finding reports it", server.Kind)
		}
	})
}

func inspectReal(t *testing.T, server *s3d.Server) []driver.Finding {
	t.Helper()
	bucket := server.Bucket(t)
	found, err := s3d.NewStore(t, server.URLs()[0], bucket).Inspect(wait.Context(t), 15*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	leavesNothing(t, server, bucket)
	return found
}

// leavesNothing requires that an inspection removed its objects.
func leavesNothing(t *testing.T, server *s3d.Server, bucket string) {
	t.Helper()
	all, err := s3d.Client(server.URLs()[0]).ListObjectsV2(wait.Context(t), &s3.ListObjectsV2Input{Bucket: &bucket})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range all.Contents {
		t.Errorf("the inspection left %q behind", aws.ToString(o.Key))
	}
}

// sequentially requires that a server honors conditions while no other client writes, so that only
// a race shows the fault.
func sequentially(t *testing.T, server *s3d.Server) {
	t.Helper()
	ctx, store := wait.Context(t), s3d.NewStore(t, server.URLs()[0], server.Bucket(t))
	first, err := store.CompareAndSwap(ctx, "cell", "", []byte("first"))
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	if _, err := store.CompareAndSwap(ctx, "cell", "", []byte("again")); !errors.Is(err, driver.ErrConflict) {
		t.Fatalf("a second create: %v, want a conflict", err)
	}
	if _, err := store.CompareAndSwap(ctx, "cell", first, []byte("second")); err != nil {
		t.Fatalf("swap: %v", err)
	}
	if _, err := store.CompareAndSwap(ctx, "cell", first, []byte("late")); !errors.Is(err, driver.ErrConflict) {
		t.Fatalf("a late swap: %v, want a conflict", err)
	}
}

// TestMain lets more tests run in parallel than there are processors, because the tests mostly
// wait.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// eachReal runs a test on each of these servers, one after another. They are programs of other
// projects, which are fetched and compiled when they are first needed. The short pass is on two.
func eachReal(t *testing.T, kinds []s3d.Kind, run func(*testing.T, *s3d.Server)) {
	t.Helper()
	for _, k := range kinds {
		t.Run(string(k), func(t *testing.T) {
			if testing.Short() && k != s3d.Versity && k != s3d.Stub {
				t.Skip("the soak does it")
			}
			run(t, s3d.Start(t, k))
		})
	}
}
