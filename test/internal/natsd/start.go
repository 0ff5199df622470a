package natsd

import "errors"

// attempts is how often onFree tries new ports: another process may take a port after it was found
// free.
const attempts = 5

// onFree calls start with n free ports, and again with others if the server refuses them.
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
