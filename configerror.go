package tenure

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tenure-go/tenure/driver"
)

// ConfigError is one problem of a Config or of an election's name. New, NewGroup, Group.Election
// and Reconfigure return all problems in one error. Find the first with errors.As, or each of them:
//
//	if all, ok := err.(interface{ Unwrap() []error }); ok {
//		for _, err := range all.Unwrap() {
//			if p, ok := errors.AsType[*tenure.ConfigError](err); ok {
//				fmt.Println(p.Field, p.Value, p.Problem, p.Remedy)
//			}
//		}
//	}
//
// About returns the line with the name of a flag, or of a key in a file, in place of the field.
// Problem and Remedy follow that name unchanged. They mention other fields only if two fields
// contradict each other.
type ConfigError struct {
	// Field is the field of Config, such as "Lease", or "Name" for the name of the election.
	// Package fleet also names its own fields, and puts "Election." before those of its
	// Config.Election, as in "Election.Priority".
	Field string
	// Value is the value of that field, or its default if the field is not set.
	Value any
	// Problem says what is wrong with the field, without its name: "is 2h0m0s".
	Problem string
	// Remedy says what to change: "it must be from 50ms to 1h0m0s". It may be empty.
	Remedy string

	cause error // of the store
}

// Error returns the field, the problem and the remedy in one line.
func (e *ConfigError) Error() string {
	if e.Field == fieldName {
		return e.About("the name")
	}
	return e.About(e.Field)
}

// About returns the same line as Error with another name for the field, such as that of a flag.
func (e *ConfigError) About(name string) string {
	text := name + " " + e.Problem
	if e.Remedy != "" {
		text += "; " + e.Remedy
	}
	return text
}

// Unwrap returns the store's error if the store cannot hold the name, otherwise nil.
func (e *ConfigError) Unwrap() error { return e.cause }

// fieldName is the Field of the name, which is not in Config.
const fieldName = "Name"

// problems holds ConfigErrors.
type problems []error

func problem(field string, value any, what, remedy string) problems {
	return problems{&ConfigError{Field: field, Value: value, Problem: what, Remedy: remedy}}
}

// predicate returns the problem of a field whose error text follows the field's name; none if err
// is nil.
func predicate(field string, value any, err error) problems {
	if err == nil {
		return nil
	}
	return problem(field, value, err.Error(), "")
}

func between(field string, d, least, most time.Duration) problems {
	if d < least || d > most {
		return problem(field, d, fmt.Sprintf("is %v", d), fmt.Sprintf("it must be from %v to %v", least, most))
	}
	return nil
}

// invalidError holds the problems of one election or group.
type invalidError struct {
	what string
	problems
}

func (e *invalidError) Error() string {
	return fmt.Sprintf("tenure: %s: %v", e.what, errors.Join(e.problems...))
}

func (e *invalidError) Unwrap() []error { return slices.Clone(e.problems) }

// invalid returns nil if there are no problems.
func invalid(name string, found ...problems) error {
	if all := slices.Concat(found...); len(all) > 0 {
		return &invalidError{fmt.Sprintf("election %q", name), all}
	}
	return nil
}

func checkName(store driver.Store, name string) problems {
	if name == "" {
		return problem(fieldName, name, "is empty", "")
	}
	if err := driver.AbilitiesOf(store).CheckKey(name); err != nil {
		what := fmt.Sprintf("cannot be a key of the store: %v", err)
		return problems{&ConfigError{Field: fieldName, Value: name, Problem: what, cause: err}}
	}
	return nil
}
