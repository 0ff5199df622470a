//go:build integration && unix

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"github.com/tenure-go/tenure/cmd/internal/test/program"
)

// asJSON returns the hostile text as it is within a JSON string.
func asJSON() string {
	return strings.NewReplacer("\x1b", `\u001b`, "\x07", `\u0007`, "\r", `\r`).Replace(program.Hostile)
}

// Every process that can write to the store controls the content of a record. A server controls its
// answers.
func TestForeignTextIsSanitized(t *testing.T) {
	t.Parallel()
	h := newHome(t)
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
				var r program.Result
				switch {
				case args[0] != "watch":
					r = h.says(args[0], args[1:]...)
				case len(args) > 1:
					r = h.watches(`"event":`, args[1:]...)
				default:
					r = h.watches("  ", args[1:]...) // after the time of day
				}
				program.Harmless(t, r.Out+r.Errs)
			})
		}
	}
	for _, format := range []string{"text", "json"} {
		h.put(held)
		w := h.wrap([]string{"--log-format", format, "--log-level", "debug"}, "true").Start()
		w.Says("node-1")
		w.Stops(0)
		program.Harmless(t, w.Errs.String())
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
		"NATS": "nats://" + program.Rude(t) + "/E", "object storage": "s3://bucket?region=r&endpoint=" + refusing.URL,
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
				w := tenureRuns(t, args...).Start()
				_ = w.Cmd.Wait()
				if code := w.Cmd.ProcessState.ExitCode(); code <= 0 {
					t.Errorf("exit code %d", code)
				}
				program.Harmless(t, w.Errs.String()+w.Out.String())
			})
		}
	}
}

// marker stands for a secret. No output may have a part of it.
const (
	marker   = "QZXJ"
	fragment = "ZXJ"
)

// passwords are those that URLs do not hold as they are, and some that they do.
var passwords = []string{
	marker, "pa@" + marker, marker + "@rt", "pa/" + marker, "pa?" + marker, "pa?" + marker + "=1", "pa#" + marker, "pa:" + marker, "pa," + marker,
	"pa&" + marker + "=1", "pa;" + marker, "pa " + marker, "pa%" + marker, "pa%zz" + marker, "pa%40" + marker, "%51" + fragment, "'" + marker + "'",
	`"` + marker + `"`, "[" + marker + "]", "{" + marker + "}", "`: " + marker, "pa//" + marker, "pa://" + marker, marker + "==",
}

// shapes are what people paste, with PW for the password. Nothing listens at port 1.
var shapes = []string{
	"nats://u:PW@127.0.0.1:1/E", "nats://PW@127.0.0.1:1/E", "tls://u:PW@127.0.0.1:1/E", "nats://127.0.0.1:1,u:PW@127.0.0.1:1/E",
	"nats://u:PW@127.0.0.1:1,nats://u:PW@127.0.0.1:1/E", "nats://u:PW", "nats://u:PW/E", "nats:u:PW@127.0.0.1/E",
	"postgres://u:PW@127.0.0.1:1/db", "postgresql://u:PW@127.0.0.1:1,127.0.0.1:1/db", "postgres://u:PW", "postgres:u:PW@h/db",
	"postgres://127.0.0.1:1/db?password=PW", "postgres://127.0.0.1:1/db?user=u&password=PW", "postgresql://127.0.0.1:1/db?sslpassword=PW",
	"postgresql+psycopg2://u:PW@h/db", "host=127.0.0.1 port=1 password=PW dbname=x", "host=127.0.0.1 password='PW' user=u", "password=PW",
	"jdbc:postgresql://h/db?user=u&password=PW", "jdbc:postgresql://u:PW@h/db", "jdbc:mysql://h/db?password=PW", "jdbc:sqlserver://h;password=PW",
	"mysql://u:PW@127.0.0.1:1/db", "mariadb://u:PW@127.0.0.1:1/db", "mysql://127.0.0.1:1/db?password=PW", "mysql+pymysql://u:PW@h/db",
	"u:PW@tcp(127.0.0.1:1)/db", "u:PW@unix(/s)/db", "u:PW@/db", "u:PW@127.0.0.1:1/db",
	"sqlite://u:PW@h/db", "sqlite:e.db?_auth_pass=PW", "sqlite:e.db?key=PW",
	"redis://:PW@h1:26379,h2:26379/main", "redis+sentinel://u:PW@h1:26379,h2/main", "sentinel://PW@h1", "h1:26379,h2:26379,password=PW", "main,PW@h1:26379",
	"s3://id:PW@bucket", "s3://PW:x@bucket", "s3://bucket?secret_access_key=PW", "s3://bucket?region=r&AWS_SECRET_ACCESS_KEY=PW",
	"s3://bucket?endpoint=http://id:PW@127.0.0.1:1", "s3://bucket?endpoint=http%3A//id:PW%40127.0.0.1:1", "s3://bucket?endpoint=http://127.0.0.1:1/?X-Amz-Signature=PW",
	"https://id:PW@s3.example/bucket", "https://bucket.s3.example/?X-Amz-Signature=PW",
	"kafka://u:PW@127.0.0.1:1/t", "kafka://127.0.0.1:1,u:PW@127.0.0.1:1/t", "kafka://127.0.0.1:1/t?sasl.password=PW", "SASL_SSL://u:PW@h:9092",
	`sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="PW";`,
	"postgres://h/app user=cand password=PW", "postgres://h/app;password=PW", "postgres://h/app:u:PW", "mysql://h/app;password=PW", "mysql://h/app password=PW",
	"sqlite:/x;password=PW", "sqlite:/x password=PW", "nats://127.0.0.1:1/B;token=PW", "kafka://127.0.0.1:1/t;password=PW", "s3://bucket/p;secret=PW",
	"mysql://127.0.0.1:1/db?table=a;PW",
	"postgres://127.0.0.1:1,u:PW@127.0.0.1:1/db", "postgres://:PW@127.0.0.1:1/db", "mysql://u:PW@127.0.0.1:1/db?tls=x",
	"etcd://u:PW@h", "mongodb+srv://u:PW@h/db", "amqp://u:PW@h/v", "PW@h",
}

