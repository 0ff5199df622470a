package redisprefix

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/redis/rueidis"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/redisstore"
)

// answer returns the error of a server that gives the same answer to everything, as the client
// reports it.
func answer(t *testing.T, text string) error {
	t.Helper()
	dial := func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
		client, server := net.Pipe()
		go func() {
			buf := make([]byte, 4096)
			for {
				if _, err := server.Read(buf); err != nil {
					return
				}
				if _, err := server.Write([]byte("-" + text + "\r\n")); err != nil {
					return
				}
			}
		}()
		return client, nil
	}
	c, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{"h:1"}, DialCtxFn: dial, ForceSingleClient: true, AlwaysRESP2: true, DisableCache: true, DisableRetry: true,
		ClientSetInfo: rueidis.DisableClientSetInfo,
	})
	if err != nil { // of the first PING
		return err
	}
	defer c.Close()
	return c.Do(t.Context(), c.B().Get().Key("k").Build()).Error()
}

// TestExplainAnswers has the answers of servers, each with its remedy. Those that may pass do not
// end tenure run.
func TestExplainAnswers(t *testing.T) {
	for _, c := range []struct {
		place        Place
		answer       string
		text, remedy string
		passes       bool
	}{
		{Place{}, "NOPERM User u has no permissions to run the 'hset' command", "the server refuses: ", "docs/redis.md", false},
		{Place{}, "NOAUTH Authentication required.", "Authentication required", "password-file=FILE", false},
		{Place{}, "WRONGPASS invalid username-password pair or user is disabled.", "invalid username-password pair", "REDISCLI_AUTH", false},
		{Place{}, "READONLY this server is a replica", "this server is a replica", "host of the primary", true},
		{Place{}, "MOVED 15523 h:2", "MOVED 15523 h:2", "cluster=true", false},
		{Place{}, "ASK 15523 h:2", "ASK 15523 h:2", "cluster=true", true},
		{Place{}, "CLUSTERDOWN The cluster is down", "CLUSTERDOWN", "CLUSTER INFO", true},
		{Place{}, "LOADING Redis is loading the dataset in memory", "LOADING", "has loaded", true},
		{Place{}, "MASTERDOWN Link with MASTER is down", "MASTERDOWN", "sentinel=NAME", true},
		{Place{}, "OOM command not allowed when used memory > 'maxmemory'", "OOM", "maxmemory", true},
		{Place{}, "MISCONF Redis is configured to save RDB snapshots", "MISCONF", "INFO persistence", true},
		{Place{}, "NOREPLICAS 0 of 2 replicas are connected", "0 of 2", "wait=N", true},
		{Place{}, "BUSY Redis is busy running a script", "BUSY", "SCRIPT KILL", true},
		{Place{}, "WRONGTYPE Operation against a key", "WRONGTYPE", "prefix=", false},
		{Place{Database: 99}, "ERR DB index is out of range", "there is no database 99", "databases", false},
		{Place{}, "ERR unknown command 'EVAL'", "scripts do not work", "EVAL_RO", false},
		{Place{Sentinel: "mymaster"}, "ERR unknown command 'SENTINEL'", "a host is no Sentinel", "26379", false},
		{Place{Sentinel: "mymaster"}, "IDONTKNOW No such master with that name", "the Sentinels name no primary \"mymaster\"", "SENTINEL MASTERS", true},
		{Place{}, "ERR else", "else", "", false},
	} {
		err := fmt.Errorf("redisstore: read key \"k\": %w", answer(t, c.answer))
		if code, _, _ := strings.Cut(c.answer, " "); code != "ERR" && redisstore.Code(err) != code {
			t.Errorf("%s: the code is %q", c.answer, redisstore.Code(err))
		}
		f := c.place.Explain(err)
		if !strings.Contains(f.Error(), c.text) || !strings.Contains(f.Hint, c.remedy) || (c.remedy == "") != (f.Hint == "") || f.Passing != c.passes {
			t.Errorf("%s: got %q, hint %q, passing: %t", c.answer, f, f.Hint, f.Passing)
		}
		denied := c.place.Explain(fmt.Errorf("%w: %w", driver.ErrDenied, err))
		if strings.HasPrefix(c.answer, "NOPERM") && !errors.Is(denied, driver.ErrDenied) {
			t.Errorf("%s: %v does not wrap driver.ErrDenied", c.answer, denied)
		}
	}
}

// TestExplainFailures has errors without an answer of a server.
func TestExplainFailures(t *testing.T) {
	for _, c := range []struct {
		err          error
		text, remedy string
		passes       bool
	}{
		{fmt.Errorf("%w: 0 of 1", redisstore.ErrReplicas), "0 of 1", "wait=N", true},
		{&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, "the server's certificate is not accepted", "tls-ca=FILE", false},
		{tls.RecordHeaderError{Msg: "no"}, "does not speak TLS", "redis://", false},
		{rueidis.ErrNoAddr, "the Sentinels name no primary", "sentinel=NAME", true},
		{&net.OpError{Op: "dial", Err: errors.New("refused")}, "the server does not answer", "host and port", true},
		{context.DeadlineExceeded, "the server does not answer", "accepts connections", true},
		{errors.New("else"), "else", "", false},
	} {
		f := new(Place).Explain(fmt.Errorf("redisstore: connect: %w", c.err))
		if !strings.Contains(f.Error(), c.text) || !strings.Contains(f.Hint, c.remedy) || f.Passing != c.passes {
			t.Errorf("%v: got %q, hint %q, passing: %t", c.err, f, f.Hint, f.Passing)
		}
	}
}
