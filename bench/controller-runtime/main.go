// Comparator of `make bench ONLY=runtime`: the same jobs as bench/runtime/ours.ts, written idiomatically with
// controller-runtime. "status" sets the status of every Sample once; "hold" caches all ConfigMaps and does nothing; "lead"
// takes part in leader election.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/manager/signals"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

var sample = schema.GroupVersionKind{Group: "bench.vmwright.dev", Version: "v1", Kind: "Sample"}

func main() {
	workers := flag.Int("workers", 1, "maximum concurrent reconciles")
	phase := flag.String("phase", "Running", "phase to set in the status")
	namespace := flag.String("namespace", "default", "namespace to watch")
	objects := flag.Int64("objects", 0, "number of objects; \"last\" is printed after this many status updates")
	probes := flag.String("probes", " ", "name prefix of the objects for which the latency is printed")
	job := flag.String("job", "status", "status, lead, hold (unstructured cache) or hold-typed (typed cache without managed fields)")
	flag.Parse()
	logf.SetLogger(logr.Discard())

	cfg := config.GetConfigOrDie()
	// The default limit of 20 requests/s would dominate the result; our runtime has no limit.
	cfg.QPS = -1
	options := manager.Options{Metrics: metricsserver.Options{BindAddress: "0"}}
	options.Cache.DefaultNamespaces = map[string]cache.Config{*namespace: {}}
	if *job == "hold-typed" {
		options.Cache.DefaultTransform = cache.TransformStripManagedFields()
	}
	if *job == "lead" {
		options.LeaderElection = true
		options.LeaderElectionID = "bench-go"
		options.LeaderElectionNamespace = "default"
		options.LeaderElectionReleaseOnCancel = true
	}
	mgr, err := manager.New(cfg, options)
	if err != nil {
		log.Fatal(err)
	}

	var watched client.Object
	var reconciler reconcile.Func
	switch *job {
	case "status":
		watched, reconciler = object(sample), setStatus(mgr.GetClient(), *phase, *objects)
	case "lead":
		watched, reconciler = object(sample), doNothing
	case "hold":
		watched, reconciler = object(corev1.SchemeGroupVersion.WithKind("ConfigMap")), doNothing
	case "hold-typed":
		watched, reconciler = &corev1.ConfigMap{}, doNothing
	default:
		log.Fatalf("unknown job %q", *job)
	}
	err = builder.ControllerManagedBy(mgr).
		Named("bench").
		For(watched, builder.WithPredicates(recordProbes(*probes), predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: *workers}).
		Complete(reconciler)
	if err != nil {
		log.Fatal(err)
	}

	ctx := signals.SetupSignalHandler()
	go func() {
		// A standby of the job "lead" has no informers yet, so WaitForCacheSync returns as soon as the cache has started. The other
		// jobs wait until the informer has synced.
		if *job == "lead" {
			mgr.GetCache().WaitForCacheSync(ctx)
			fmt.Println("synced")
			return
		}
		<-mgr.Elected()
		informer, err := mgr.GetCache().GetInformer(ctx, watched)
		for err == nil && !informer.HasSynced() {
			time.Sleep(10 * time.Millisecond)
		}
		if err == nil {
			fmt.Println("synced")
		}
	}()
	if *job == "lead" {
		go func() {
			<-mgr.Elected()
			fmt.Println("leads")
		}()
	}
	if err := mgr.Start(ctx); err != nil {
		log.Fatal(err)
	}
}

func doNothing(context.Context, reconcile.Request) (reconcile.Result, error) {
	return reconcile.Result{}, nil
}

// eventTimes has the time of the create event of each probe, by name.
var eventTimes sync.Map

func recordProbes(prefix string) predicate.Predicate {
	return predicate.Funcs{CreateFunc: func(e event.CreateEvent) bool {
		if strings.HasPrefix(e.Object.GetName(), prefix) {
			eventTimes.Store(e.Object.GetName(), time.Now())
		}
		return true
	}}
}

func setStatus(c client.Client, phase string, objects int64) reconcile.Func {
	var updated atomic.Int64
	return func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		if at, ok := eventTimes.Load(request.Name); ok {
			fmt.Printf("waited %f\n", float64(time.Since(at.(time.Time)).Microseconds())/1000)
		}
		o := object(sample)
		if err := c.Get(ctx, request.NamespacedName, o); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
		if has, _, _ := unstructured.NestedString(o.Object, "status", "phase"); has == phase {
			return reconcile.Result{}, nil
		}
		before := o.DeepCopy()
		status := map[string]any{"phase": phase, "message": "is running"}
		if err := unstructured.SetNestedMap(o.Object, status, "status"); err != nil {
			return reconcile.Result{}, err
		}
		if err := c.Status().Patch(ctx, o, client.MergeFrom(before)); err != nil {
			return reconcile.Result{}, err
		}
		switch updated.Add(1) {
		case 1:
			fmt.Println("first")
		case objects:
			fmt.Println("last")
		}
		return reconcile.Result{}, nil
	}
}

func object(kind schema.GroupVersionKind) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(kind)
	return o
}
