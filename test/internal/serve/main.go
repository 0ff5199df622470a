// Command serve starts the servers of a store on 127.0.0.1, for use by hand. It prints how clients
// reach them, and ends them when it is interrupted:
//
//	go run ./test/internal/serve KIND [-dir DIR]
//
// KIND is the name of a rig, such as nats3, postgres, versity or kafka, or of another server of
// object storage. Each line of the input acts on one of the servers, counted from 1:
//
//	pause 1
//
// The command can also only install the programs of servers, so that tests need not spend their
// time on that; s3 stands for all servers of object storage, and databases for the newer ones:
//
//	go run ./test/internal/serve install KIND
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/tenure-go/tenure/test/internal/etcdd"
	"github.com/tenure-go/tenure/test/internal/kafkad/kafkad"
	"github.com/tenure-go/tenure/test/internal/natsd"
	"github.com/tenure-go/tenure/test/internal/rig"
	"github.com/tenure-go/tenure/test/internal/rigs"
	"github.com/tenure-go/tenure/test/internal/s3d/s3d"
	"github.com/tenure-go/tenure/test/internal/sqld"
)

func main() {
	natsd.Main()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "serve:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 2 && args[0] == "install":
		return install(ctx, args[1])
	case len(args) == 0 || kind(args[0]).Start == nil:
		return fmt.Errorf("it is: install KIND | KIND [-dir DIR], where KIND is one of %s", strings.Join(names(), ", "))
	}
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	dir := flags.String("dir", "", "the `directory` for files, which stay; none is a temporary one")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	return serve(ctx, kind(args[0]), *dir)
}

// kind returns the kind with a name. It is zero if there is none. The servers of a cluster can be
// cut off.
func kind(name string) rig.Kind {
	if k, err := s3d.KindOf(name); err == nil {
		return s3d.ForPrograms(k)
	}
	if name == "nats3" {
		return natsd.Clustered(natsd.StartPartible)
	}
	return rigs.Kind(name)
}

func names() (all []string) {
	for _, k := range s3d.Kinds() {
		all = append(all, string(k))
	}
	for _, r := range rigs.All() {
		if r.Kind.Start != nil && !slices.Contains(all, r.Name) {
			all = append(all, r.Name)
		}
	}
	return all
}

func install(ctx context.Context, name string) error {
	switch name {
	case "etcd":
		_, err := etcdd.Install(ctx)
		return err
	case "kafka":
		_, err := kafkad.Install(ctx)
		return err
	case "databases":
		return sqld.Install(ctx)
	case "s3":
		return s3d.Install(ctx, s3d.Kinds()...)
	}
	k, err := s3d.KindOf(name)
	if err != nil {
		return err
	}
	return s3d.Install(ctx, k)
}

func serve(ctx context.Context, k rig.Kind, dir string) (err error) {
	if dir == "" {
		if dir, err = os.MkdirTemp("", "serve-"); err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(dir) }()
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	on, err := k.Start(ctx, dir)
	if err != nil {
		return err
	}
	defer on.End()
	fmt.Println(strings.Join(on.Addresses(), ","))
	if k.URL != nil {
		address := on.Addresses()[0]
		fmt.Println("export", strings.Join(append(k.Environ(address), "TENURE_STORE='"+k.URL(address)+"'"), " "))
	}
	each := []rig.Server{on}
	if several, ok := on.(interface{ Each() []rig.Server }); ok {
		each = several.Each()
	}
	go obey(os.Stdin, each)
	<-ctx.Done()
	return nil
}

// call returns a command that only members of a cluster of NATS have.
func call(do func(natsd.Member)) func(rig.Server) error {
	return func(s rig.Server) error {
		m, ok := s.(natsd.Member)
		if !ok {
			return errors.ErrUnsupported
		}
		do(m)
		return nil
	}
}

// obey carries out the lines of the input, and says so.
func obey(in io.Reader, servers []rig.Server) {
	commands := map[string]func(rig.Server) error{
		"stop": rig.Server.Stop, "kill": rig.Server.Kill, "start": rig.Server.Start,
		"pause": rig.Server.Pause, "resume": rig.Server.Resume,
		"part": call(natsd.Member.Part), "heal": call(natsd.Member.Heal),
	}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var word string
		var n int
		_, err := fmt.Sscan(lines.Text(), &word, &n)
		do := commands[word]
		if err != nil || do == nil || n < 1 || n > len(servers) {
			err = errors.New("not one of stop, kill, start, pause, resume, part, heal, and the number of a server")
		} else {
			err = do(servers[n-1])
		}
		said := "done"
		if err != nil {
			said = err.Error()
		}
		fmt.Fprintln(os.Stderr, lines.Text()+":", said)
	}
}