// places are the settings in which a text may land, as the last argument or as a variable of the
// environment, whose name ends in =.
var places = []string{
	"status --election e --connect-timeout 0 --store", "TENURE_STORE=", "run --election e --connect-timeout 0 -- ./none --store", "watch --connect-timeout 0 --election e --store",
	"status --election e --context", "TENURE_CONTEXT=",
	"run --store s3://bucket?region=r --election e --peer", "run --store s3://bucket?region=r --election e --peer 127.0.0.1:0 --peer-address",
	"run --store s3://bucket?region=r --election e --peer 127.0.0.1:0 --peer-allow", "run --store nats://127.0.0.1:1/E --election e --metrics",
	"status --store kafka://127.0.0.1:1/t --election e --connect-timeout 0 --kafka-properties", "dashboard --store nats://127.0.0.1:1/E --member-token-file none --member",
	"run --store nats://127.0.0.1:1/E --lease", "status --store nats://127.0.0.1:1/E --json --wait", "status --store nats://127.0.0.1:1/E --election e", "",
	"run --store nats://127.0.0.1:1/E --election e",
}

// TestNoOutputShowsASecret: whatever is given as any of these settings, no error shows a part of a
// password.
func TestNoOutputShowsASecret(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "a")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "b")
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	for _, place := range places {
		t.Run(place, func(t *testing.T) {
			for _, shape := range shapes {
				for _, password := range passwords {
					if !strings.Contains(shape, "@") && strings.Contains(password, "@") {
						continue // the text behind the @ is a host
					}
					leak(t, place, strings.ReplaceAll(shape, "PW", password))
				}
			}
		})
	}
}

// leak gives a text as a setting, and fails if the program's answer shows a part of the marker.
func leak(t *testing.T, place, text string) {
	t.Helper()
	args := strings.Fields(place)
	if name, ok := strings.CutSuffix(place, "="); ok {
		t.Setenv(name, text)
		args = strings.Fields("status --election e --connect-timeout 0")
	} else if command, after, ok := strings.Cut(place, " -- ./none "); ok {
		args = append(append(strings.Fields(command), after, text), "--", "./none")
	} else {
		args = append(args, text)
	}
	var out, errs strings.Builder
	code := execute(t.Context(), args, strings.NewReader(""), &out, &errs)
	if said := out.String() + errs.String(); code == fault.Done || strings.Contains(said, fragment) {
		t.Errorf("%s with %s: exit code %d, and it says\n%s", place, text, code, said)
	}
}

