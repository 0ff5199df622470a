package s3d

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
)

const host = "127.0.0.1"

// freePort is free at this moment, and below those that systems give to clients: a server that is killed and started
// again finds it free again, however many clients call in vain meanwhile.
func freePort() (int, error) {
	for range 100 {
		port := 20000 + rand.IntN(10000)
		l, err := net.Listen("tcp", address(port))
		if err != nil {
			continue
		}
		return port, l.Close()
	}
	return 0, errors.New("no free port from 20000 to 29999")
}

func address(port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }
