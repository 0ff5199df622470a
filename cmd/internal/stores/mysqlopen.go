package stores

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/tenure-go/tenure/cmd/internal/fault"
)

func (s *SQL) openMySQL(o Options) (*sql.DB, error) {
	_ = mysql.SetLogger(&mysql.NopLogger{}) // the default logger prints each lost connection
	connector, err := s.mysqlConnector(o)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

// mysql reads the variables and the file that the client mysql reads, too.
func (s *SQL) mysql() (*mysql.Config, error) {
	u, err := url.Parse("mysql:" + s.URL)
	if err != nil {
		return nil, fault.OfValue(fault.New("give a URL such as "+shapeMySQL+", with special characters of the password as %XX, such as %40 for @", "is not a valid URL"))
	}
	cfg := mysql.NewConfig()
	file := clientFile()
	password, given := u.User.Password()
	cfg.User = cmp.Or(u.User.Username(), file["user"], os.Getenv("USER"))
	cfg.Passwd = password
	if !given {
		cfg.Passwd = cmp.Or(os.Getenv("MYSQL_PWD"), file["password"])
	}
	cfg.Net, cfg.DBName = "tcp", strings.TrimPrefix(u.Path, "/")
	cfg.Addr = net.JoinHostPort(cmp.Or(u.Hostname(), file["host"], "127.0.0.1"), cmp.Or(u.Port(), file["port"], "3306"))
	if err := setTLS(cfg, u.Query(), file); err != nil {
		return nil, err
	}
	return cfg, nil
}

// setTLS checks the server's certificate if the URL has tls=true, or if the URL or the client's
// file names an authority or a certificate and the URL has no tls.
func setTLS(cfg *mysql.Config, given url.Values, file map[string]string) error {
	either := func(key string) string { return cmp.Or(given.Get(key), file[key]) }
	ca, cert, key := either("ssl-ca"), either("ssl-cert"), either("ssl-key")
	mode := given.Get("tls")
	if mode != "" && mode != "true" || ca == "" && cert == "" && key == "" {
		cfg.TLSConfig = cmp.Or(mode, "preferred")
		return nil
	}
	c, err := tlsOfFiles("ssl-", ca, cert, key)
	if err != nil {
		return fault.OfValue(fault.New("ssl-ca, ssl-cert and ssl-key, in the URL or in ~/.my.cnf, name files in PEM; the last two go together", "%w", err))
	}
	cfg.TLS = c
	return nil
}

// tlsOfFiles takes the authorities of the system if ca is empty. The prefix begins the names of the
// settings in errors.
func tlsOfFiles(prefix, ca, cert, key string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return nil, fmt.Errorf("%sca: %w", prefix, err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%sca: %s holds no certificate in PEM", prefix, ca)
		}
	}
	if cert == "" && key == "" {
		return c, nil
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("%scert %q with %skey %q: %w", prefix, cert, prefix, key, err)
	}
	c.Certificates = []tls.Certificate{pair}
	return c, nil
}

// clientFile returns the settings of the section client of ~/.my.cnf. Names have dashes, as in
// ssl-ca, also where the file has underscores.
func clientFile() map[string]string {
	settings := map[string]string{}
	home, err := os.UserHomeDir()
	if err != nil {
		return settings
	}
	text, err := os.ReadFile(filepath.Join(home, ".my.cnf"))
	if err != nil {
		return settings
	}
	section := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			section = strings.Trim(line, "[]")
		}
		if key, value, ok := strings.Cut(line, "="); ok && section == "client" {
			name := strings.ReplaceAll(strings.TrimSpace(key), "_", "-")
			settings[name] = strings.Trim(strings.TrimSpace(value), `"'`)
		}
	}
	return settings
}
