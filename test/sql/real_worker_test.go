//go:build integration

package sql

import (
	"database/sql"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/internal/test/ports"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/command"
	"github.com/tenure-go/tenure/test/internal/sqld"
)

// crew is two processes of examples/worker, and the table of their jobs.
type crew struct {
	*testing.T
	binary    string
	dsn       string
	db        *sql.DB
	addresses [2]string
	processes [2]*command.Process
}

// TestRealWorkerSurvivesRestarts: the worker of the examples does all jobs while its processes and
// the server are restarted, and the tokens never fall.
func TestRealWorkerSurvivesRestarts(t *testing.T) {
	t.Parallel()
	p := sqld.StartPostgres(t)
	dsn := p.DSN("postgres", "postgres")
	c := newCrew(t, dsn)
	c.start(0)
	c.start(1)
	first := c.works()

	leader := c.leader()
	c.stop(leader)
	c.start(leader)
	second := c.works()
	if second <= first {
		t.Errorf("after a hand-over the token is %d, before it was %d", second, first)
	}

	must(t, p.Stop())
	wait.Until(t, "health checks notice the outage", func() bool { return c.ready() == 0 })
	must(t, p.Start())
	if third := c.works(); third < second {
		t.Errorf("after a restart of the server the token is %d, before it was %d", third, second)
	}
	wait.Until(t, "health checks notice the end of the outage", func() bool { return c.ready() == 2 })
	c.stop(0)
	c.stop(1)
}

func newCrew(t *testing.T, dsn string) *crew {
	t.Helper()
	c := &crew{T: t, binary: filepath.Join(t.TempDir(), "worker"), dsn: dsn, db: sqld.Open(t, "pgx", dsn)}
	if out, err := exec.Command("go", "build", "-o", c.binary, "github.com/tenure-go/tenure/examples/worker").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	free, err := ports.Free(len(c.addresses))
	must(t, err)
	for i, port := range free {
		c.addresses[i] = ports.Address(port)
	}
	return c
}

func (c *crew) start(index int) {
	c.Helper()
	c.processes[index] = command.Start(c, "env", "DATABASE_URL="+c.dsn, c.binary, "-listen", c.addresses[index])
}

// stop asks a process to end, and waits until it has done so without an error.
func (c *crew) stop(index int) {
	c.Helper()
	must(c, c.processes[index].Stop())
	must(c, c.processes[index].Wait())
}

// works adds a job and returns the token of the leader that does it.
func (c *crew) works() (token uint64) {
	c.Helper()
	var id int
	wait.Until(c, "a job can be added", func() bool {
		return c.db.QueryRow("INSERT INTO jobs DEFAULT VALUES RETURNING id").Scan(&id) == nil
	})
	wait.Until(c, "the job is done", func() bool {
		return c.db.QueryRow("SELECT done_by FROM jobs WHERE id = $1", id).Scan(&token) == nil
	})
	return token
}

// leader waits until a process leads, and returns its index.
func (c *crew) leader() (index int) {
	c.Helper()
	wait.Until(c, "a process leads", func() bool {
		index = slices.IndexFunc(c.addresses[:], func(address string) bool {
			ok, text := health(address)
			return ok && strings.HasPrefix(text, "leader,")
		})
		return index >= 0
	})
	return index
}

// ready returns how many processes could lead.
func (c *crew) ready() (n int) {
	for _, address := range c.addresses {
		if ok, _ := health(address); ok {
			n++
		}
	}
	return n
}

func health(address string) (ok bool, text string) {
	answer, err := http.Get("http://" + address)
	if err != nil {
		return false, err.Error()
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return err == nil && answer.StatusCode == http.StatusOK, string(body)
}
