//go:build integration

package metrics

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/internal/test/ports"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/metrics"
	"github.com/tenure-go/tenure/test/internal/command"
	"github.com/tenure-go/tenure/test/internal/natsd"
	"sigs.k8s.io/yaml"
)

func TestMain(m *testing.M) { natsd.Tests(m) }

// prometheus is a real Prometheus server.
type prometheus struct {
	*testing.T
	url string
}

// startPrometheus scrapes each second, and applies the rules without their waiting times.
func startPrometheus(t *testing.T, targets map[string][]string) *prometheus {
	t.Helper()
	dir := t.TempDir()
	hurried := regexp.MustCompile(`for: \d+m`).ReplaceAllString(read(t, rulesFile), "for: 1s")
	write(t, filepath.Join(dir, "rules.yml"), hurried)
	config := "global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [rules.yml]\nscrape_configs:\n"
	for job, at := range targets {
		config += fmt.Sprintf("  - {job_name: %s, static_configs: [{targets: [%s]}]}\n", job, strings.Join(at, ", "))
	}
	write(t, filepath.Join(dir, "prometheus.yml"), config)
	free, err := ports.Free(1)
	must(t, err)
	address := ports.Address(free[0])
	command.Start(t, "prometheus", "--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+address, "--log.level=warn")
	return &prometheus{t, "http://" + address}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	must(t, os.WriteFile(file, []byte(text), 0o600))
}

// api calls Prometheus, and decodes the data of the answer.
func (p *prometheus) api(ctx context.Context, path string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/api/v1/"+path, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	answer := struct {
		Status, Error string
		Data          any
	}{Data: into}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Status != "success" {
		return fmt.Errorf("%s: %w: %s", path, err, body)
	}
	return nil
}

// series is one series of the answer to a query.
type series struct {
	Metric map[string]string
	Value  point   // of an instant
	Values []point // of a range
}

// point is a time in seconds, and a number as text.
type point [2]any

func (v point) time() float64 { return v[0].(float64) }

func (v point) number() float64 {
	n, _ := strconv.ParseFloat(fmt.Sprint(v[1]), 64)
	return n
}

// query returns the answer to a query, without the values that are not a number.
func (p *prometheus) query(ctx context.Context, expr string) ([]series, error) {
	var data struct{ Result []series }
	err := p.api(ctx, "query?query="+url.QueryEscape(expr), &data)
	return slices.DeleteFunc(data.Result, func(s series) bool { return s.Value[1] == "NaN" }), err
}

// until waits until a query has a result, and returns it.
func (p *prometheus) until(what, expr string) (found []series) {
	p.Helper()
	wait.Succeeds(p.T, what, func(ctx context.Context) (err error) {
		if found, err = p.query(ctx, expr); err == nil && len(found) == 0 {
			err = fmt.Errorf("%s: no data", expr)
		}
		return err
	})
	return found
}

// fires waits until an alert fires.
func (p *prometheus) fires(name string) {
	p.Helper()
	p.until(name+" fires", fmt.Sprintf("ALERTS{alertname=%q,alertstate=\"firing\"}", name))
}

// candidate is a tenure run.
type candidate struct {
	*command.Process
	id      string
	address string // of its metrics
}

func startCandidate(t *testing.T, tenure, store, id string) *candidate {
	t.Helper()
	p := command.Start(t, tenure, "run", "--store", store, "--create", "--election", "billing", "--id", id, "--lease", "2s", "--metrics", "0", "--", "sleep", "1000")
	return &candidate{p, id, p.Await(`url=http://(\S+)/metrics`)}
}

// fleet serves the summary of many elections that this process leads.
func fleet(t *testing.T) (address string) {
	t.Helper()
	set := metrics.NewSummary()
	g, err := tenure.NewGroup(memory.New(), tenure.Config{Metrics: set})
	must(t, err)
	done := make(chan error, 1)
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		done <- g.Run(ctx, tenure.Lead(func(ctx context.Context, _ *tenure.Term) error { <-ctx.Done(); return nil }), "a", "b", "c")
	}()
	t.Cleanup(func() { stop(); <-done })
	return serve(t, set)
}

