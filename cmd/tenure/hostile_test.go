//go:build integration && unix

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tenure-go/tenure/cmd/internal/test/program"
	"github.com/tenure-go/tenure/cmd/internal/test/servers"
)

// asJSON returns the hostile text as it is within a JSON string.
func asJSON() string {
	return strings.NewReplacer("\x1b", `\u001b`, "\x07", `\u0007`, "\r", `\r`).Replace(program.Hostile)
}

// Every process that can write to the store controls the content of a record. A server controls its
// answers.
func TestForeignTextIsSanitized(t *testing.T) {
	t.Parallel()
	h := natsHome(t)
	evil := asJSON()
	more := fmt.Sprintf(`,"metadata":{"k%s":"v%s"},"request":{"term":7,"to":"x%s","by":"y%s"}`, evil, evil, evil, evil)
	held := strings.Replace(record("LEADER", 7, time.Hour, time.Now(), more), "LEADER", "node-1"+evil, 1)
	held = strings.Replace(held, "10.0.0.1:80", "h"+evil, 1)
	foreign := "node-1 " + program.Hostile
	malformed := strings.Replace(held, `"leaseMillis":3600000`, `"leaseMillis":-1`, 1)
	released := strings.Replace(held, `"request":`, `"released":true,"successor":"z`+evil+`","request":`, 1)
	for _, c := range []struct{ why, value string }{{"held", held}, {"foreign", foreign}, {"malformed", malformed}, {"released", released}} {
		for _, args := range [][]string{
			{"status"}, {"status", "--json"}, {"watch"}, {"watch", "--json"},
			{"hand-over", "--wait", "0", "--to", program.Hostile}, {"hand-over", "--wait", "1ms", "--to", program.Hostile, "--json"},
			{"reset", "--force"}, {"reset", "--force", "--json"}, {"reset", "--force=" + program.Hostile}, {program.Hostile}, {"status", "--" + program.Hostile},
		} {
			t.Run(c.why+" "+strings.Join(args[:min(len(args), 1)], ""), func(t *testing.T) {
				h.put(c.value)
				h := &home{t, h.url, h.store}
				var r result
				switch {
				case args[0] != "watch":
					r = h.says(args[0], args[1:]...)
				case len(args) > 1:
					r = h.watches(`"event":`, args[1:]...)
				default:
					r = h.watches("  ", args[1:]...) // after the time of day
				}
				program.Harmless(t, r.out+r.errs)
			})
		}
	}
	for _, format := range []string{"text", "json"} {
		h.put(held)
		w := h.wrap([]string{"--log-format", format, "--log-level", "debug"}, "true").start()
		w.says("node-1")
		w.signal(syscall.SIGTERM)
		w.ends(0)
		program.Harmless(t, w.errs.String())
	}
}

func TestServerTextIsSanitized(t *testing.T) {
	t.Parallel()
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, "<Error><Code>InvalidAccessKeyId</Code><Message>no &#x9b;31m\u202e\x7f</Message></Error>")
	}))
	t.Cleanup(refusing.Close)
	for name, store := range map[string]string{
		"NATS": "nats://" + servers.Rude(t) + "/E", "object storage": "s3://bucket?region=r&endpoint=" + refusing.URL,
		"no scheme": program.Hostile, "no bucket": "nats://h/" + program.Hostile,
	} {
		for _, command := range []string{"status", "watch", "hand-over", "run"} {
			t.Run(name+" "+command, func(t *testing.T) {
				t.Parallel()
				args := []string{command, "--store", store, "--election", "e"}
				switch command {
				case "run":
					args = append(args, "--connect-timeout", "100ms", "--", "true")
				default:
					args = append(args, "--connect-timeout", "0s", "--json")
				}
				w := tenureRuns(t, args...).start()
				_ = w.cmd.Wait()
				if code := w.cmd.ProcessState.ExitCode(); code <= 0 {
					t.Errorf("exit code %d", code)
				}
				program.Harmless(t, w.errs.String()+w.out.String())
			})
		}
	}
}
