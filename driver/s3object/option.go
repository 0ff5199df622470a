package s3object

// Option changes the behavior of New and FromEnvironment.
type Option func(*settings)

type settings struct {
	prefix    string
	bare      bool
	endpoint  string
	region    string
	pathStyle bool
}

func settle(opts []Option) settings {
	var set settings
	for _, opt := range opts {
		opt(&set)
	}
	return set
}

// WithPrefix puts all objects under a prefix, as into a folder. "a/b", "/a/b" and "a/b/" mean the
// same. The object's name is the prefix, a slash and the key, so key "b/x" under "a" is key "x"
// under "a/b".
func WithPrefix(prefix string) Option {
	return func(set *settings) { set.prefix = prefix }
}

// WithUnquotedETags begins with ETags without quotes in If-Match, as Ceph's gateway needs them.
// Without this option a store finds out by itself, after the first swap that the server refuses
// although the version is right.
func WithUnquotedETags() Option {
	return func(set *settings) { set.bare = true }
}

// WithEndpoint sets, for FromEnvironment, the URL of a server other than S3 itself, such as
// http://127.0.0.1:9000. The bucket is then addressed by path, as such servers expect.
func WithEndpoint(url string) Option {
	return func(set *settings) { set.endpoint = url }
}

// WithRegion sets, for FromEnvironment, the region of the bucket. It overrides the environment and
// the configuration files.
func WithRegion(region string) Option {
	return func(set *settings) { set.region = region }
}

// WithPathStyle makes FromEnvironment address the bucket by path (host/bucket/key) instead of by
// host (bucket.host/key). With WithEndpoint, or an endpoint in the configuration, that is always
// so.
func WithPathStyle() Option {
	return func(set *settings) { set.pathStyle = true }
}