// jobs serves the metrics of a scheduled job that is overdue, and whose last run has failed. The
// board finds them by the labels of the candidates.
func jobs(t *testing.T) (address string) {
	t.Helper()
	set := metrics.New()
	now := time.Now()
	j := set.AddJob("billing", "report")
	j.Know(metrics.JobFacts{Failure: now, Due: [3]time.Time{now, now, now}})
	j.Missed(metrics.MissLate, 1)
	j.Warned(metrics.WarnClock)
	return serve(t, set)
}

func serve(t *testing.T, set *metrics.Set) (address string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", metrics.TextType)
		_ = set.WriteText(w)
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// A real Prometheus scrapes real candidates through a crash, a hand-over and an outage. Every rule
// and every query of the board has data.
func TestPrometheus(t *testing.T) {
	server := natsd.Alone(t)
	tenure := command.Build(t)
	store := server.URL() + "/ELECTIONS?pristine=true"
	all := map[string]*candidate{}
	targets := map[string][]string{"fleet": {fleet(t)}, "billing": {jobs(t)}}
	for _, id := range []string{"a", "b", "c"} {
		c := startCandidate(t, tenure, store, id)
		all[c.address] = c
		targets["billing"] = append(targets["billing"], c.address)
	}
	p := startPrometheus(t, targets)

	first := all[p.until("one of three leads", `tenure_leading{job="billing"} == 1 and on () count(tenure_leading{job="billing"}) == 3`)[0].Metric["instance"]]
	first.Kill()
	others := fmt.Sprintf(`{job="billing",instance!=%q}`, first.address)
	second := all[p.until("another leads after the crash", "tenure_leading"+others+" == 1")[0].Metric["instance"]]
	p.until("the dead one has no series", fmt.Sprintf(`absent(tenure_leading{instance=%q})`, first.address))
	p.fires("TenureCandidateAway")

	third := all[p.until("a third is there", fmt.Sprintf(`tenure_leading{job="billing",instance!~"%s|%s"}`, first.address, second.address))[0].Metric["instance"]]
	if out, err := exec.Command(tenure, "hand-over", "--store", store, "--election", "billing", "--to", third.id).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	p.until("the successor leads", fmt.Sprintf(`tenure_leading{instance=%q} == 1`, third.address))
	p.until("the term was handed over", fmt.Sprintf(`tenure_terms_ended_total{instance=%q,reason="handed-over"} == 1`, second.address))
	p.checkRules()
	p.checkBoard()
	for _, name := range []string{"TenureJobNoSuccess", "TenureJobFailed", "TenureJobMissed", "TenureJobClock"} {
		p.fires(name)
	}

	server.Kill()
	for _, name := range []string{"TenureNobodyLeads", "TenureStandbyUnfit", "TenureStoreFails"} {
		p.fires(name)
	}
	p.until("its term has expired", `tenure_terms_ended_total{job="billing",reason="expired"} == 1`)
	p.checkLeaders(3)

	second.Kill()
	third.Kill()
	p.until("the alert outlives the candidates", `ALERTS{alertname="TenureNobodyLeads",alertstate="firing"} and on () absent_over_time(tenure_leading{job="billing"}[5s])`)
}

// checkLeaders checks that this many candidates have led, and no two of them at once.
func (p *prometheus) checkLeaders(count int) {
	p.Helper()
	scrapes, led := p.scrapes(), 0
	for _, all := range scrapes {
		if slices.ContainsFunc(all, func(s seen) bool { return s.leads }) {
			led++
		}
	}
	if led != count {
		p.Errorf("%d candidates have led", led)
	}
	for _, o := range overlaps(scrapes) {
		p.Error(o)
	}
}

// adjusted is the longest time by which Prometheus may move the time of a scrape.
const adjusted = 0.01

// scrapes returns the result of each scrape of a candidate. A scrape that failed showed no leader.
func (p *prometheus) scrapes() map[string][]seen {
	p.Helper()
	found := map[string][]seen{}
	for _, s := range p.until("times of scrapes", `scrape_duration_seconds{job="billing"}[1h]`) {
		of := s.Metric["instance"]
		for _, v := range s.Values {
			found[of] = append(found[of], seen{at: v.time(), from: v.time() - adjusted, to: v.time() + v.number() + adjusted})
		}
	}
	for metric, set := range map[string]func(*seen, float64){
		"tenure_leading": func(s *seen, n float64) { s.leads = n == 1 },
		"tenure_term":    func(s *seen, n float64) { s.term = n },
	} {
		for _, s := range p.until("scrapes", metric+`{job="billing"}[1h]`) {
			all := found[s.Metric["instance"]]
			for _, v := range s.Values {
				if i := slices.IndexFunc(all, func(s seen) bool { return s.at == v.time() }); i >= 0 {
					set(&all[i], v.number())
				}
			}
		}
	}
	return found
}

// comparison is the end of a rule's expression.
var comparison = regexp.MustCompile(` [<>] [0-9.]+$`)

// checkRules checks that Prometheus evaluates all rules, and that the series in their comparisons
// exist.
func (p *prometheus) checkRules() {
	p.Helper()
	var file struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	must(p, yaml.Unmarshal([]byte(read(p.T, rulesFile)), &file))
	for _, r := range file.Groups[0].Rules {
		if !comparison.MatchString(r.Expr) {
			p.Errorf("%s does not end in a comparison: %s", r.Alert, r.Expr)
		}
		p.until(r.Alert+" has data", comparison.ReplaceAllString(r.Expr, ""))
	}
	var data struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError string }
		}
	}
	must(p, p.api(wait.Context(p.T), "rules", &data))
	if n := len(data.Groups[0].Rules); n != len(file.Groups[0].Rules) {
		p.Errorf("Prometheus has %d rules", n)
	}
	for _, r := range data.Groups[0].Rules {
		if r.Health != "ok" {
			p.Errorf("%s is %s: %s", r.Name, r.Health, r.LastError)
		}
	}
}

