package main

import (
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// The lists in this file define the part of vim25 that the client knows: the listed items and every type they refer to.

// calls lists the methods. To support another method, add it here and run `make generate`.
var calls = []any{
	methods.RetrieveServiceContentBody{},
	methods.CurrentTimeBody{},
	methods.LoginBody{},
	methods.LogoutBody{},
	methods.TerminateSessionBody{},

	methods.RetrievePropertiesExBody{},
	methods.ContinueRetrievePropertiesExBody{},
	methods.CreatePropertyCollectorBody{},
	methods.DestroyPropertyCollectorBody{},
	methods.CreateFilterBody{},
	methods.DestroyPropertyFilterBody{},
	methods.WaitForUpdatesExBody{},
	methods.CreateContainerViewBody{},
	methods.CreateListViewBody{},
	methods.ModifyListViewBody{},
	methods.DestroyViewBody{},

	methods.FindByUuidBody{},
	methods.FindChildBody{},

	methods.CreateFolderBody{},
	methods.Rename_TaskBody{},
	methods.CloneVM_TaskBody{},
	methods.ReconfigVM_TaskBody{},
	methods.CreateSnapshot_TaskBody{},
	methods.PowerOnVM_TaskBody{},
	methods.PowerOffVM_TaskBody{},
	methods.ShutdownGuestBody{},
	methods.Destroy_TaskBody{},
	methods.UnregisterAndDestroy_TaskBody{},
	methods.CancelTaskBody{},
	methods.AddCustomFieldDefBody{},
	methods.SetFieldBody{},
	methods.MarkAsTemplateBody{},
	methods.EnterMaintenanceMode_TaskBody{},
	methods.ExitMaintenanceMode_TaskBody{},
}

// properties lists the properties of managed objects that can be read and watched.
var properties = []managed{
	{mo.VirtualMachine{}, []string{
		"name", "parent", "customValue", "availableField", "recentTask", "datastore", "network", "resourcePool",
		"config", "config.instanceUuid", "config.uuid", "config.template", "config.annotation", "config.extraConfig",
		"config.changeVersion", "config.cpuHotAddEnabled", "config.memoryHotAddEnabled", "config.hotPlugMemoryLimit", "config.hardware",
		"config.hardware.device", "config.hardware.memoryMB", "config.hardware.numCPU",
		"runtime.powerState", "runtime.connectionState", "runtime.host", "runtime.question",
		"guest.ipAddress", "guest.hostName", "guest.net", "guest.guestState", "guest.toolsRunningStatus",
		"snapshot", "snapshot.currentSnapshot", "summary.quickStats", "summary.quickStats.overallCpuDemand",
		"summary.quickStats.guestMemoryUsage", "summary.quickStats.hostMemoryUsage",
	}},
	{mo.Folder{}, []string{"name", "parent", "childType", "childEntity", "customValue"}},
	{mo.Datacenter{}, []string{"name", "parent", "vmFolder", "hostFolder", "datastoreFolder", "networkFolder"}},
	{mo.ComputeResource{}, []string{"name", "parent", "host", "datastore", "network", "resourcePool"}},
	{mo.ClusterComputeResource{}, []string{"name", "parent", "host", "datastore", "network", "resourcePool"}},
	{mo.ResourcePool{}, []string{"name", "parent", "owner", "resourcePool", "vm"}},
	{mo.Datastore{}, []string{"name", "parent", "summary", "host"}},
	{mo.Network{}, []string{"name", "parent", "host"}},
	{mo.HostSystem{}, []string{
		"name", "parent", "vm", "datastore", "network", "customValue",
		"runtime.connectionState", "runtime.inMaintenanceMode", "runtime.powerState",
		"summary.hardware", "summary.quickStats", "summary.customValue",
		"config.graphicsInfo", "config.pciPassthruInfo", "config.sharedPassthruGpuTypes", "config.sharedGpuCapabilities",
		"hardware.pciDevice", "hardware.systemInfo",
	}},
	{mo.Task{}, []string{
		"info", "info.state", "info.error", "info.result", "info.progress", "info.entity", "info.descriptionId",
		"info.cancelled", "info.queueTime", "info.startTime", "info.completeTime",
	}},
	{mo.SessionManager{}, []string{"currentSession", "sessionList"}},
	{mo.CustomFieldsManager{}, []string{"field"}},
	{mo.ScheduledTaskManager{}, []string{"scheduledTask"}},
	{mo.ScheduledTask{}, []string{
		"info", "info.name", "info.enabled", "info.action", "info.entity", "info.taskObject", "info.state",
		"info.nextRunTime", "info.prevRunTime",
	}},
	{mo.ContainerView{}, []string{"view"}},
	{mo.ListView{}, []string{"view"}},
}

type managed struct {
	object any
	paths  []string
}

// subtypes lists the types that no method refers to directly. Other subtypes are decoded as their nearest known base type.
var subtypes = []any{
	types.TraversalSpec{}, types.OptionValue{}, types.CustomFieldStringValue{},
	types.VirtualMachineDefinedProfileSpec{},

	types.VirtualDisk{}, types.VirtualDiskFlatVer2BackingInfo{}, types.VirtualDiskSparseVer2BackingInfo{},
	types.VirtualDiskSeSparseBackingInfo{}, types.VirtualEthernetCard{}, types.VirtualE1000e{}, types.VirtualVmxnet3{},
	types.VirtualEthernetCardNetworkBackingInfo{}, types.VirtualEthernetCardDistributedVirtualPortBackingInfo{},
	types.VirtualPCIPassthrough{}, types.VirtualPCIPassthroughVmiopBackingInfo{},
	types.VirtualPCIPassthroughDynamicBackingInfo{}, types.VirtualPCIPassthroughDeviceBackingInfo{},
	types.ParaVirtualSCSIController{}, types.VirtualLsiLogicController{},
	types.HostSriovInfo{}, types.MethodAction{},

	types.NotAuthenticated{}, types.NoPermission{}, types.InvalidLogin{}, types.ManagedObjectNotFound{},
	types.DuplicateName{}, types.AlreadyExists{}, types.NotFound{}, types.InvalidArgument{}, types.InvalidName{},
	types.InvalidState{}, types.InvalidPowerState{}, types.ResourceInUse{}, types.TaskInProgress{},
	types.ConcurrentAccess{}, types.RequestCanceled{}, types.NotSupported{}, types.InvalidCollectorVersion{},
	types.InvalidProperty{}, types.InsufficientResourcesFault{}, types.NoDiskSpace{}, types.ToolsUnavailable{},
	types.HostNotConnected{}, types.HostCommunication{}, types.FileAlreadyExists{}, types.InvalidDatastore{},
	types.InvalidVmConfig{}, types.InvalidDeviceSpec{}, types.GenericVmConfigFault{}, types.CustomizationFault{},
	types.Timedout{}, types.InvalidType{}, types.InvalidRequest{}, types.MethodNotFound{}, types.SystemError{},
	types.RestrictedVersion{}, types.RestrictedByAdministrator{}, types.NoPermissionOnHost{},
	types.SnapshotFault{}, types.FileLocked{}, types.FileNotFound{}, types.CannotAccessFile{},
}
