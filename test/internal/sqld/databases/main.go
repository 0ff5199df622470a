// Command databases runs database servers on 127.0.0.1 for use by hand, until it is interrupted:
// PostgreSQL with a streaming standby, PgBouncer in two modes, and MariaDB. It prints where they
// listen; docs/testing.md has the packages that it needs.
//
//	go run ./test/internal/sqld/databases
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/tenure-go/tenure/test/internal/sqld"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "databases:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	p, err := sqld.RunPostgres()
	defer p.End()
	if err != nil {
		return err
	}
	fmt.Println("PostgreSQL:           ", p.DSN("postgres", "postgres"))
	s, err := p.RunStandby()
	defer s.End()
	if err != nil {
		return err
	}
	fmt.Println("its standby:          ", s.DSN("postgres", "postgres"), "(promote it with SELECT pg_promote())")
	for _, mode := range []string{"session", "transaction"} {
		b, err := sqld.RunPgBouncer(p, mode)
		defer b.End()
		if err != nil {
			return err
		}
		fmt.Printf("PgBouncer, %-11s %s\n", mode+":", b.DSN("postgres", "postgres"))
	}
	m, err := sqld.RunMariaDB()
	defer m.End()
	if err != nil {
		return err
	}
	fmt.Println("MariaDB:              ", "mysql://root@"+m.Address()+"/mysql")
	<-ctx.Done()
	return nil
}
