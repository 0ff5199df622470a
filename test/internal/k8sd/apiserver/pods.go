package main

import (
	"context"

	core "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/storage/names"
)

// newPods returns the storage of Pods. No kubelet runs them.
func newPods(options generic.RESTOptionsGetter) (*registry.Store, error) {
	return newStore(options, core.Resource("pods"), core.Resource("pod"), podStrategy{leaseStrategy{scheme, names.SimpleNameGenerator}},
		func() runtime.Object { return &core.Pod{} }, func() runtime.Object { return &core.PodList{} })
}

// podStrategy has the rules of kube-apiserver for the metadata of Pods, and none for the rest.
type podStrategy struct{ leaseStrategy }

func (podStrategy) AllowCreateOnUpdate(context.Context) bool { return false }

func (podStrategy) Validate(_ context.Context, o runtime.Object) field.ErrorList {
	return apivalidation.ValidateObjectMeta(&o.(*core.Pod).ObjectMeta, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
}

func (podStrategy) ValidateUpdate(_ context.Context, o, old runtime.Object) field.ErrorList {
	return apivalidation.ValidateObjectMetaUpdate(&o.(*core.Pod).ObjectMeta, &old.(*core.Pod).ObjectMeta, field.NewPath("metadata"))
}
