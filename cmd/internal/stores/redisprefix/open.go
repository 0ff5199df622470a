package redisprefix

import (
	"context"
	"crypto/tls"
	"os"
	"strings"

	"github.com/redis/rueidis"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores/kind"
	"github.com/tenure-go/tenure/driver/redisstore"
	"github.com/tenure-go/tenure/driver/reread"
)

// Open connects with the settings that elections need.
func (r *Place) Open(ctx context.Context, o kind.Options) (*kind.Opened, error) {
	option, err := r.option(ctx, o)
	if err != nil {
		return nil, fault.OfValue(err)
	}
	store, err := redisstore.Open(ctx, option, r.options()...)
	if err != nil {
		return nil, r.Explain(err)
	}
	return &kind.Opened{Driver: store, Close: store.Close}, nil
}

func (r *Place) options() []redisstore.Option {
	all := []redisstore.Option{redisstore.WithPrefix(r.prefix()), redisstore.WithWait(r.Wait)}
	if r.Cluster {
		all = append(all, redisstore.WithCluster())
	}
	return all
}

// option returns the options of the client. Passwords and the certificate in files are read again
// for each connection.
func (r *Place) option(ctx context.Context, o kind.Options) (rueidis.ClientOption, error) {
	option := rueidis.ClientOption{
		InitAddress: r.addresses(), SelectDB: r.Database, ClientName: strings.ReplaceAll(o.Client, " ", "-"),
		Username: r.User, Password: r.Password,
	}
	if r.Password == "" && r.PasswordFile == "" {
		option.Password = os.Getenv("REDISCLI_AUTH")
	}
	if r.TLS {
		config, err := r.tls(ctx, o)
		if err != nil {
			return option, err
		}
		option.TLSConfig = config
	}
	var err error
	if option.AuthCredentialsFn, err = logIn(r.User, r.PasswordFile, o); err != nil {
		return option, fault.New(kind.PasswordHint, "password-file: %w", err)
	}
	if r.Sentinel == "" {
		return option, nil
	}
	option.Sentinel = rueidis.SentinelOption{
		MasterSet: r.Sentinel, TLSConfig: option.TLSConfig, Username: r.SentinelUser, ClientName: option.ClientName,
	}
	if r.SentinelPasswordFile != "" {
		if option.Sentinel.Password, err = kind.ReadPassword(r.SentinelPasswordFile); err != nil {
			return option, fault.New("sentinel-"+kind.PasswordHint, "sentinel-password-file: %w", err)
		}
	}
	return option, nil
}

// logIn returns a function that reads the password for each connection; nil if there is no file.
func logIn(user, file string, o kind.Options) (func(rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error), error) {
	if file == "" {
		return nil, nil
	}
	source, err := kind.PasswordOf(file, o.Stale)
	if err != nil {
		return nil, err
	}
	return func(rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
		return rueidis.AuthCredentials{Username: user, Password: source.Get(context.Background())}, nil
	}, nil
}

// tls returns the settings for TLS. The client's certificate is read for each connection.
func (r *Place) tls(ctx context.Context, o kind.Options) (*tls.Config, error) {
	config, err := kind.TLSOfFiles("tls-", r.CA, r.Cert, r.Key)
	if err != nil {
		return nil, fault.New("tls-ca, tls-cert and tls-key name files in PEM; the last two go together", "%w", err)
	}
	if r.Cert == "" {
		return config, nil
	}
	read := func(context.Context) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(r.Cert, r.Key)
		return &pair, err
	}
	first, err := read(ctx)
	if err != nil {
		return nil, err
	}
	source := reread.New(first, read, o.Stale)
	config.Certificates = nil
	config.GetClientCertificate = func(info *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		return source.Get(info.Context()), nil
	}
	return config, nil
}
