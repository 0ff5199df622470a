package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/timing"
)

// Variable is a variable of the environment that sets a flag, besides the flag's own variable, and
// the value that it sets.
type Variable struct {
	Name, Flag string
	Value      func(string) string
}

// Sources maps each flag of a command to the name of its source: the flag itself, or a variable.
type Sources map[string]string

// Named returns the name of a flag's source, for errors.
func (s Sources) Named(flag string) string {
	if name, ok := s[flag]; ok {
		return name
	}
	return "--" + flag
}

// ByHand reports whether the command line has set a flag.
func (s Sources) ByHand(f *pflag.FlagSet, flag string) bool {
	_, byVariable := s[flag]
	return f.Changed(flag) && !byVariable
}

// ownVariable returns the name of a flag's variable: TENURE_CRASH_EVERY for --crash-every.
func ownVariable(flag string) string {
	return "TENURE_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// hasVariable reports whether a variable sets a flag.
func hasVariable(flag *pflag.Flag) bool { return flag.Name != "help" && flag.Name != "version" }

// UnknownVariables returns the variables with the prefix of this program that set no flag of any
// command, such as misspelled ones.
func UnknownVariables(root *cobra.Command, environ []string) []string {
	known := map[string]bool{}
	for _, name := range append(stores.Variables(), "TENURE_TOKEN", "TENURE_ID", "TENURE_SLOT", "TENURE_JOB", "TENURE_TICK", "TENURE_ATTEMPT",
		"TENURE_STATE", "TENURE_LEADER") {
		known[name] = true
	}
	for _, c := range append(root.Commands(), root) {
		c.Flags().VisitAll(func(f *pflag.Flag) { known[ownVariable(f.Name)] = hasVariable(f) })
	}
	var all []string
	for _, variable := range environ {
		name, _, _ := strings.Cut(variable, "=")
		if strings.HasPrefix(name, "TENURE_") && !known[name] {
			all = append(all, name)
		}
	}
	return all
}

// WarnOfUnknownVariables prints a warning for each unknown variable.
func WarnOfUnknownVariables(c *cobra.Command) {
	for _, name := range UnknownVariables(c.Root(), os.Environ()) {
		fault.Tell(c.ErrOrStderr(), "warning", fmt.Errorf("the variable %s of the environment sets no flag: check its name", name))
	}
}

// Fill sets the flags that the command line has not set from the environment: from their own
// variables, or else from others that stand for them. An empty variable is none.
func Fill(f *pflag.FlagSet, env func(string) string, others []Variable) (Sources, error) {
	from := Sources{}
	var problems []error
	hint := "give another value, or leave the flag out if it has a default"
	f.VisitAll(func(flag *pflag.Flag) {
		name, value := lookUp(flag.Name, env, others)
		if !flag.Changed && value != "" && hasVariable(flag) {
			if err := f.Set(flag.Name, value); err != nil {
				problems = append(problems, noValue(name, err))
				hint = "unset it, or set it to what --" + flag.Name + " takes"
				return
			}
			from[flag.Name] = name
		}
		problems = append(problems, checkDuration(flag, from.Named(flag.Name)), checkText(flag, from.Named(flag.Name)))
	})
	if err := errors.Join(problems...); err != nil {
		return from, &fault.Error{Err: err, Hint: hint, Code: fault.Usage}
	}
	return from, nil
}

// orNone lists the flags for which 0 means no time at all. The other durations must be above 0.
var orNone = []string{flagTimeout, "crash-every", "splay", "timeout", "wait"}

// checkDuration checks the rule that all durations share.
func checkDuration(flag *pflag.Flag, name string) error {
	if !flag.Changed || flag.Value.Type() != "duration" {
		return nil
	}
	d, _ := time.ParseDuration(flag.Value.String()) // never fails: the flag wrote this text
	switch {
	case d < 0:
		return fmt.Errorf("%s is %v; it must not be negative", name, d)
	case d == 0 && !slices.Contains(orNone, flag.Name):
		return fmt.Errorf("%s is 0; it must be more than 0", name)
	}
	return nil
}

func lookUp(flag string, env func(string) string, others []Variable) (name, value string) {
	if value := env(ownVariable(flag)); value != "" {
		return ownVariable(flag), value
	}
	for _, v := range others {
		if v.Flag != flag {
			continue
		}
		if value := v.Value(env(v.Name)); value != "" {
			return v.Name, value
		}
	}
	return "", ""
}

// checkText refuses an empty value on the command line, such as one from an unset shell variable,
// and one with several lines, such as the key that a file should hold.
func checkText(flag *pflag.Flag, name string) error {
	if !flag.Changed {
		return nil
	}
	texts := []string{flag.Value.String()}
	switch v := flag.Value.(type) {
	case pflag.SliceValue:
		texts = v.GetSlice()
	default:
		if flag.Value.Type() != "string" {
			return nil
		}
	}
	switch {
	case slices.Contains(texts, ""):
		return fmt.Errorf("--%s is empty", flag.Name)
	case slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, "\n") }):
		return fmt.Errorf("%s has more than one line", name)
	}
	return nil
}

