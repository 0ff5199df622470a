package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/util/compatibility"
	restclient "k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

const (
	host        = "127.0.0.1"
	certificate = "server.crt"
	key         = "server.key"
)

func (p place) url() string { return fmt.Sprintf("https://%s:%d", host, p.port) }

// startEtcd starts etcd on its files, and waits until it answers.
func startEtcd(p place) (*embed.Etcd, error) {
	c := embed.NewConfig()
	c.Name, c.Dir, c.LogLevel, c.LogOutputs = "etcd", filepath.Join(p.dir, "etcd"), "error", []string{"stderr"}
	clients, peers := url.URL{Scheme: "http", Host: fmt.Sprint(host, ":", p.etcdPort)}, url.URL{Scheme: "http", Host: fmt.Sprint(host, ":", p.peerPort)}
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{clients}, []url.URL{clients}
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{peers}, []url.URL{peers}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	e, err := embed.StartEtcd(c)
	if err != nil {
		return nil, err
	}
	select {
	case <-e.Server.ReadyNotify():
		return e, nil
	case err := <-e.Err():
		return nil, err
	}
}

var (
	scheme = runtime.NewScheme()
	codecs = serializer.NewCodecFactory(scheme)
)

func init() {
	utilruntime.Must(coordination.AddToScheme(scheme))
	utilruntime.Must(core.AddToScheme(scheme))
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	// The types of this version are also those within the server.
	internal := schema.GroupVersion{Group: coordination.GroupName, Version: runtime.APIVersionInternal}
	scheme.AddKnownTypes(internal, &coordination.Lease{}, &coordination.LeaseList{})
	internal.Group = core.GroupName
	scheme.AddKnownTypes(internal, &core.Pod{}, &core.PodList{})
	utilruntime.Must(scheme.SetVersionPriority(coordination.SchemeGroupVersion))
	utilruntime.Must(scheme.SetVersionPriority(core.SchemeGroupVersion))
}

func newServer(p place) (*genericapiserver.GenericAPIServer, error) {
	config := genericapiserver.NewRecommendedConfig(codecs)
	config.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	definitions := openapinamer.NewDefinitionNamer(scheme)
	config.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(openAPI, definitions)
	config.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(openAPI, definitions)
	config.SkipOpenAPIInstallation = true
	config.ShutdownSendRetryAfter = true
	if err := secure(p, &config.Config); err != nil {
		return nil, err
	}
	files := access{p.dir}
	config.Authentication.Authenticator = files
	config.Authorization.Authorizer, config.RuleResolver = files, nil
	config.AdmissionControl = files
	backend := storagebackend.NewDefaultConfig("/registry", codecs.LegacyCodec(coordination.SchemeGroupVersion, core.SchemeGroupVersion))
	backend.Transport.ServerList = []string{fmt.Sprintf("http://%s:%d", host, p.etcdPort)}
	config.RESTOptionsGetter = getter{backend}
	server, err := config.Complete().New("test", genericapiserver.NewEmptyDelegate())
	if err != nil {
		return nil, err
	}
	leases, err := newLeases(config.RESTOptionsGetter)
	if err != nil {
		return nil, err
	}
	pods, err := newPods(config.RESTOptionsGetter)
	if err != nil {
		return nil, err
	}
	legacy := genericapiserver.NewDefaultAPIGroupInfo(core.GroupName, scheme, metav1.ParameterCodec, codecs)
	legacy.VersionedResourcesStorageMap["v1"] = map[string]rest.Storage{"pods": pods}
	if err := server.InstallLegacyAPIGroup(genericapiserver.DefaultLegacyAPIPrefix, &legacy); err != nil {
		return nil, err
	}
	group := genericapiserver.NewDefaultAPIGroupInfo(coordination.GroupName, scheme, metav1.ParameterCodec, codecs)
	group.VersionedResourcesStorageMap["v1"] = map[string]rest.Storage{"leases": leases}
	return server, server.InstallAPIGroup(&group)
}

// getter says where all objects are stored.
type getter struct{ backend *storagebackend.Config }

// GetRESTOptions returns the etcd, behind a cache for watches, as a kube-apiserver has.
func (g getter) GetRESTOptions(resource schema.GroupResource, _ runtime.Object) (generic.RESTOptions, error) {
	return generic.RESTOptions{
		StorageConfig: g.backend.ForResource(resource), Decorator: registry.StorageWithCacher(),
		DeleteCollectionWorkers: 1, ResourcePrefix: resource.Group + "/" + resource.Resource,
	}, nil
}

// secure listens with a certificate that it makes at the first start.
func secure(p place, config *genericapiserver.Config) error {
	certFile, keyFile := filepath.Join(p.dir, certificate), filepath.Join(p.dir, key)
	if _, err := os.Stat(certFile); err != nil {
		cert, private, err := certutil.GenerateSelfSignedCertKey(host, []net.IP{net.ParseIP(host)}, nil)
		if err != nil {
			return err
		}
		for name, text := range map[string][]byte{certFile: cert, keyFile: private} {
			if err := os.WriteFile(name, text, 0o600); err != nil {
				return err
			}
		}
	}
	pair, err := dynamiccertificates.NewDynamicServingContentFromFiles("serving", certFile, keyFile)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", fmt.Sprint(host, ":", p.port))
	if err != nil {
		return err
	}
	pem, _ := pair.CurrentCertKeyContent()
	asks, err := dynamiccertificates.NewStaticCAContent("clients", pem) // access verifies them
	if err != nil {
		return err
	}
	config.SecureServing = &genericapiserver.SecureServingInfo{Listener: listener, Cert: pair, ClientCA: asks}
	config.PublicAddress = net.ParseIP(host)
	token := make([]byte, 16)
	if _, err := rand.Read(token); err != nil {
		return err
	}
	config.LoopbackClientConfig = &restclient.Config{
		Host: p.url(), BearerToken: hex.EncodeToString(token), TLSClientConfig: restclient.TLSClientConfig{CAFile: certFile},
	}
	return nil
}

// awaitReady waits until the server answers that it is ready.
func awaitReady(ctx context.Context, p place, failed <-chan error) error {
	pem, err := os.ReadFile(filepath.Join(p.dir, certificate))
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	defer client.CloseIdleConnections()
	for {
		answer, err := client.Get(p.url() + "/readyz")
		if err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case err := <-failed:
			return err
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// openAPI describes the types just as far as the server needs it to keep track of fields.
func openAPI(common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	object := common.OpenAPIDefinition{Schema: spec.Schema{
		SchemaProps:      spec.SchemaProps{Type: []string{"object"}},
		VendorExtensible: spec.VendorExtensible{Extensions: spec.Extensions{"x-kubernetes-preserve-unknown-fields": true}},
	}}
	all := map[string]common.OpenAPIDefinition{}
	for name, of := range map[string]string{"Lease": "coordination", "LeaseList": "coordination", "Pod": "core", "PodList": "core"} {
		all["k8s.io/api/"+of+"/v1."+name] = object
		all["io.k8s.api."+of+".v1."+name] = object
	}
	return all
}
