// Command fake serves package k8sfake with TLS. It takes the flags of the command apiserver.
package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	certutil "k8s.io/client-go/util/cert"

	"github.com/tenure-go/tenure/test/internal/k8sfake"
)

const host = "127.0.0.1"

func main() {
	dir := flag.String("dir", "", "the `directory` of the data, the certificate and the files of users and rights")
	port := flag.Int("port", 0, "the `port` of the API")
	flag.Int("etcd-port", 0, "ignored")
	flag.Int("peer-port", 0, "ignored")
	flag.Parse()
	if err := run(*dir, *port); err != nil {
		fmt.Fprintln(os.Stderr, "fake:", err)
		os.Exit(1)
	}
}

// run serves until a signal asks it to stop.
func run(dir string, port int) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	s, err := k8sfake.Open(dir)
	if err != nil {
		return err
	}
	pair, err := certificate(dir)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", fmt.Sprint(host, ":", port))
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler: s, ErrorLog: log.New(io.Discard, "", 0),
		TLSConfig:   &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, ClientAuth: tls.RequestClientCert},
		BaseContext: func(net.Listener) context.Context { return ctx }, // watches end with it
	}
	context.AfterFunc(ctx, func() { _ = server.Shutdown(context.Background()) })
	ready := map[string]string{"URL": fmt.Sprintf("https://%s:%d", host, port)}
	if err := json.NewEncoder(os.Stdout).Encode(ready); err != nil {
		return err
	}
	if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return s.Close()
}

// certificate makes a certificate at the first start.
func certificate(dir string) (tls.Certificate, error) {
	certFile, keyFile := filepath.Join(dir, "server.crt"), filepath.Join(dir, "server.key")
	if _, err := os.Stat(certFile); err != nil {
		cert, key, err := certutil.GenerateSelfSignedCertKey(host, []net.IP{net.ParseIP(host)}, nil)
		if err != nil {
			return tls.Certificate{}, err
		}
		if err := errors.Join(os.WriteFile(certFile, cert, 0o600), os.WriteFile(keyFile, key, 0o600)); err != nil {
			return tls.Certificate{}, err
		}
	}
	return tls.LoadX509KeyPair(certFile, keyFile)
}