// FlagError explains an error in the flags of the command line.
func FlagError(c *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	var unknown *pflag.NotExistError
	switch {
	case c.HasAvailableSubCommands() && c.Flags().NArg() > 0: // flags of a misspelled command
		return NoArgs(c, c.Flags().Args())
	case errors.As(err, &invalid):
		err = noValue("--"+invalid.GetFlag().Name, err)
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() != "": // as in -pPASSWORD
		err = unknownShort(c, unknown)
	case errors.As(err, &unknown):
		err = fmt.Errorf("%w%s", err, meantFlag(c, unknown.GetSpecifiedName()))
	}
	return fault.OfUsage(err)
}

// unknownShort returns the error for a flag with one dash, which may be a long one, as in -json.
func unknownShort(c *cobra.Command, unknown *pflag.NotExistError) error {
	long, _, _ := strings.Cut(unknown.GetSpecifiedShortnames(), "=")
	if c.Flags().Lookup(long) == nil {
		return errors.New("unknown flag: -" + unknown.GetSpecifiedName())
	}
	return errors.New("unknown flag: -" + long + meant("--"+long))
}

// noValue returns an error that says why a flag cannot take the value from this source.
func noValue(name string, err error) error {
	var invalid *pflag.InvalidValueError
	switch {
	case !errors.As(err, &invalid):
		return fmt.Errorf("%s: %w", name, err)
	case errors.Is(err, strconv.ErrRange):
		return fmt.Errorf("%s is %s, which is out of range", name, fault.Quote(invalid.GetValue()))
	}
	return fmt.Errorf("%s is %s, not %s", name, fault.Quote(invalid.GetValue()), kindOf(invalid.GetFlag()))
}

// kindOf describes the type of a flag in an error.
func kindOf(flag *pflag.Flag) string {
	switch flag.Value.Type() {
	case "int":
		return "a whole number"
	case "duration":
		return "a time such as 500ms, 15s or 1h30m"
	case "bool":
		return "true or false"
	}
	return "a " + flag.Value.Type()
}

// Overridden returns the variables of the flags that the command line has set. They are not in
// effect, whatever their values.
func (s Sources) Overridden(f *pflag.FlagSet) (variables []string) {
	f.Visit(func(flag *pflag.Flag) {
		if s.ByHand(f, flag.Name) {
			variables = append(variables, ownVariable(flag.Name))
		}
	})
	return variables
}

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

// Check checks an election's name and settings against the limits of a store. The error names only
// the settings that cause a problem, by their flags or variables.
func (f Flags) Check(limits driver.Bounded, election string, cfg tenure.Config) error {
	alone := cfg
	alone.Tuning.Renew, alone.StopWithin = 0, 0 // the checks below name the one that does not fit
	if err := alone.Check(limits, election); err != nil {
		return f.InFlags(err)
	}
	if err := f.fit(cfg); err != nil {
		return err
	}
	return f.InFlags(cfg.Check(limits, election))
}

// attempts is the shortest time that the library reserves for two attempts.
const attempts = 2 * time.Millisecond

// fit returns an error if renewals, and the time to stop, do not fit into the lease.
func (f Flags) fit(cfg tenure.Config) error {
	usable := cfg.Lease - timing.Margin(cfg) - attempts
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
	config, ok := errors.AsType[*tenure.ConfigError](err)
	if !ok {
		return err
	}
	var problems []error
	for i := range config.Fields {
		problems = append(problems, f.inFlags(&config.Fields[i]))
	}
	return errors.Join(problems...)
}

func (f Flags) inFlags(problem *tenure.FieldError) error {
	flag, ok := flags[problem.Field]
	if !ok {
		return problem
	}
	return errors.New(problem.About(f.named(flag)))
}
