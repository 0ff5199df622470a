// Package natstest runs NATS servers for the tests of this module: within the process, or on
// sockets with the build tag integration. It has a network on which connections can be cut, and
// virtual time with a server in it. It exists so that the tests of the store and of its internal
// packages meet the same servers and faults. Only tests import it.
package natstest
