// Package halt lets programs stop a measurement at its first error, as tests do.
package halt

// failure is the panic with which On ends a measurement.
type failure struct{ error }

// On ends the measurement if there is an error.
func On(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// Unless returns the value, or ends the measurement if there is an error.
func Unless[T any](v T, err error) T {
	On(err)
	return v
}

// Catch stores the error that ended a measurement. Defer it.
func Catch(err *error) {
	switch r := recover().(type) {
	case nil:
	case failure:
		*err = r.error
	default:
		panic(r)
	}
}
