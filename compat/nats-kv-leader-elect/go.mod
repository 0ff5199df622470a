module github.com/tenure-go/tenure/compat/nats-kv-leader-elect

go 1.26.0

require (
	github.com/nats-io/nats.go v1.55.0
	github.com/synadia-io/orbit.go/natscontext v0.1.1
	github.com/tenure-go/tenure v0.0.0
	github.com/tenure-go/tenure/driver/natskv v0.0.0
)

require (
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/nats-io/nkeys v0.4.16 // indirect
	github.com/nats-io/nuid v1.0.1 // indirect
	golang.org/x/crypto v0.58.0 // indirect
	golang.org/x/net v0.60.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace (
	github.com/tenure-go/tenure => ../..
	github.com/tenure-go/tenure/driver/natskv => ../../driver/natskv
)
