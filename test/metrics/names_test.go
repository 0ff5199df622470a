package metrics

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/metrics"
)

const (
	rulesFile = "../../deploy/prometheus/tenure.rules.yml"
	boardFile = "../../deploy/grafana/tenure.json"
	guide     = "../../docs/observe.md"
)

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	metricName = regexp.MustCompile(`\b(?:tenure_[a-z_]+|leader_election_master_status)\b`)
	matcher    = regexp.MustCompile(`\b(reason|left|kind|role|operation|outcome)\\?(?:=|!=|=~|!~)\\?"([a-z|]+)\\?"`)
)

// Rules and the board use metrics that exist, and values that their labels have.
func TestNamesOfMetrics(t *testing.T) {
	names, values := map[string]bool{}, map[string]bool{}
	set := metrics.New()
	set.Add("job", func() (metrics.State, bool) { return metrics.State{}, true })
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
		if !strings.Contains(read(t, rulesFile), "observe.md#"+strings.ToLower(a[1])+"\n") {
			t.Errorf("%s has no runbook_url", a[1])
		}
	}
}
