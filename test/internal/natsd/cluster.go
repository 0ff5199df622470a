package natsd

import (
	"fmt"
	"net"
)

// StartCluster runs one server for each directory; together they are a cluster. That they have started does not mean that
// they have found each other.
func StartCluster(dirs ...string) ([]*Server, error) {
	ports, err := freePorts(len(dirs))
	if err != nil {
		return nil, err
	}
	var routes []string
	for _, port := range ports {
		routes = append(routes, fmt.Sprintf("nats://127.0.0.1:%d", port))
	}
	var all []*Server
	for i, dir := range dirs {
		s := &Server{place: place{Dir: dir, Port: anyPort, Name: fmt.Sprintf("n%d", i), Inner: ports[i], Routes: routes}}
		if err := s.Start(); err != nil {
			for _, other := range all {
				other.Kill()
			}
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// freePorts are free at this moment: the servers must know each other's before they start.
func freePorts(n int) ([]int, error) {
	var ports []int
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer func() { _ = l.Close() }()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}
