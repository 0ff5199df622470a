package cli

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
)

// flags maps fields of the library to the flags that set them.
var flags = map[string]string{
	"Name": "election", "ID": "id", "Priority": "priority", "Lease": "lease", "Tuning.Renew": "renew",
	"Tuning.Splay": "splay", "StopWithin": "stop-within", "FinishWithin": "finish-within",
}

// Flags describes the source of each flag. Named returns the name of the flag or of its variable.
// Given reports whether either has set it. With a nil Named the names are those of the flags; with
// a nil Given all flags count as set.
type Flags struct {
	Named func(flag string) string
	Given func(flag string) bool
}

func (f Flags) named(flag string) string {
	if f.Named == nil {
		return "--" + flag
	}
	return f.Named(flag)
}

func (f Flags) given(flag string) bool { return f.Given == nil || f.Given(flag) }

// Check checks an election's name and settings for a store. The error names only the settings that
// cause a problem, by their flags or variables.
func (f Flags) Check(store driver.Store, election string, cfg tenure.Config) error {
	alone := cfg
	alone.Tuning.Renew, alone.StopWithin = 0, 0 // the checks below name the one that does not fit
	if _, err := tenure.New(store, election, alone); err != nil {
		return f.InFlags(err)
	}
	if err := f.fit(cfg); err != nil {
		return err
	}
	_, err := tenure.New(store, election, cfg)
	return f.InFlags(err)
}

// attempts is the shortest time that the library reserves for two attempts.
const attempts = 2 * time.Millisecond

// fit returns an error if renewals, and the time to stop, do not fit into the lease.
func (f Flags) fit(cfg tenure.Config) error {
	usable := cfg.Lease - cfg.Margin() - attempts
	usual := cfg.Lease / 3
	if cmp.Or(cfg.Tuning.Renew, usual) <= usable {
		return nil
	}
	lease := fmt.Sprintf("%s %v", f.named("lease"), cfg.Lease)
	if !f.given("lease") {
		lease = fmt.Sprintf("the default lease of %v", cfg.Lease)
	}
	long := func(flag string, d, most time.Duration) error {
		return fmt.Errorf("%s is %v, too long for %s: it must be at most %v", f.named(flag), d, lease, most.Truncate(time.Millisecond))
	}
	if usual <= usable {
		return long("renew", cfg.Tuning.Renew, usable)
	}
	return long("stop-within", cfg.StopWithin, usable+cfg.StopWithin-usual)
}

// Cause returns the text of an error for the log. For a lease that is too short it names --lease.
func Cause(err error) string {
	var short *tenure.ShortLeaseError
	if !errors.As(err, &short) {
		return err.Error()
	}
	text := short.Error()
	inFlags := strings.NewReplacer("a lease of at least", "at least --lease", "a lease of", "--lease").Replace(text)
	return strings.Replace(err.Error(), text, inFlags, 1)
}

// InFlags returns the problems of a configuration that the library found, with the names of the
// flags instead of its fields. Other errors stay as they are.
func (f Flags) InFlags(err error) error {
	all, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return err
	}
	var problems []error
	for _, err := range all.Unwrap() {
		problems = append(problems, f.inFlags(err))
	}
	return errors.Join(problems...)
}

func (f Flags) inFlags(err error) error {
	var problem *tenure.ConfigError
	if !errors.As(err, &problem) {
		return err
	}
	flag, ok := flags[problem.Field]
	if !ok {
		return err
	}
	return errors.New(problem.About(f.named(flag)))
}
