package s3object

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/tenure-go/tenure/driver"
)

// googleDomain has all addresses of Google Cloud Storage: storage.googleapis.com, that of a bucket
// below it, and those for regions and private networks.
const googleDomain = ".googleapis.com"

// checkService refuses a service that is known to be unfit by its address. Another address of the
// same service, such as that of a proxy, passes: the check before the first write remains.
func checkService(endpoint *string) error {
	u, err := url.Parse(aws.ToString(endpoint))
	if err != nil {
		return nil // the first request reports it
	}
	host := "." + strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if !strings.HasSuffix(host, googleDomain) {
		return nil
	}
	return fmt.Errorf("endpoint %s: %w: Google Cloud Storage documents If-Match and If-None-Match for reads only, "+
		"so two candidates could lead at once; hold the election in NATS, Kafka or a SQL database, or in a bucket of "+
		"another server, such as MinIO or versitygw", u.Redacted(), driver.ErrUnfit)
}
