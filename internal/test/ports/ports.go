// Package ports finds ports for servers under test, and keeps them for this process. So a server
// that is killed and started again finds its port free, though tests run in several processes.
package ports

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// The range is below the ports that systems give to clients. So no client takes the port of a
// killed server before the server starts again.
const (
	lowest = 10000
	number = 20000
)

// Host is where servers under test listen.
const Host = "127.0.0.1"

// kept has the UDP sockets that keep the last ports. The servers use TCP, so they can listen.
// Another process that calls Free finds the port taken. The oldest are closed, so that a process
// that runs for hours does not run out of files.
var (
	mu   sync.Mutex
	kept []net.PacketConn
)

const mostKept = 500

// Free returns n different ports of Host that are free, and that no process keeps by this function.
// A program that does not use it may still take one: then the caller must call again.
func Free(n int) ([]int, error) {
	mu.Lock()
	defer mu.Unlock()
	var all []int
	for range 100 * n {
		port := lowest + rand.IntN(number)
		if !keep(port) {
			continue
		}
		if all = append(all, port); len(all) == n {
			return all, nil
		}
	}
	return nil, errors.New("not enough free ports from 10000 to 29999")
}

// keep reports whether a port is free, and keeps it.
func keep(port int) bool {
	k, err := net.ListenPacket("udp", Address(port))
	if err != nil {
		return false
	}
	l, err := net.Listen("tcp", Address(port))
	if err != nil {
		_ = k.Close()
		return false
	}
	_ = l.Close()
	if kept = append(kept, k); len(kept) > mostKept {
		_ = kept[0].Close()
		kept = kept[1:]
	}
	return true
}

// Address returns the address of a port of Host.
func Address(port int) string { return net.JoinHostPort(Host, strconv.Itoa(port)) }
