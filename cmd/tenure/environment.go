package main

import (
	"strings"

	"github.com/spf13/pflag"
	"github.com/tenure-go/tenure/cmd/tenure/internal/fault"
)

// variable is one of the environment that stands for a flag, besides the flag's own, and what it sets it to.
type variable struct {
	name, flag string
	value      func(string) string
}

// sources say what has set each flag of a command: its name, or a variable's.
type sources map[string]string

// named is for errors.
func (s sources) named(flag string) string {
	if name, ok := s[flag]; ok {
		return name
	}
	return "--" + flag
}

// byHand reports whether the command line has set a flag.
func (s sources) byHand(f *pflag.FlagSet, flag string) bool {
	_, byVariable := s[flag]
	return f.Changed(flag) && !byVariable
}

// ownVariable is TENURE_CRASH_EVERY for --crash-every.
func ownVariable(flag string) string {
	return "TENURE_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// fill sets the flags that the command line has not set from the environment: from their own variables, or else from others
// that stand for them. An empty variable is none.
func fill(f *pflag.FlagSet, env func(string) string, others []variable) (sources, error) {
	from := sources{}
	var err error
	f.VisitAll(func(flag *pflag.Flag) {
		name, value := lookUp(flag.Name, env, others)
		if flag.Changed || value == "" || flag.Name == "help" || err != nil {
			return
		}
		if problem := f.Set(flag.Name, value); problem != nil {
			err = fault.New("unset it, or set it to what --"+flag.Name+" takes",
				"%s in the environment is %q, which is no %s", name, value, kindOf(flag))
		}
		from[flag.Name] = name
	})
	return from, err
}

func lookUp(flag string, env func(string) string, others []variable) (name, value string) {
	if value := env(ownVariable(flag)); value != "" {
		return ownVariable(flag), value
	}
	for _, v := range others {
		if v.flag != flag {
			continue
		}
		if value := v.value(env(v.name)); value != "" {
			return v.name, value
		}
	}
	return "", ""
}

// kindOf is what people call the type.
func kindOf(flag *pflag.Flag) string {
	switch flag.Value.Type() {
	case "int":
		return "number"
	case "bool":
		return "true or false"
	}
	return flag.Value.Type()
}
