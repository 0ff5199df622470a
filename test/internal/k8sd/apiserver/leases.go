package main

import (
	"context"

	coordination "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/names"
)

// newLeases returns the storage of Leases.
func newLeases(options generic.RESTOptionsGetter) (*registry.Store, error) {
	return newStore(options, coordination.Resource("leases"), coordination.Resource("lease"), leaseStrategy{scheme, names.SimpleNameGenerator},
		func() runtime.Object { return &coordination.Lease{} }, func() runtime.Object { return &coordination.LeaseList{} })
}

// strategy has the rules of one type.
type strategy interface {
	rest.RESTCreateStrategy
	rest.RESTUpdateStrategy
}

// newStore returns the storage of one type.
func newStore(
	options generic.RESTOptionsGetter, many, one schema.GroupResource, rules strategy, object, list func() runtime.Object,
) (*registry.Store, error) {
	store := &registry.Store{
		NewFunc: object, NewListFunc: list,
		PredicateFunc: func(l labels.Selector, f fields.Selector) storage.SelectionPredicate {
			return storage.SelectionPredicate{Label: l, Field: f, GetAttrs: attributes}
		},
		DefaultQualifiedResource: many, SingularQualifiedResource: one,
		CreateStrategy: rules, UpdateStrategy: rules, DeleteStrategy: rules,
		TableConvertor: rest.NewDefaultTableConvertor(many),
	}
	return store, store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: options, AttrFunc: attributes})
}

func attributes(o runtime.Object) (labels.Set, fields.Set, error) {
	all, err := meta.Accessor(o)
	if err != nil {
		return nil, nil, err
	}
	return all.GetLabels(), fields.Set{"metadata.name": all.GetName(), "metadata.namespace": all.GetNamespace()}, nil
}

// leaseStrategy has the rules of kube-apiserver for Leases, as far as elections can meet them: an
// update may create a Lease, it needs a resourceVersion, and durations are positive.
type leaseStrategy struct {
	runtime.ObjectTyper
	names.NameGenerator
}

func (leaseStrategy) NamespaceScoped() bool                                            { return true }
func (leaseStrategy) PrepareForCreate(context.Context, runtime.Object)                 {}
func (leaseStrategy) PrepareForUpdate(context.Context, runtime.Object, runtime.Object) {}
func (leaseStrategy) WarningsOnCreate(context.Context, runtime.Object) []string        { return nil }
func (leaseStrategy) WarningsOnUpdate(_ context.Context, _, _ runtime.Object) []string { return nil }
func (leaseStrategy) Canonicalize(runtime.Object)                                      {}
func (leaseStrategy) AllowCreateOnUpdate(context.Context) bool                         { return true }
func (leaseStrategy) AllowUnconditionalUpdate(context.Context) bool                    { return false }

func (leaseStrategy) Validate(_ context.Context, o runtime.Object) field.ErrorList {
	l := o.(*coordination.Lease)
	all := apivalidation.ValidateObjectMeta(&l.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	return append(all, validateSpec(l.Spec)...)
}

func (leaseStrategy) ValidateUpdate(_ context.Context, o, old runtime.Object) field.ErrorList {
	l, before := o.(*coordination.Lease), old.(*coordination.Lease)
	all := apivalidation.ValidateObjectMetaUpdate(&l.ObjectMeta, &before.ObjectMeta, field.NewPath("metadata"))
	return append(all, validateSpec(l.Spec)...)
}

func validateSpec(s coordination.LeaseSpec) (all field.ErrorList) {
	path := field.NewPath("spec")
	if s.LeaseDurationSeconds != nil && *s.LeaseDurationSeconds <= 0 {
		all = append(all, field.Invalid(path.Child("leaseDurationSeconds"), *s.LeaseDurationSeconds, "must be greater than 0"))
	}
	if s.LeaseTransitions != nil && *s.LeaseTransitions < 0 {
		all = append(all, field.Invalid(path.Child("leaseTransitions"), *s.LeaseTransitions, "must be greater than or equal to 0"))
	}
	return all
}
