package jobs

import (
	"strings"
	"testing"
	"time"
)

// FuzzParse: no file makes the parser panic, each error has a text, and each job that passes the
// check has a command and a schedule.
func FuzzParse(f *testing.F) {
	f.Add([]byte("defaults: {timezone: Europe/Berlin}\njobs:\n- name: a\n  schedule: \"@daily\"\n  command: [echo, hi]\n  window: 1h\n"))
	f.Add([]byte("jobs:\n- schedule: \"*/5 * * * *\"\n  command: echo\n  timeout: -1s\n  titel: b\n-\n"))
	f.Add([]byte("a: &a [*a]"))
	f.Add([]byte("---\n---\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 1<<12 {
			return
		}
		all, err := parse(text)
		if err != nil {
			if shown := explained("jobs.yaml", err).Error(); !strings.HasPrefix(shown, "jobs.yaml: ") {
				t.Errorf("the error does not name the file: %s", shown)
			}
			return
		}
		for i := range all {
			j := &all[i]
			if err := j.check(func(setting string) string { return setting }); err != nil {
				continue
			}
			if j.Schedule == "" || len(j.Command) == 0 || j.Command[0] == "" || time.Duration(j.Window) < 0 || time.Duration(j.Timeout) < 0 {
				t.Errorf("%q has the job %+v", text, j)
			}
		}
	})
}
