// Comparator of `make bench ONLY=mirror`: the VM status controller as SSVirt's design proposes it, with controller-runtime and
// gorm. Each reconcile of a VirtualMachine finds the row, updates it in a transaction, and records an event. Five workers run
// concurrently.
//
// Differences from the proposal, which correct the controller or make it faster: the status comes from printableStatus, because
// KubeVirt's VirtualMachines have no phase; the VirtualMachine type has only the fields that are read; nothing is logged.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/go-logr/logr"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	vappLabel      = "vapp.ssvirt.io/vapp-id"
	workers        = 5
	maxConnections = 10
	baseDelay      = time.Second
	maxDelay       = 5 * time.Minute
)

// VMStatusController reconciles VirtualMachines with their rows.
type VMStatusController struct {
	client.Client
	VMRepo   *VMRepository
	Recorder record.EventRecorder
}

func main() {
	ctrl.SetLogger(logr.Discard())
	metrics.Registry.MustRegister(statusUpdates, updateDuration, reconcileErrors)
	db, err := gorm.Open(postgres.Open(os.Getenv("DATABASE_URL")), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		log.Fatal(err)
	}
	pool, err := db.DB()
	if err != nil {
		log.Fatal(err)
	}
	pool.SetMaxOpenConns(maxConnections)
	pool.SetMaxIdleConns(maxConnections)

	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), addToScheme(scheme)); err != nil {
		log.Fatal(err)
	}
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme:                  scheme,
		Metrics:                 metricsserver.Options{BindAddress: os.Getenv("CONTROLLER_METRICS_ADDR")},
		LeaderElection:          true,
		LeaderElectionID:        "ssvirt-vm-controller",
		LeaderElectionNamespace: os.Getenv("CONTROLLER_NAMESPACE"),
	})
	if err != nil {
		log.Fatal(err)
	}
	reconciler := &VMStatusController{
		Client:   mgr.GetClient(),
		VMRepo:   &VMRepository{db: db},
		Recorder: mgr.GetEventRecorderFor("vm-status-controller"),
	}
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](baseDelay, maxDelay)
	err = ctrl.NewControllerManagedBy(mgr).
		For(&VirtualMachine{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, RateLimiter: limiter}).
		Complete(reconciler)
	if err != nil {
		log.Fatal(err)
	}
	if err := mgr.Start(ctrl.SetupSignalHandler()); err != nil {
		log.Fatal(err)
	}
}

// Reconcile writes the status of one VirtualMachine to its row.
func (r *VMStatusController) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	vm := &VirtualMachine{}
	if err := r.Get(ctx, req.NamespacedName, vm); err != nil {
		if apierrors.IsNotFound(err) {
			return r.handleVMDeletion(ctx, req.NamespacedName)
		}
		return ctrl.Result{}, err
	}
	return r.handleVMStatusUpdate(ctx, vm)
}

func (r *VMStatusController) findVMRecord(ctx context.Context, vm *VirtualMachine) (*VM, error) {
	if vappID, ok := vm.Labels[vappLabel]; ok {
		return r.VMRepo.GetByVAppAndVMName(ctx, vappID, vm.Name)
	}
	return r.VMRepo.GetByNamespaceAndVMName(ctx, vm.Namespace, vm.Name)
}

func (r *VMStatusController) handleVMStatusUpdate(ctx context.Context, vm *VirtualMachine) (ctrl.Result, error) {
	started := time.Now()
	record, err := r.findVMRecord(ctx, vm)
	if err != nil {
		return r.lookupFailed(vm.Namespace, err)
	}
	status := mapVMStatus(vm)
	now := time.Now()
	if record.Status == status && record.UpdatedAt.After(now.Add(-time.Minute)) {
		return ctrl.Result{}, nil
	}
	if err := r.VMRepo.UpdateStatus(ctx, record.ID, status); err != nil {
		reconcileErrors.WithLabelValues(vm.Namespace, "update").Inc()
		statusUpdates.WithLabelValues(vm.Namespace, status, "error").Inc()
		r.Recorder.Event(vm, corev1.EventTypeWarning, "DatabaseUpdateFailed",
			fmt.Sprintf("Failed to update VM status in database: %v", err))
		return ctrl.Result{}, err
	}
	statusUpdates.WithLabelValues(vm.Namespace, status, "success").Inc()
	updateDuration.WithLabelValues(vm.Namespace).Observe(time.Since(started).Seconds())
	r.Recorder.Event(vm, corev1.EventTypeNormal, "StatusUpdated", fmt.Sprintf("VM status updated to %s", status))
	return ctrl.Result{}, nil
}

func (r *VMStatusController) handleVMDeletion(ctx context.Context, name types.NamespacedName) (ctrl.Result, error) {
	record, err := r.VMRepo.GetByNamespaceAndVMName(ctx, name.Namespace, name.Name)
	if err != nil {
		return r.lookupFailed(name.Namespace, err)
	}
	return ctrl.Result{}, r.VMRepo.UpdateStatus(ctx, record.ID, "DELETED")
}

// lookupFailed ignores VirtualMachines without a row, which SSVirt does not manage.
func (r *VMStatusController) lookupFailed(namespace string, err error) (ctrl.Result, error) {
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return ctrl.Result{}, nil
	}
	reconcileErrors.WithLabelValues(namespace, "lookup").Inc()
	return ctrl.Result{}, err
}
