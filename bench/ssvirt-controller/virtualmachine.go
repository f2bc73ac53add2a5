package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var groupVersion = schema.GroupVersion{Group: "kubevirt.io", Version: "v1"}

func addToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(groupVersion, &VirtualMachine{}, &VirtualMachineList{})
	metav1.AddToGroupVersion(scheme, groupVersion)
	return nil
}

// VirtualMachine is KubeVirt's type with the fields that the controller reads.
type VirtualMachine struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              VirtualMachineSpec   `json:"spec"`
	Status            VirtualMachineStatus `json:"status,omitempty"`
}

type VirtualMachineSpec struct {
	Running *bool `json:"running,omitempty"`
}

type VirtualMachineStatus struct {
	PrintableStatus string `json:"printableStatus,omitempty"`
}

type VirtualMachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []VirtualMachine `json:"items"`
}

func (in *VirtualMachine) DeepCopyObject() runtime.Object {
	return in.deepCopy()
}

func (in *VirtualMachine) deepCopy() *VirtualMachine {
	out := *in
	out.ObjectMeta = *in.ObjectMeta.DeepCopy()
	if in.Spec.Running != nil {
		running := *in.Spec.Running
		out.Spec.Running = &running
	}
	return &out
}

func (in *VirtualMachineList) DeepCopyObject() runtime.Object {
	out := &VirtualMachineList{TypeMeta: in.TypeMeta, ListMeta: *in.ListMeta.DeepCopy()}
	for i := range in.Items {
		out.Items = append(out.Items, *in.Items[i].deepCopy())
	}
	return out
}

func mapVMStatus(vm *VirtualMachine) string {
	if !vm.DeletionTimestamp.IsZero() {
		return "DELETING"
	}
	switch vm.Status.PrintableStatus {
	case "Running", "Migrating":
		return "POWERED_ON"
	case "Stopped":
		return "POWERED_OFF"
	case "Starting":
		return "POWERING_ON"
	case "Stopping", "Terminating":
		return "POWERING_OFF"
	case "Paused":
		return "SUSPENDED"
	case "Provisioning", "WaitingForVolumeBinding", "WaitingForReceiver":
		return "STARTING"
	case "CrashLoopBackOff", "ErrorUnschedulable", "ErrImagePull", "ImagePullBackOff", "ErrorPvcNotFound", "DataVolumeError":
		return "ERROR"
	case "":
		if vm.Spec.Running != nil && *vm.Spec.Running {
			return "STARTING"
		}
		return "STOPPED"
	default:
		return "UNKNOWN"
	}
}
