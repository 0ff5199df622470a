// Package settings speaks of what the library configures by the names of the command's flags.
package settings

import (
	"errors"
	"regexp"
	"strings"
)

// fields are what the library calls settings that are flags here: with dashes and in small letters.
var fields = regexp.MustCompile(`\b(ID|Lease|Renew|Splay|StopWithin|FinishWithin|Priority)\b`)

// names are what the library calls others.
var names = strings.NewReplacer("the store cannot hold this name", "--election", "the name of the election", "--election",
	"priority is", "--priority is")

// capital begins a further word of a name.
var capital = regexp.MustCompile(`([a-z])([A-Z])`)

// InFlags says what the library found wrong with a configuration with the names of the flags.
func InFlags(err error) error {
	if err == nil {
		return nil
	}
	if all := errors.Unwrap(err); all != nil {
		err = all // without the name of the election in front
	}
	text := fields.ReplaceAllStringFunc(err.Error(), func(s string) string {
		return "--" + strings.ToLower(capital.ReplaceAllString(s, "$1-$2"))
	})
	return errors.New(names.Replace(text))
}
