// Package ports finds ports for servers under test.
package ports

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// The range is below the one that systems give to clients: a server that is killed and started
// again finds its port free again, however many clients call in vain in between.
const (
	lowest = 20000
	number = 10000
)

// Host is where servers under test listen.
const Host = "127.0.0.1"

// given are the ports that this process has got: a server needs a moment until it listens on its
// own.
var (
	mu    sync.Mutex
	given = map[int]bool{}
)

// Free returns n different ports of Host that are free at this moment and that this process did not
// get before. Another process may take one before it is used, so callers must be ready to ask
// again.
func Free(n int) ([]int, error) {
	mu.Lock()
	defer mu.Unlock()
	if len(given) > number/2 {
		clear(given)
	}
	var all []int
	for range 100 * n {
		port := lowest + rand.IntN(number)
		if given[port] {
			continue
		}
		l, err := net.Listen("tcp", Address(port))
		if err != nil {
			continue
		}
		_ = l.Close()
		given[port] = true
		if all = append(all, port); len(all) == n {
			return all, nil
		}
	}
	return nil, errors.New("not enough free ports from 20000 to 29999")
}

// Address is where a port of this machine is reached.
func Address(port int) string { return net.JoinHostPort(Host, strconv.Itoa(port)) }
