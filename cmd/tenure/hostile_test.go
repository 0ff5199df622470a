//go:build integration && unix

package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"
)

// hostile does things to a terminal, each of them in another way.
const hostile = "\x1b[31m \x07\r \x7f \u009b31m \u202e \u2066 \u200f \u2028 \U000e0041"

// asJSON is that within a string of JSON.
func asJSON() string {
	return strings.NewReplacer("\x1b", `\u001b`, "\x07", `\u0007`, "\r", `\r`).Replace(hostile)
}

// harmless checks that all that is written is printed by a terminal, in lines, and nothing else.
func harmless(t *testing.T, text string) {
	t.Helper()
	if text == "" {
		t.Error("nothing is written")
	}
	for i, r := range text {
		if r != '\n' && !unicode.IsPrint(r) {
			t.Errorf("%U in %q", r, text[max(0, i-60):min(len(text), i+20)])
			return
		}
	}
}

// Anybody who can write to the store decides what is in a record, and a server what it answers.
func TestNothingFromOutsideReachesTheTerminalAsItIs(t *testing.T) {
	t.Parallel()
	h := natsHome(t)
	evil := asJSON()
	more := fmt.Sprintf(`,"metadata":{"k%s":"v%s"},"request":{"term":7,"to":"x%s","by":"y%s"}`, evil, evil, evil, evil)
	held := strings.Replace(record("LEADER", 7, time.Hour, time.Now(), more), "LEADER", "node-1"+evil, 1)
	held = strings.Replace(held, "10.0.0.1:80", "h"+evil, 1)
	foreign := "node-1 " + hostile
	malformed := strings.Replace(held, `"leaseMillis":3600000`, `"leaseMillis":-1`, 1)
	released := strings.Replace(held, `"request":`, `"released":true,"successor":"z`+evil+`","request":`, 1)
	for _, c := range []struct{ why, value string }{{"held", held}, {"foreign", foreign}, {"malformed", malformed}, {"released", released}} {
		for _, args := range [][]string{
			{"status"}, {"status", "--json"}, {"watch"}, {"watch", "--json"},
			{"hand-over", "--wait", "0", "--to", hostile}, {"hand-over", "--wait", "1ms", "--to", hostile, "--json"},
			{"reset", "--force"}, {"reset", "--force", "--json"}, {"reset", "--force=" + hostile}, {hostile}, {"status", "--" + hostile},
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
				harmless(t, r.out+r.errs)
			})
		}
	}
	for _, format := range []string{"text", "json"} {
		h.put(held)
		w := h.wrap([]string{"--log-format", format, "--log-level", "debug"}, "true").start()
		w.says("node-1")
		w.signal(syscall.SIGTERM)
		w.ends(0)
		harmless(t, w.errs.String())
	}
}

func TestNothingThatAServerSaysReachesTheTerminalAsItIs(t *testing.T) {
	t.Parallel()
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, "<Error><Code>InvalidAccessKeyId</Code><Message>no &#x9b;31m\u202e\x7f</Message></Error>")
	}))
	t.Cleanup(refusing.Close)
	for name, store := range map[string]string{
		"NATS": "nats://" + rude(t) + "/E", "object storage": "s3://bucket?region=r&endpoint=" + refusing.URL,
		"no scheme": hostile, "no bucket": "nats://h/" + hostile,
	} {
		for _, command := range []string{"status", "watch", "hand-over", "demo", "run"} {
			t.Run(name+" "+command, func(t *testing.T) {
				t.Parallel()
				args := []string{command, "--store", store, "--election", "e"}
				switch command {
				case "run":
					args = append(args, "--connect-timeout", "100ms", "--", "true")
				case "demo":
				default:
					args = append(args, "--connect-timeout", "0s", "--json")
				}
				w := tenureRuns(t, args...).start()
				_ = w.cmd.Wait()
				if code := w.cmd.ProcessState.ExitCode(); code <= 0 {
					t.Errorf("exit code %d", code)
				}
				harmless(t, w.errs.String()+w.out.String())
			})
		}
	}
}

// rude is a server of NATS that says something before anybody has logged in.
func rude(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			go func() {
				fmt.Fprint(c, `INFO {"server_id":"x","version":"2.12.0","max_payload":1048576,"headers":true}`+"\r\n")
				_, _ = c.Read(make([]byte, 4096))
				fmt.Fprint(c, "-ERR 'no \x1b[31m \u009b31m \u202e \x7f'\r\n")
				_, _ = io.Copy(io.Discard, c)
				_ = c.Close()
			}()
		}
	}()
	return l.Addr().String()
}
