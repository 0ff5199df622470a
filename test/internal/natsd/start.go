package natsd

import "errors"

// attempts is how many times other ports are tried: another process may take one after it was found
// free.
const attempts = 5

// onFree starts something on so many free ports.
func onFree(free func(int) ([]int, error), n int, start func([]int) error) (err error) {
	for range attempts {
		var found []int
		if found, err = free(n); err != nil {
			return err
		}
		if err = start(found); !errors.As(err, new(refusal)) {
			return err
		}
	}
	return err
}
