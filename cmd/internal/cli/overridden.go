package cli

import "github.com/spf13/pflag"

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
