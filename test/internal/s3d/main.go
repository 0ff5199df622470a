// Command s3d installs and starts a server that speaks S3, for use by hand. It stops the server
// when it is interrupted:
//
//	go run ./test/internal/s3d versity|versity2|minio|rclone|azurite|stub [-port N] [-dir DIR]
//
// It can also only install servers, all or the named ones, so that tests need not spend their time
// on that:
//
//	go run ./test/internal/s3d install [versity ...]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/tenure-go/tenure/test/internal/s3d/s3d"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "s3d:", err)
		os.Exit(1)
	}
}

// bucket is the bucket that the command creates.
const bucket = "tenure"

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("s3d", flag.ContinueOnError)
	port := flags.Int("port", 0, "the `port` on 127.0.0.1; 0 is a free one")
	dir := flags.String("dir", "", "the `directory` for the data, which stays; none is a temporary one")
	flags.Usage = func() {
		fmt.Fprintf(flags.Output(), "s3d [KIND] [-port N] [-dir DIR] starts a server, and s3d install [KIND ...] installs some. KIND is one of %v.\n", s3d.Kinds())
		flags.PrintDefaults()
	}
	if len(args) > 0 && args[0] == "install" {
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		return install(ctx, flags.Args())
	}
	kind := s3d.Versity
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		k, err := s3d.KindOf(args[0])
		if err != nil {
			return err
		}
		kind, args = k, args[1:]
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	return serve(ctx, kind, *dir, *port)
}

func install(ctx context.Context, names []string) error {
	if len(names) == 0 {
		return s3d.Install(ctx, s3d.Kinds()...)
	}
	for _, name := range names {
		k, err := s3d.KindOf(name)
		if err != nil {
			return err
		}
		if err := s3d.Install(ctx, k); err != nil {
			return err
		}
	}
	return nil
}

func serve(ctx context.Context, kind s3d.Kind, dir string, port int) error {
	if dir == "" {
		temporary, err := os.MkdirTemp("", "s3d-")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(temporary) }()
		dir = temporary
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	s, err := s3d.Open(ctx, kind, dir, port)
	if err != nil {
		return err
	}
	defer s.Stop()
	if err := s.CreateBucket(ctx, bucket); err != nil && !strings.Contains(err.Error(), "BucketAlready") {
		return err
	}
	describe(s)
	<-ctx.Done()
	return nil
}

func describe(s *s3d.Server) {
	fmt.Printf("%s answers; bucket %s; interrupt to stop.\n\n", s.Kind, bucket)
	for _, url := range s.URLs() {
		fmt.Printf("export AWS_ENDPOINT_URL=%s AWS_REGION=%s AWS_ACCESS_KEY_ID=%s AWS_SECRET_ACCESS_KEY=%s\n",
			url, s3d.Region, s3d.Access, s3d.Secret)
	}
}