// TestContextsShowNoSecret: a context of the nats command may hold them in each of its fields.
func TestContextsShowNoSecret(t *testing.T) {
	home := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", home)
	dir := filepath.Join(home, "nats", "context")
	must.OK(t, os.MkdirAll(dir, 0o700))
	long := marker + strings.Repeat(marker, 14)
	for _, text := range []string{
		`{"url": "nats://u:PW@127.0.0.1:1"}`, `{"url": "nats://PW@127.0.0.1:1"}`, `{"url": "u:PW@127.0.0.1:1"}`, `{"url": "nats://127.0.0.1:1", "token": "PW"}`,
		`{"url": "nats://127.0.0.1:1", "user": "PW", "password": "PW"}`, `{"url": "nats://127.0.0.1:1", "nkey": "` + long + `"}`,
		`{"url": "nats://127.0.0.1:1", "creds": "` + long + `"}`, `{"url": "nats://127.0.0.1:1", "user_jwt": "PW", "user_seed": "PW"}`,
		`{"url": "nats://127.0.0.1:1", "socks_proxy": "socks5://u:PW@127.0.0.1:1"}`, `{"url": "nats://127.0.0.1:1", "password": PW}`, `PW`,
	} {
		for _, password := range passwords {
			file := strings.ReplaceAll(text, "PW", strings.ReplaceAll(password, `"`, `\"`))
			must.Write(t, filepath.Join(dir, "prod.json"), file)
			_, said := answers(t, strings.Fields("status --election e --connect-timeout 0 --context prod")...)
			if strings.Contains(said, fragment) || said == "" {
				t.Errorf("%s says\n%s", file, said)
			}
		}
	}
}

// TestFilesShowNoSecret: errors in files of other tools, and variables of theirs.
func TestFilesShowNoSecret(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		must.Write(t, filepath.Join(dir, name), text)
		return filepath.Join(dir, name)
	}
	t.Setenv("HOME", dir)
	for name, value := range map[string]string{"AWS_REGION": "r", "AWS_PROFILE": "", "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_EC2_METADATA_DISABLED": "true"} {
		t.Setenv(name, value)
	}
	keys := file("keys", "[default]\naws_access_key_id = a\naws_secret_access_key = b\n")
	for _, password := range passwords {
		for i, c := range []struct{ store, variable, value string }{
			{"s3://bucket?endpoint=http://127.0.0.1:1", "AWS_SHARED_CREDENTIALS_FILE", file("a", "[default]\naws_secret_access_key "+password+"\n"+password+"\n")},
			{"s3://bucket?endpoint=http://127.0.0.1:1", "AWS_SHARED_CREDENTIALS_FILE", file("b", password+"\n[default]\naws_secret_access_key="+password+"\n")},
			{"s3://bucket", "AWS_ENDPOINT_URL", "http://id:" + password + "@127.0.0.1:1"},
			{"s3://bucket", "AWS_ENDPOINT_URL", "http://" + password + "@127.0.0.1:1"},
			{"s3://bucket", "AWS_CONFIG_FILE", file("c", "[default]\nendpoint_url = http://id:"+password+"@127.0.0.1:1\n")},
			{"postgres://127.0.0.1:1/db?service=app", "PGSERVICEFILE", file("d", "[app]\npassword="+password+"\n"+password+"\n")},
			{"postgres://127.0.0.1:1/db", "PGPASSFILE", file("e", "*:*:*:u:"+password+"\n"+password+"\n")},
			{"postgres://127.0.0.1:1/db", "PGPASSWORD", password},
			{"mysql://127.0.0.1:1/db", "MYSQL_PWD", password},
			{"mysql://127.0.0.1:1/db", "X", file(".my.cnf", "[client]\npassword="+password+"\n"+password+"\n")},
			{"kafka://127.0.0.1:1/t", "TENURE_KAFKA_PROPERTIES", file("f", "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config=x required password=\""+password+"\"\n")},
			{"kafka://127.0.0.1:1/t", "TENURE_KAFKA_PROPERTIES", file("g", "sasl.password="+password+"\nsecurity.protocol="+password+"\n"+password+"\n")},
			{"kafka://127.0.0.1:1/t", "TENURE_KAFKA_SASL_JAAS_CONFIG", "x required password=\"" + password + "\""},
			{"kafka://127.0.0.1:1/t", "TENURE_KAFKA_PASSWORD", password},
		} {
			t.Run(fmt.Sprint(i, password), func(t *testing.T) {
				t.Setenv("AWS_SHARED_CREDENTIALS_FILE", keys)
				t.Setenv(c.variable, c.value)
				code, said := answers(t, "status", "--election", "e", "--connect-timeout", "0", "--store", c.store)
				if strings.Contains(said, fragment) || code == fault.Done {
					t.Errorf("%s with %s: exit code %d, and it says\n%s", c.store, c.variable, code, said)
				}
			})
		}
	}
}
