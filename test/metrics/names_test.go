package metrics

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/metrics"
)

const (
	rulesFile = "../../deploy/prometheus/tenure.rules.yml"
	boardFile = "../../deploy/grafana/tenure.json"
	guide     = "../../docs/failures.md"
)

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	must(t, err)
	return string(text)
}

var (
	metricName = regexp.MustCompile(`\b(?:tenure_[a-z_]+|leader_election_master_status)\b`)
	matcher    = regexp.MustCompile(`\b(reason|left|kind|role|operation|outcome|result|tick)\\?(?:=|!=|=~|!~)\\?"([a-z0-9|]+)\\?"`)
)

// Rules and the board use metrics that exist, and values that their labels have.
func TestNamesOfMetrics(t *testing.T) {
	names, values := map[string]bool{}, map[string]bool{}
	set := metrics.New()
	set.Add("job", func() (metrics.State, bool) { return metrics.State{}, true })
	set.AddJob("nightly", "report")
	set.Gather(func(s metrics.Sample) {
		names[s.Name] = true
		if s.Kind == metrics.Histogram {
			names[s.Name+"_bucket"] = true
		}
		values[s.Label+"="+s.Value], values[s.Label2+"="+s.Value2] = true, true
	})
	for _, file := range []string{rulesFile, boardFile} {
		text := read(t, file)
		for _, name := range metricName.FindAllString(text, -1) {
			if !names[name] {
				t.Errorf("%s: there is no metric %s", file, name)
			}
		}
		for _, m := range matcher.FindAllStringSubmatch(text, -1) {
			for value := range strings.SplitSeq(m[2], "|") {
				if !values[m[1]+"="+value] {
					t.Errorf("%s: no %s is %s", file, m[1], value)
				}
			}
		}
	}
}

// Each alert links to a section of the guide.
func TestEveryAlertHasASection(t *testing.T) {
	page := read(t, guide)
	alerts := regexp.MustCompile(`alert: (\w+)`).FindAllStringSubmatch(read(t, rulesFile), -1)
	if len(alerts) < 8 {
		t.Errorf("only %d alerts", len(alerts))
	}
	for _, a := range alerts {
		if !strings.Contains(page, "\n### "+a[1]+"\n") {
			t.Errorf("%s has no section of %s", guide, a[1])
		}
		if !strings.Contains(read(t, rulesFile), "failures.md#"+strings.ToLower(a[1])+"\n") {
			t.Errorf("%s has no runbook_url", a[1])
		}
	}
}

// seen is the result of one scrape of a candidate.
type seen struct {
	at       float64 // its time in Prometheus, in seconds
	from, to float64 // the candidate wrote it between these times
	leads    bool
	term     float64
}

// overlaps returns the scrapes that prove that two candidates led at once. A sum over all
// candidates proves nothing, because each is scraped at another time. But a candidate that leads in
// two scrapes with the same term has led all the time between them. So no other may be seen to lead
// in that time. The scrapes of each candidate are in order.
func overlaps(scrapes map[string][]seen) (found []string) {
	for name, all := range scrapes {
		for i := 1; i < len(all); i++ {
			before, after := all[i-1], all[i]
			if !before.leads || !after.leads || before.term != after.term {
				continue
			}
			for other, theirs := range scrapes {
				for _, s := range theirs {
					if other != name && s.leads && s.from > before.to && s.to < after.from {
						found = append(found, fmt.Sprintf("%s led from %.3f to %.3f, and %s between %.3f and %.3f",
							name, before.to, after.from, other, s.from, s.to))
					}
				}
			}
		}
	}
	return found
}

func TestOverlaps(t *testing.T) {
	a := []seen{{0, 0, 0.1, true, 1}, {0, 1, 1.1, true, 1}}
	for _, test := range []struct {
		name string
		b    []seen
		want int
	}{
		{"between two scrapes of a term", []seen{{0, 0.4, 0.5, true, 2}}, 1},
		{"follows", []seen{{0, 0.4, 0.5, false, 1}}, 0},
		{"a scrape that began before the first ended", []seen{{0, 0.05, 0.5, true, 2}}, 0},
		{"a scrape that ended after the second began", []seen{{0, 0.4, 1.05, true, 2}}, 0},
		{"later", []seen{{0, 1.4, 1.5, true, 2}, {0, 2.4, 2.5, true, 2}}, 0},
	} {
		if got := overlaps(map[string][]seen{"a": a, "b": test.b}); len(got) != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
	}
	again := []seen{{0, 0, 0.1, true, 1}, {0, 1, 1.1, true, 3}}
	if got := overlaps(map[string][]seen{"a": again, "b": {{0, 0.4, 0.5, true, 2}}}); len(got) != 0 {
		t.Errorf("a term of b between two of a: %v", got)
	}
}

// must stops a test that cannot go on.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