// checkBoard checks that each query of the board has data, for all jobs and for a selected one, and
// that the board offers that one.
func (p *prometheus) checkBoard() {
	p.Helper()
	var board struct {
		Templating struct {
			List []struct{ Name, Type, Definition string }
		}
		Panels []struct {
			Title, Description, Type string
			Targets                  []struct{ Expr string }
		}
	}
	must(p, json.Unmarshal([]byte(read(p.T, boardFile)), &board))
	queries := 0
	for _, panel := range board.Panels {
		if panel.Title == "" || panel.Type != "row" && panel.Description == "" {
			p.Errorf("a %s %q has no title or no description", panel.Type, panel.Title)
		}
		for _, target := range panel.Targets {
			queries++
			for _, chosen := range []string{".*", "billing"} {
				p.until(panel.Title+" has data", choose(chosen).Replace(target.Expr))
			}
		}
	}
	if queries < 20 {
		p.Errorf("the board has %d queries", queries)
	}
	for _, v := range board.Templating.List {
		if v.Type == "query" {
			m := variable.FindStringSubmatch(choose("billing").Replace(v.Definition))
			if m == nil {
				p.Fatalf("%s: %s", v.Name, v.Definition)
			}
			p.until("the variable "+v.Name, fmt.Sprintf(`group by (%s) (%s) and on (%[1]s) label_replace(vector(1), "%[1]s", "billing", "", "")`, m[2], m[1]))
		}
	}
}

// variable is the query of a variable.
var variable = regexp.MustCompile(`^label_values\((.*), (\w+)\)$`)

// choose gives values to the variables of the board.
func choose(value string) *strings.Replacer {
	return strings.NewReplacer("$job", value, "$election", value, "$__rate_interval", "10s")
}
