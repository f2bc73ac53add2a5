// Written by `make generate` (tools/vim25) from the vim25 types of govmomi. Do not edit.

export interface ManagedObjectReference<Type extends string = string> {
  readonly type: Type;
  readonly value: string;
}

/** Base of all data types. */
export interface DataObject {
  /** Name of the type, when it is not the declared one. */
  readonly _type?: string;
}

/** The types by name: `Vim25['VirtualMachineCloneSpec']`. */
export interface Vim25 {
  readonly AboutInfo: AboutInfo;
  readonly Action: Action;
  readonly AlreadyExists: AlreadyExists;
  readonly ArrayUpdateSpec: ArrayUpdateSpec;
  readonly CannotAccessFile: CannotAccessFile;
  readonly ChoiceOption: ChoiceOption;
  readonly ConcurrentAccess: ConcurrentAccess;
  readonly CryptoKeyId: CryptoKeyId;
  readonly CryptoSpec: CryptoSpec;
  readonly CustomFieldDef: CustomFieldDef;
  readonly CustomFieldStringValue: CustomFieldStringValue;
  readonly CustomFieldValue: CustomFieldValue;
  readonly CustomizationAdapterMapping: CustomizationAdapterMapping;
  readonly CustomizationFault: CustomizationFault;
  readonly CustomizationGlobalIPSettings: CustomizationGlobalIPSettings;
  readonly CustomizationIPSettings: CustomizationIPSettings;
  readonly CustomizationIPSettingsIpV6AddressSpec: CustomizationIPSettingsIpV6AddressSpec;
  readonly CustomizationIdentitySettings: CustomizationIdentitySettings;
  readonly CustomizationIpGenerator: CustomizationIpGenerator;
  readonly CustomizationIpV6Generator: CustomizationIpV6Generator;
  readonly CustomizationOptions: CustomizationOptions;
  readonly CustomizationSpec: CustomizationSpec;
  readonly DatastoreHostMount: DatastoreHostMount;
  readonly DatastoreSummary: DatastoreSummary;
  readonly Description: Description;
  readonly DeviceGroupId: DeviceGroupId;
  readonly DistributedVirtualSwitchPortConnection: DistributedVirtualSwitchPortConnection;
  readonly DuplicateName: DuplicateName;
  readonly DynamicProperty: DynamicProperty;
  readonly ElementDescription: ElementDescription;
  readonly FaultDomainId: FaultDomainId;
  readonly FaultToleranceConfigInfo: FaultToleranceConfigInfo;
  readonly FileAlreadyExists: FileAlreadyExists;
  readonly FileFault: FileFault;
  readonly FileLocked: FileLocked;
  readonly FileNotFound: FileNotFound;
  readonly GenericVmConfigFault: GenericVmConfigFault;
  readonly GuestNicInfo: GuestNicInfo;
  readonly HostCommunication: HostCommunication;
  readonly HostConnectFault: HostConnectFault;
  readonly HostCpuIdInfo: HostCpuIdInfo;
  readonly HostGraphicsInfo: HostGraphicsInfo;
  readonly HostHardwareSummary: HostHardwareSummary;
  readonly HostListSummaryQuickStats: HostListSummaryQuickStats;
  readonly HostMaintenanceSpec: HostMaintenanceSpec;
  readonly HostMountInfo: HostMountInfo;
  readonly HostNotConnected: HostNotConnected;
  readonly HostPciDevice: HostPciDevice;
  readonly HostPciPassthruInfo: HostPciPassthruInfo;
  readonly HostQualifiedName: HostQualifiedName;
  readonly HostSharedGpuCapabilities: HostSharedGpuCapabilities;
  readonly HostSriovInfo: HostSriovInfo;
  readonly HostSystemIdentificationInfo: HostSystemIdentificationInfo;
  readonly HostSystemInfo: HostSystemInfo;
  readonly ID: ID;
  readonly InsufficientResourcesFault: InsufficientResourcesFault;
  readonly InvalidArgument: InvalidArgument;
  readonly InvalidCollectorVersion: InvalidCollectorVersion;
  readonly InvalidDatastore: InvalidDatastore;
  readonly InvalidDeviceSpec: InvalidDeviceSpec;
  readonly InvalidLogin: InvalidLogin;
  readonly InvalidName: InvalidName;
  readonly InvalidPowerState: InvalidPowerState;
  readonly InvalidProperty: InvalidProperty;
  readonly InvalidRequest: InvalidRequest;
  readonly InvalidState: InvalidState;
  readonly InvalidType: InvalidType;
  readonly InvalidVmConfig: InvalidVmConfig;
  readonly KeyAnyValue: KeyAnyValue;
  readonly KeyProviderId: KeyProviderId;
  readonly KeyValue: KeyValue;
  readonly LatencySensitivity: LatencySensitivity;
  readonly LocalizableMessage: LocalizableMessage;
  readonly LocalizedMethodFault: LocalizedMethodFault;
  readonly ManagedByInfo: ManagedByInfo;
  readonly ManagedObjectNotFound: ManagedObjectNotFound;
  readonly MethodAction: MethodAction;
  readonly MethodActionArgument: MethodActionArgument;
  readonly MethodFault: MethodFault;
  readonly MethodNotFound: MethodNotFound;
  readonly MissingObject: MissingObject;
  readonly MissingProperty: MissingProperty;
  readonly NetBIOSConfigInfo: NetBIOSConfigInfo;
  readonly NetDhcpConfigInfo: NetDhcpConfigInfo;
  readonly NetDhcpConfigInfoDhcpOptions: NetDhcpConfigInfoDhcpOptions;
  readonly NetDnsConfigInfo: NetDnsConfigInfo;
  readonly NetIpConfigInfo: NetIpConfigInfo;
  readonly NetIpConfigInfoIpAddress: NetIpConfigInfoIpAddress;
  readonly NoDiskSpace: NoDiskSpace;
  readonly NoPermission: NoPermission;
  readonly NoPermissionEntityPrivileges: NoPermissionEntityPrivileges;
  readonly NoPermissionOnHost: NoPermissionOnHost;
  readonly NotAuthenticated: NotAuthenticated;
  readonly NotFound: NotFound;
  readonly NotSupported: NotSupported;
  readonly ObjectContent: ObjectContent;
  readonly ObjectSpec: ObjectSpec;
  readonly ObjectUpdate: ObjectUpdate;
  readonly OptionType: OptionType;
  readonly OptionValue: OptionValue;
  readonly ParaVirtualSCSIController: ParaVirtualSCSIController;
  readonly PrivilegePolicyDef: PrivilegePolicyDef;
  readonly PropertyChange: PropertyChange;
  readonly PropertyFilterSpec: PropertyFilterSpec;
  readonly PropertyFilterUpdate: PropertyFilterUpdate;
  readonly PropertySpec: PropertySpec;
  readonly ReplicationConfigSpec: ReplicationConfigSpec;
  readonly ReplicationGroupId: ReplicationGroupId;
  readonly ReplicationInfoDiskSettings: ReplicationInfoDiskSettings;
  readonly ReplicationSpec: ReplicationSpec;
  readonly RequestCanceled: RequestCanceled;
  readonly ResourceAllocationInfo: ResourceAllocationInfo;
  readonly ResourceInUse: ResourceInUse;
  readonly RestrictedByAdministrator: RestrictedByAdministrator;
  readonly RestrictedVersion: RestrictedVersion;
  readonly RetrieveOptions: RetrieveOptions;
  readonly RetrieveResult: RetrieveResult;
  readonly RuntimeFault: RuntimeFault;
  readonly ScheduledHardwareUpgradeInfo: ScheduledHardwareUpgradeInfo;
  readonly ScheduledTaskInfo: ScheduledTaskInfo;
  readonly ScheduledTaskSpec: ScheduledTaskSpec;
  readonly SecurityError: SecurityError;
  readonly SelectionSpec: SelectionSpec;
  readonly ServiceContent: ServiceContent;
  readonly ServiceLocator: ServiceLocator;
  readonly ServiceLocatorCredential: ServiceLocatorCredential;
  readonly SharesInfo: SharesInfo;
  readonly SnapshotFault: SnapshotFault;
  readonly StorageIOAllocationInfo: StorageIOAllocationInfo;
  readonly SystemError: SystemError;
  readonly TagId: TagId;
  readonly TagIdNameId: TagIdNameId;
  readonly TagSpec: TagSpec;
  readonly TaskInProgress: TaskInProgress;
  readonly TaskInfo: TaskInfo;
  readonly TaskReason: TaskReason;
  readonly TaskScheduler: TaskScheduler;
  readonly Timedout: Timedout;
  readonly ToolsConfigInfo: ToolsConfigInfo;
  readonly ToolsConfigInfoToolsLastInstallInfo: ToolsConfigInfoToolsLastInstallInfo;
  readonly ToolsUnavailable: ToolsUnavailable;
  readonly TraversalSpec: TraversalSpec;
  readonly UpdateSet: UpdateSet;
  readonly UserSession: UserSession;
  readonly VAppIPAssignmentInfo: VAppIPAssignmentInfo;
  readonly VAppOvfSectionInfo: VAppOvfSectionInfo;
  readonly VAppOvfSectionSpec: VAppOvfSectionSpec;
  readonly VAppProductInfo: VAppProductInfo;
  readonly VAppProductSpec: VAppProductSpec;
  readonly VAppPropertyInfo: VAppPropertyInfo;
  readonly VAppPropertySpec: VAppPropertySpec;
  readonly VimFault: VimFault;
  readonly VirtualController: VirtualController;
  readonly VirtualDevice: VirtualDevice;
  readonly VirtualDeviceBackingInfo: VirtualDeviceBackingInfo;
  readonly VirtualDeviceBusSlotInfo: VirtualDeviceBusSlotInfo;
  readonly VirtualDeviceConfigSpec: VirtualDeviceConfigSpec;
  readonly VirtualDeviceConfigSpecBackingSpec: VirtualDeviceConfigSpecBackingSpec;
  readonly VirtualDeviceConnectInfo: VirtualDeviceConnectInfo;
  readonly VirtualDeviceDeviceBackingInfo: VirtualDeviceDeviceBackingInfo;
  readonly VirtualDeviceDeviceGroupInfo: VirtualDeviceDeviceGroupInfo;
  readonly VirtualDeviceFileBackingInfo: VirtualDeviceFileBackingInfo;
  readonly VirtualDisk: VirtualDisk;
  readonly VirtualDiskFlatVer2BackingInfo: VirtualDiskFlatVer2BackingInfo;
  readonly VirtualDiskSeSparseBackingInfo: VirtualDiskSeSparseBackingInfo;
  readonly VirtualDiskSparseVer2BackingInfo: VirtualDiskSparseVer2BackingInfo;
  readonly VirtualDiskVFlashCacheConfigInfo: VirtualDiskVFlashCacheConfigInfo;
  readonly VirtualE1000e: VirtualE1000e;
  readonly VirtualEthernetCard: VirtualEthernetCard;
  readonly VirtualEthernetCardDistributedVirtualPortBackingInfo: VirtualEthernetCardDistributedVirtualPortBackingInfo;
  readonly VirtualEthernetCardNetworkBackingInfo: VirtualEthernetCardNetworkBackingInfo;
  readonly VirtualEthernetCardResourceAllocation: VirtualEthernetCardResourceAllocation;
  readonly VirtualHardware: VirtualHardware;
  readonly VirtualLsiLogicController: VirtualLsiLogicController;
  readonly VirtualMachineAffinityInfo: VirtualMachineAffinityInfo;
  readonly VirtualMachineBaseIndependentFilterSpec: VirtualMachineBaseIndependentFilterSpec;
  readonly VirtualMachineBootOptions: VirtualMachineBootOptions;
  readonly VirtualMachineBootOptionsBootableDevice: VirtualMachineBootOptionsBootableDevice;
  readonly VirtualMachineCloneSpec: VirtualMachineCloneSpec;
  readonly VirtualMachineConfigInfo: VirtualMachineConfigInfo;
  readonly VirtualMachineConfigInfoDatastoreUrlPair: VirtualMachineConfigInfoDatastoreUrlPair;
  readonly VirtualMachineConfigInfoOverheadInfo: VirtualMachineConfigInfoOverheadInfo;
  readonly VirtualMachineConfigSpec: VirtualMachineConfigSpec;
  readonly VirtualMachineConsolePreferences: VirtualMachineConsolePreferences;
  readonly VirtualMachineContentLibraryItemInfo: VirtualMachineContentLibraryItemInfo;
  readonly VirtualMachineCpuIdInfoSpec: VirtualMachineCpuIdInfoSpec;
  readonly VirtualMachineDefaultPowerOpInfo: VirtualMachineDefaultPowerOpInfo;
  readonly VirtualMachineDefinedProfileSpec: VirtualMachineDefinedProfileSpec;
  readonly VirtualMachineExtensionCompatibilityConstraint: VirtualMachineExtensionCompatibilityConstraint;
  readonly VirtualMachineExtensionCompatibilityConstraintSet: VirtualMachineExtensionCompatibilityConstraintSet;
  readonly VirtualMachineFileInfo: VirtualMachineFileInfo;
  readonly VirtualMachineFlagInfo: VirtualMachineFlagInfo;
  readonly VirtualMachineForkConfigInfo: VirtualMachineForkConfigInfo;
  readonly VirtualMachineGuestIntegrityInfo: VirtualMachineGuestIntegrityInfo;
  readonly VirtualMachineGuestMonitoringModeInfo: VirtualMachineGuestMonitoringModeInfo;
  readonly VirtualMachineMessage: VirtualMachineMessage;
  readonly VirtualMachineNetworkShaperInfo: VirtualMachineNetworkShaperInfo;
  readonly VirtualMachineProfileRawData: VirtualMachineProfileRawData;
  readonly VirtualMachineProfileSpec: VirtualMachineProfileSpec;
  readonly VirtualMachineQuestionInfo: VirtualMachineQuestionInfo;
  readonly VirtualMachineQuickStats: VirtualMachineQuickStats;
  readonly VirtualMachineQuickStatsMemoryTierStats: VirtualMachineQuickStatsMemoryTierStats;
  readonly VirtualMachineRelocateSpec: VirtualMachineRelocateSpec;
  readonly VirtualMachineRelocateSpecDiskLocator: VirtualMachineRelocateSpecDiskLocator;
  readonly VirtualMachineRelocateSpecDiskLocatorBackingSpec: VirtualMachineRelocateSpecDiskLocatorBackingSpec;
  readonly VirtualMachineSgxInfo: VirtualMachineSgxInfo;
  readonly VirtualMachineSnapshotInfo: VirtualMachineSnapshotInfo;
  readonly VirtualMachineSnapshotTree: VirtualMachineSnapshotTree;
  readonly VirtualMachineVcpuConfig: VirtualMachineVcpuConfig;
  readonly VirtualMachineVirtualDeviceGroups: VirtualMachineVirtualDeviceGroups;
  readonly VirtualMachineVirtualDeviceGroupsDeviceGroup: VirtualMachineVirtualDeviceGroupsDeviceGroup;
  readonly VirtualMachineVirtualDeviceSwap: VirtualMachineVirtualDeviceSwap;
  readonly VirtualMachineVirtualDeviceSwapDeviceSwapInfo: VirtualMachineVirtualDeviceSwapDeviceSwapInfo;
  readonly VirtualMachineVirtualNuma: VirtualMachineVirtualNuma;
  readonly VirtualMachineVirtualNumaInfo: VirtualMachineVirtualNumaInfo;
  readonly VirtualMachineVirtualPMem: VirtualMachineVirtualPMem;
  readonly VirtualPCIPassthrough: VirtualPCIPassthrough;
  readonly VirtualPCIPassthroughAllowedDevice: VirtualPCIPassthroughAllowedDevice;
  readonly VirtualPCIPassthroughDeviceBackingInfo: VirtualPCIPassthroughDeviceBackingInfo;
  readonly VirtualPCIPassthroughDynamicBackingInfo: VirtualPCIPassthroughDynamicBackingInfo;
  readonly VirtualPCIPassthroughPluginBackingInfo: VirtualPCIPassthroughPluginBackingInfo;
  readonly VirtualPCIPassthroughVmiopBackingInfo: VirtualPCIPassthroughVmiopBackingInfo;
  readonly VirtualSCSIController: VirtualSCSIController;
  readonly VirtualVmxnet: VirtualVmxnet;
  readonly VirtualVmxnet3: VirtualVmxnet3;
  readonly VirtualVmxnet3StrictLatencyConfig: VirtualVmxnet3StrictLatencyConfig;
  readonly VmConfigFault: VmConfigFault;
  readonly VmConfigInfo: VmConfigInfo;
  readonly VmConfigSpec: VmConfigSpec;
  readonly VmPlacementPolicy: VmPlacementPolicy;
  readonly VsanHostDecommissionMode: VsanHostDecommissionMode;
  readonly WaitOptions: WaitOptions;
  readonly ArrayUpdateOperation: ArrayUpdateOperation;
  readonly CustomizationNetBIOSMode: CustomizationNetBIOSMode;
  readonly HostSystemConnectionState: HostSystemConnectionState;
  readonly HostSystemPowerState: HostSystemPowerState;
  readonly LatencySensitivitySensitivityLevel: LatencySensitivitySensitivityLevel;
  readonly ManagedEntityStatus: ManagedEntityStatus;
  readonly ObjectUpdateKind: ObjectUpdateKind;
  readonly PropertyChangeOp: PropertyChangeOp;
  readonly SharesLevel: SharesLevel;
  readonly TaskInfoState: TaskInfoState;
  readonly VirtualDeviceConfigSpecFileOperation: VirtualDeviceConfigSpecFileOperation;
  readonly VirtualDeviceConfigSpecOperation: VirtualDeviceConfigSpecOperation;
  readonly VirtualMachineConnectionState: VirtualMachineConnectionState;
  readonly VirtualMachinePowerState: VirtualMachinePowerState;
  readonly VirtualMachineRelocateTransformation: VirtualMachineRelocateTransformation;
  readonly VirtualSCSISharing: VirtualSCSISharing;
}

/** Arguments and result of each method. */
export interface Calls {
  readonly RetrieveServiceContent: { readonly args: Record<string, never>; readonly result: ServiceContent };
  readonly CurrentTime: { readonly args: Record<string, never>; readonly result: Date };
  readonly Login: {
    readonly args: {
      readonly userName: string;
      readonly password: string;
      readonly locale?: string;
    };
    readonly result: UserSession;
  };
  readonly Logout: { readonly args: Record<string, never>; readonly result: undefined };
  readonly TerminateSession: {
    readonly args: {
      readonly sessionId: readonly string[];
    };
    readonly result: undefined;
  };
  readonly RetrievePropertiesEx: {
    readonly args: {
      readonly specSet: readonly PropertyFilterSpec[];
      readonly options: RetrieveOptions;
    };
    readonly result: RetrieveResult | undefined;
  };
  readonly ContinueRetrievePropertiesEx: {
    readonly args: {
      readonly token: string;
    };
    readonly result: RetrieveResult;
  };
  readonly CreatePropertyCollector: {
    readonly args: Record<string, never>;
    readonly result: ManagedObjectReference;
  };
  readonly DestroyPropertyCollector: { readonly args: Record<string, never>; readonly result: undefined };
  readonly CreateFilter: {
    readonly args: {
      readonly spec: PropertyFilterSpec;
      readonly partialUpdates: boolean;
    };
    readonly result: ManagedObjectReference;
  };
  readonly DestroyPropertyFilter: { readonly args: Record<string, never>; readonly result: undefined };
  readonly WaitForUpdatesEx: {
    readonly args: {
      readonly version?: string;
      readonly options?: WaitOptions;
    };
    readonly result: UpdateSet | undefined;
  };
  readonly CreateContainerView: {
    readonly args: {
      readonly container: ManagedObjectReference;
      readonly type?: readonly string[];
      readonly recursive: boolean;
    };
    readonly result: ManagedObjectReference;
  };
  readonly CreateListView: {
    readonly args: {
      readonly obj?: readonly ManagedObjectReference[];
    };
    readonly result: ManagedObjectReference;
  };
  readonly ModifyListView: {
    readonly args: {
      readonly add?: readonly ManagedObjectReference[];
      readonly remove?: readonly ManagedObjectReference[];
    };
    readonly result: readonly ManagedObjectReference[];
  };
  readonly DestroyView: { readonly args: Record<string, never>; readonly result: undefined };
  readonly FindByUuid: {
    readonly args: {
      readonly datacenter?: ManagedObjectReference;
      readonly uuid: string;
      readonly vmSearch: boolean;
      readonly instanceUuid?: boolean;
    };
    readonly result: ManagedObjectReference | undefined;
  };
  readonly FindChild: {
    readonly args: {
      readonly entity: ManagedObjectReference;
      readonly name: string;
    };
    readonly result: ManagedObjectReference | undefined;
  };
  readonly CreateFolder: {
    readonly args: {
      readonly name: string;
    };
    readonly result: ManagedObjectReference;
  };
  readonly Rename_Task: {
    readonly args: {
      readonly newName: string;
    };
    readonly result: ManagedObjectReference;
  };
  readonly CloneVM_Task: {
    readonly args: {
      readonly folder: ManagedObjectReference;
      readonly name: string;
      readonly spec: VirtualMachineCloneSpec;
    };
    readonly result: ManagedObjectReference;
  };
  readonly ReconfigVM_Task: {
    readonly args: {
      readonly spec: VirtualMachineConfigSpec;
    };
    readonly result: ManagedObjectReference;
  };
  readonly CreateSnapshot_Task: {
    readonly args: {
      readonly name: string;
      readonly description?: string;
      readonly memory: boolean;
      readonly quiesce: boolean;
    };
    readonly result: ManagedObjectReference;
  };
  readonly PowerOnVM_Task: {
    readonly args: {
      readonly host?: ManagedObjectReference;
    };
    readonly result: ManagedObjectReference;
  };
  readonly PowerOffVM_Task: { readonly args: Record<string, never>; readonly result: ManagedObjectReference };
  readonly ShutdownGuest: { readonly args: Record<string, never>; readonly result: undefined };
  readonly Destroy_Task: { readonly args: Record<string, never>; readonly result: ManagedObjectReference };
  readonly UnregisterAndDestroy_Task: {
    readonly args: Record<string, never>;
    readonly result: ManagedObjectReference;
  };
  readonly CancelTask: { readonly args: Record<string, never>; readonly result: undefined };
  readonly AddCustomFieldDef: {
    readonly args: {
      readonly name: string;
      readonly moType?: string;
      readonly fieldDefPolicy?: PrivilegePolicyDef;
      readonly fieldPolicy?: PrivilegePolicyDef;
    };
    readonly result: CustomFieldDef;
  };
  readonly SetField: {
    readonly args: {
      readonly entity: ManagedObjectReference;
      readonly key: number;
      readonly value: string;
    };
    readonly result: undefined;
  };
  readonly MarkAsTemplate: { readonly args: Record<string, never>; readonly result: undefined };
  readonly EnterMaintenanceMode_Task: {
    readonly args: {
      readonly timeout: number;
      readonly evacuatePoweredOffVms?: boolean;
      readonly maintenanceSpec?: HostMaintenanceSpec;
    };
    readonly result: ManagedObjectReference;
  };
  readonly ExitMaintenanceMode_Task: {
    readonly args: {
      readonly timeout: number;
    };
    readonly result: ManagedObjectReference;
  };
}

/** The properties of managed objects, by type and path. */
export interface Properties {
  readonly VirtualMachine: {
    readonly name: string;
    readonly parent: ManagedObjectReference;
    readonly customValue: readonly CustomFieldValue[];
    readonly availableField: readonly CustomFieldDef[];
    readonly recentTask: readonly ManagedObjectReference[];
    readonly datastore: readonly ManagedObjectReference[];
    readonly network: readonly ManagedObjectReference[];
    readonly resourcePool: ManagedObjectReference;
    readonly config: VirtualMachineConfigInfo;
    readonly 'config.instanceUuid': string;
    readonly 'config.uuid': string;
    readonly 'config.template': boolean;
    readonly 'config.annotation': string;
    readonly 'config.extraConfig': readonly OptionValue[];
    readonly 'config.changeVersion': string;
    readonly 'config.cpuHotAddEnabled': boolean;
    readonly 'config.memoryHotAddEnabled': boolean;
    readonly 'config.hotPlugMemoryLimit': number;
    readonly 'config.hardware': VirtualHardware;
    readonly 'config.hardware.device': readonly VirtualDevice[];
    readonly 'config.hardware.memoryMB': number;
    readonly 'config.hardware.numCPU': number;
    readonly 'runtime.powerState': VirtualMachinePowerState;
    readonly 'runtime.connectionState': VirtualMachineConnectionState;
    readonly 'runtime.host': ManagedObjectReference;
    readonly 'runtime.question': VirtualMachineQuestionInfo;
    readonly 'guest.ipAddress': string;
    readonly 'guest.hostName': string;
    readonly 'guest.net': readonly GuestNicInfo[];
    readonly 'guest.guestState': string;
    readonly 'guest.toolsRunningStatus': string;
    readonly snapshot: VirtualMachineSnapshotInfo;
    readonly 'snapshot.currentSnapshot': ManagedObjectReference;
    readonly 'summary.quickStats': VirtualMachineQuickStats;
    readonly 'summary.quickStats.overallCpuDemand': number;
    readonly 'summary.quickStats.guestMemoryUsage': number;
    readonly 'summary.quickStats.hostMemoryUsage': number;
  };
  readonly Folder: {
    readonly name: string;
    readonly parent: ManagedObjectReference;
    readonly childType: readonly string[];
    readonly childEntity: readonly ManagedObjectReference[];
    readonly customValue: readonly CustomFieldValue[];
  };
  readonly Datacenter: {
    readonly name: string;
    readonly parent: ManagedObjectReference;
    readonly vmFolder: ManagedObjectReference;
    readonly hostFolder: ManagedObjectReference;
    readonly datastoreFolder: ManagedObjectReference;
    readonly networkFolder: ManagedObjectReference;
  };
  readonly ComputeResource: {
    readonly name: string;
    readonly parent: ManagedObjectReference;
    readonly host: readonly ManagedObjectReference[];
    readonly datastore: readonly ManagedObjectReference[];
    readonly network: readonly ManagedObjectReference[];
    readonly resourcePool: ManagedObjectReference;
  };
  readonly ClusterComputeResource: {
    readonly name: string;
    readonly parent: ManagedObjectReference;
    readonly host: readonly ManagedObjectReference[];
    readonly datastore: readonly ManagedObjectReference[];
    readonly network: readonly ManagedObjectReference[];
    readonly resourcePool: ManagedObjectReference;
  };
  readonly ResourcePool: {
    readonly name: string;
    readonly parent: ManagedObjectReference;
    readonly owner: ManagedObjectReference;
    readonly resourcePool: readonly ManagedObjectReference[];
    readonly vm: readonly ManagedObjectReference[];
  };
  readonly Datastore: {
    readonly name: string;
    readonly parent: ManagedObjectReference;
    readonly summary: DatastoreSummary;
    readonly host: readonly DatastoreHostMount[];
  };
  readonly Network: {
    readonly name: string;
    readonly parent: ManagedObjectReference;
    readonly host: readonly ManagedObjectReference[];
  };
  readonly HostSystem: {
    readonly name: string;
    readonly parent: ManagedObjectReference;
    readonly vm: readonly ManagedObjectReference[];
    readonly datastore: readonly ManagedObjectReference[];
    readonly network: readonly ManagedObjectReference[];
    readonly customValue: readonly CustomFieldValue[];
    readonly 'runtime.connectionState': HostSystemConnectionState;
    readonly 'runtime.inMaintenanceMode': boolean;
    readonly 'runtime.powerState': HostSystemPowerState;
    readonly 'summary.hardware': HostHardwareSummary;
    readonly 'summary.quickStats': HostListSummaryQuickStats;
    readonly 'summary.customValue': readonly CustomFieldValue[];
    readonly 'config.graphicsInfo': readonly HostGraphicsInfo[];
    readonly 'config.pciPassthruInfo': readonly HostPciPassthruInfo[];
    readonly 'config.sharedPassthruGpuTypes': readonly string[];
    readonly 'config.sharedGpuCapabilities': readonly HostSharedGpuCapabilities[];
    readonly 'hardware.pciDevice': readonly HostPciDevice[];
    readonly 'hardware.systemInfo': HostSystemInfo;
  };
  readonly Task: {
    readonly info: TaskInfo;
    readonly 'info.state': TaskInfoState;
    readonly 'info.error': LocalizedMethodFault;
    readonly 'info.result': unknown;
    readonly 'info.progress': number;
    readonly 'info.entity': ManagedObjectReference;
    readonly 'info.descriptionId': string;
    readonly 'info.cancelled': boolean;
    readonly 'info.queueTime': Date;
    readonly 'info.startTime': Date;
    readonly 'info.completeTime': Date;
  };
  readonly SessionManager: {
    readonly currentSession: UserSession;
    readonly sessionList: readonly UserSession[];
  };
  readonly CustomFieldsManager: {
    readonly field: readonly CustomFieldDef[];
  };
  readonly ScheduledTaskManager: {
    readonly scheduledTask: readonly ManagedObjectReference[];
  };
  readonly ScheduledTask: {
    readonly info: ScheduledTaskInfo;
    readonly 'info.name': string;
    readonly 'info.enabled': boolean;
    readonly 'info.action': Action;
    readonly 'info.entity': ManagedObjectReference;
    readonly 'info.taskObject': ManagedObjectReference;
    readonly 'info.state': TaskInfoState;
    readonly 'info.nextRunTime': Date;
    readonly 'info.prevRunTime': Date;
  };
  readonly ContainerView: {
    readonly view: readonly ManagedObjectReference[];
  };
  readonly ListView: {
    readonly view: readonly ManagedObjectReference[];
  };
}

type ArrayUpdateOperation = 'add' | 'remove' | 'edit';

type CustomizationNetBIOSMode = 'enableNetBIOSViaDhcp' | 'enableNetBIOS' | 'disableNetBIOS';

type HostSystemConnectionState = 'connected' | 'notResponding' | 'disconnected';

type HostSystemPowerState = 'poweredOn' | 'poweredOff' | 'standBy' | 'unknown';

type LatencySensitivitySensitivityLevel = 'low' | 'normal' | 'medium' | 'high' | 'custom';

type ManagedEntityStatus = 'gray' | 'green' | 'yellow' | 'red';

type ObjectUpdateKind = 'modify' | 'enter' | 'leave';

type PropertyChangeOp = 'add' | 'remove' | 'assign' | 'indirectRemove';

type SharesLevel = 'low' | 'normal' | 'high' | 'custom';

type TaskInfoState = 'queued' | 'running' | 'success' | 'error';

type VirtualDeviceConfigSpecFileOperation = 'create' | 'destroy' | 'replace';

type VirtualDeviceConfigSpecOperation = 'add' | 'remove' | 'edit';

type VirtualMachineConnectionState = 'connected' | 'disconnected' | 'orphaned' | 'inaccessible' | 'invalid';

type VirtualMachinePowerState = 'poweredOff' | 'poweredOn' | 'suspended';

type VirtualMachineRelocateTransformation = 'flat' | 'sparse';

type VirtualSCSISharing = 'noSharing' | 'virtualSharing' | 'physicalSharing';

interface AboutInfo extends DataObject {
  readonly name: string;
  readonly fullName: string;
  readonly vendor: string;
  readonly version: string;
  readonly patchLevel?: string;
  readonly build: string;
  readonly localeVersion?: string;
  readonly localeBuild?: string;
  readonly osType: string;
  readonly productLineId: string;
  readonly apiType: string;
  readonly apiVersion: string;
  readonly instanceUuid?: string;
  readonly licenseProductName?: string;
  readonly licenseProductVersion?: string;
}

interface Action extends DataObject {}

interface AlreadyExists extends VimFault {
  readonly name?: string;
}

interface ArrayUpdateSpec extends DataObject {
  readonly operation: ArrayUpdateOperation;
  readonly removeKey?: unknown;
}

interface CannotAccessFile extends FileFault {}

interface ChoiceOption extends OptionType {
  readonly choiceInfo: readonly ElementDescription[];
  readonly defaultIndex?: number;
}

interface ConcurrentAccess extends VimFault {}

interface CryptoKeyId extends DataObject {
  readonly keyId: string;
  readonly providerId?: KeyProviderId;
}

interface CryptoSpec extends DataObject {}

interface CustomFieldDef extends DataObject {
  readonly key: number;
  readonly name: string;
  readonly type: string;
  readonly managedObjectType?: string;
  readonly fieldDefPrivileges?: PrivilegePolicyDef;
  readonly fieldInstancePrivileges?: PrivilegePolicyDef;
}

interface CustomFieldStringValue extends CustomFieldValue {
  readonly value: string;
}

interface CustomFieldValue extends DataObject {
  readonly key: number;
}

interface CustomizationAdapterMapping extends DataObject {
  readonly macAddress?: string;
  readonly adapter: CustomizationIPSettings;
}

interface CustomizationFault extends VimFault {}

interface CustomizationGlobalIPSettings extends DataObject {
  readonly dnsSuffixList?: readonly string[];
  readonly dnsServerList?: readonly string[];
}

interface CustomizationIPSettings extends DataObject {
  readonly ip: CustomizationIpGenerator;
  readonly subnetMask?: string;
  readonly gateway?: readonly string[];
  readonly ipV6Spec?: CustomizationIPSettingsIpV6AddressSpec;
  readonly dnsServerList?: readonly string[];
  readonly dnsDomain?: string;
  readonly primaryWINS?: string;
  readonly secondaryWINS?: string;
  readonly netBIOS?: CustomizationNetBIOSMode;
  readonly primary?: boolean;
}

interface CustomizationIPSettingsIpV6AddressSpec extends DataObject {
  readonly ip: readonly CustomizationIpV6Generator[];
  readonly gateway?: readonly string[];
}

interface CustomizationIdentitySettings extends DataObject {}

interface CustomizationIpGenerator extends DataObject {}

interface CustomizationIpV6Generator extends DataObject {}

interface CustomizationOptions extends DataObject {}

interface CustomizationSpec extends DataObject {
  readonly options?: CustomizationOptions;
  readonly identity: CustomizationIdentitySettings;
  readonly globalIPSettings: CustomizationGlobalIPSettings;
  readonly nicSettingMap?: readonly CustomizationAdapterMapping[];
  readonly encryptionKey?: readonly number[];
}

interface DatastoreHostMount extends DataObject {
  readonly key: ManagedObjectReference;
  readonly mountInfo: HostMountInfo;
}

interface DatastoreSummary extends DataObject {
  readonly datastore?: ManagedObjectReference;
  readonly name: string;
  readonly url: string;
  readonly capacity: number;
  readonly freeSpace: number;
  readonly uncommitted?: number;
  readonly accessible: boolean;
  readonly multipleHostAccess?: boolean;
  readonly type: string;
  readonly maintenanceMode?: string;
}

interface Description extends DataObject {
  readonly label: string;
  readonly summary: string;
}

interface DeviceGroupId extends DataObject {
  readonly id: string;
}

interface DistributedVirtualSwitchPortConnection extends DataObject {
  readonly switchUuid: string;
  readonly portgroupKey?: string;
  readonly portKey?: string;
  readonly connectionCookie?: number;
}

interface DuplicateName extends VimFault {
  readonly name: string;
  readonly object: ManagedObjectReference;
}

interface DynamicProperty extends DataObject {
  readonly name: string;
  readonly val: unknown;
}

interface ElementDescription extends Description {
  readonly key: string;
}

interface FaultDomainId extends DataObject {
  readonly id: string;
}

interface FaultToleranceConfigInfo extends DataObject {
  readonly role: number;
  readonly instanceUuids: readonly string[];
  readonly configPaths: readonly string[];
  readonly orphaned?: boolean;
}

interface FileAlreadyExists extends FileFault {}

interface FileFault extends VimFault {
  readonly file: string;
}

interface FileLocked extends FileFault {}

interface FileNotFound extends FileFault {}

interface GenericVmConfigFault extends VmConfigFault {
  readonly reason: string;
}

interface GuestNicInfo extends DataObject {
  readonly network?: string;
  readonly ipAddress?: readonly string[];
  readonly macAddress?: string;
  readonly connected: boolean;
  readonly deviceConfigId: number;
  readonly dnsConfig?: NetDnsConfigInfo;
  readonly ipConfig?: NetIpConfigInfo;
  readonly netBIOSConfig?: NetBIOSConfigInfo;
}

interface HostCommunication extends RuntimeFault {}

interface HostConnectFault extends VimFault {}

interface HostCpuIdInfo extends DataObject {
  readonly level: number;
  readonly vendor?: string;
  readonly eax?: string;
  readonly ebx?: string;
  readonly ecx?: string;
  readonly edx?: string;
}

interface HostGraphicsInfo extends DataObject {
  readonly deviceName: string;
  readonly vendorName: string;
  readonly pciId: string;
  readonly graphicsType: string;
  readonly vgpuMode?: string;
  readonly memorySizeInKB: number;
  readonly vm?: readonly ManagedObjectReference[];
}

interface HostHardwareSummary extends DataObject {
  readonly vendor: string;
  readonly model: string;
  readonly family?: string;
  readonly uuid: string;
  readonly otherIdentifyingInfo?: readonly HostSystemIdentificationInfo[];
  readonly memorySize: number;
  readonly cpuModel: string;
  readonly cpuMhz: number;
  readonly numCpuPkgs: number;
  readonly numCpuCores: number;
  readonly numCpuThreads: number;
  readonly numNics: number;
  readonly numHBAs: number;
}

interface HostListSummaryQuickStats extends DataObject {
  readonly overallCpuUsage?: number;
  readonly overallMemoryUsage?: number;
  readonly distributedCpuFairness?: number;
  readonly distributedMemoryFairness?: number;
  readonly availablePMemCapacity?: number;
  readonly uptime?: number;
}

interface HostMaintenanceSpec extends DataObject {
  readonly vsanMode?: VsanHostDecommissionMode;
  readonly purpose?: string;
}

interface HostMountInfo extends DataObject {
  readonly path?: string;
  readonly accessMode: string;
  readonly mounted?: boolean;
  readonly accessible?: boolean;
  readonly inaccessibleReason?: string;
  readonly vmknicName?: string;
  readonly vmknicActive?: boolean;
  readonly mountFailedReason?: string;
  readonly numTcpConnections?: number;
}

interface HostNotConnected extends HostCommunication {}

interface HostPciDevice extends DataObject {
  readonly id: string;
  readonly classId: number;
  readonly bus: number;
  readonly slot: number;
  readonly physicalSlot?: number;
  readonly slotDescription?: string;
  readonly function: number;
  readonly vendorId: number;
  readonly subVendorId: number;
  readonly vendorName: string;
  readonly deviceId: number;
  readonly subDeviceId: number;
  readonly parentBridge?: string;
  readonly deviceName: string;
  readonly deviceClassName?: string;
}

interface HostPciPassthruInfo extends DataObject {
  readonly id: string;
  readonly dependentDevice: string;
  readonly passthruEnabled: boolean;
  readonly passthruCapable: boolean;
  readonly passthruActive: boolean;
  readonly hardwareLabel?: string;
}

interface HostQualifiedName extends DataObject {
  readonly value: string;
  readonly type: string;
}

interface HostSharedGpuCapabilities extends DataObject {
  readonly vgpu: string;
  readonly diskSnapshotSupported: boolean;
  readonly memorySnapshotSupported: boolean;
  readonly suspendSupported: boolean;
  readonly migrateSupported: boolean;
}

interface HostSriovInfo extends HostPciPassthruInfo {
  readonly sriovEnabled: boolean;
  readonly sriovCapable: boolean;
  readonly sriovActive: boolean;
  readonly numVirtualFunctionRequested: number;
  readonly numVirtualFunction: number;
  readonly maxVirtualFunctionSupported: number;
}

interface HostSystemIdentificationInfo extends DataObject {
  readonly identifierValue: string;
  readonly identifierType: ElementDescription;
}

interface HostSystemInfo extends DataObject {
  readonly vendor: string;
  readonly model: string;
  readonly family?: string;
  readonly uuid: string;
  readonly otherIdentifyingInfo?: readonly HostSystemIdentificationInfo[];
  readonly serialNumber?: string;
  readonly qualifiedName?: readonly HostQualifiedName[];
  readonly vvolHostNQN?: HostQualifiedName;
  readonly vvolHostId?: string;
  readonly bootCommandLine?: string;
}

interface ID extends DataObject {
  readonly id: string;
}

interface InsufficientResourcesFault extends VimFault {}

interface InvalidArgument extends RuntimeFault {
  readonly invalidProperty?: string;
}

interface InvalidCollectorVersion extends MethodFault {}

interface InvalidDatastore extends VimFault {
  readonly datastore?: ManagedObjectReference;
  readonly name?: string;
}

interface InvalidDeviceSpec extends InvalidVmConfig {
  readonly deviceIndex: number;
}

interface InvalidLogin extends VimFault {}

interface InvalidName extends VimFault {
  readonly name: string;
  readonly entity?: ManagedObjectReference;
}

interface InvalidPowerState extends InvalidState {
  readonly requestedState?: VirtualMachinePowerState;
  readonly existingState: VirtualMachinePowerState;
}

interface InvalidProperty extends MethodFault {
  readonly name: string;
}

interface InvalidRequest extends RuntimeFault {}

interface InvalidState extends VimFault {}

interface InvalidType extends InvalidRequest {
  readonly argument?: string;
}

interface InvalidVmConfig extends VmConfigFault {
  readonly property?: string;
}

interface KeyAnyValue extends DataObject {
  readonly key: string;
  readonly value: unknown;
}

interface KeyProviderId extends DataObject {
  readonly id: string;
}

interface KeyValue extends DataObject {
  readonly key: string;
  readonly value: string;
}

interface LatencySensitivity extends DataObject {
  readonly level: LatencySensitivitySensitivityLevel;
  readonly sensitivity?: number;
}

interface LocalizableMessage extends DataObject {
  readonly key: string;
  readonly arg?: readonly KeyAnyValue[];
  readonly message?: string;
}

interface LocalizedMethodFault extends DataObject {
  readonly fault: MethodFault;
  readonly localizedMessage?: string;
}

interface ManagedByInfo extends DataObject {
  readonly extensionKey: string;
  readonly type: string;
}

interface ManagedObjectNotFound extends RuntimeFault {
  readonly obj: ManagedObjectReference;
}

interface MethodAction extends Action {
  readonly name: string;
  readonly argument?: readonly MethodActionArgument[];
}

interface MethodActionArgument extends DataObject {
  readonly value: unknown;
}

interface MethodFault extends DataObject {
  readonly faultCause?: LocalizedMethodFault;
  readonly faultMessage?: readonly LocalizableMessage[];
}

interface MethodNotFound extends InvalidRequest {
  readonly receiver: ManagedObjectReference;
  readonly method: string;
}

interface MissingObject extends DataObject {
  readonly obj: ManagedObjectReference;
  readonly fault: LocalizedMethodFault;
}

interface MissingProperty extends DataObject {
  readonly path: string;
  readonly fault: LocalizedMethodFault;
}

interface NetBIOSConfigInfo extends DataObject {
  readonly mode: string;
}

interface NetDhcpConfigInfo extends DataObject {
  readonly ipv6?: NetDhcpConfigInfoDhcpOptions;
  readonly ipv4?: NetDhcpConfigInfoDhcpOptions;
}

interface NetDhcpConfigInfoDhcpOptions extends DataObject {
  readonly enable: boolean;
  readonly config?: readonly KeyValue[];
}

interface NetDnsConfigInfo extends DataObject {
  readonly dhcp: boolean;
  readonly hostName: string;
  readonly domainName: string;
  readonly ipAddress?: readonly string[];
  readonly searchDomain?: readonly string[];
}

interface NetIpConfigInfo extends DataObject {
  readonly ipAddress?: readonly NetIpConfigInfoIpAddress[];
  readonly dhcp?: NetDhcpConfigInfo;
  readonly autoConfigurationEnabled?: boolean;
}

interface NetIpConfigInfoIpAddress extends DataObject {
  readonly ipAddress: string;
  readonly prefixLength: number;
  readonly origin?: string;
  readonly state?: string;
  readonly lifetime?: Date;
}

interface NoDiskSpace extends FileFault {
  readonly datastore: string;
}

interface NoPermission extends SecurityError {
  readonly object?: ManagedObjectReference;
  readonly privilegeId?: string;
  readonly missingPrivileges?: readonly NoPermissionEntityPrivileges[];
}

interface NoPermissionEntityPrivileges extends DataObject {
  readonly entity: ManagedObjectReference;
  readonly privilegeIds?: readonly string[];
}

interface NoPermissionOnHost extends HostConnectFault {}

interface NotAuthenticated extends NoPermission {}

interface NotFound extends VimFault {}

interface NotSupported extends RuntimeFault {}

interface ObjectContent extends DataObject {
  readonly obj: ManagedObjectReference;
  readonly propSet?: readonly DynamicProperty[];
  readonly missingSet?: readonly MissingProperty[];
}

interface ObjectSpec extends DataObject {
  readonly obj: ManagedObjectReference;
  readonly skip?: boolean;
  readonly selectSet?: readonly SelectionSpec[];
}

interface ObjectUpdate extends DataObject {
  readonly kind: ObjectUpdateKind;
  readonly obj: ManagedObjectReference;
  readonly changeSet?: readonly PropertyChange[];
  readonly missingSet?: readonly MissingProperty[];
}

interface OptionType extends DataObject {
  readonly valueIsReadonly?: boolean;
}

interface OptionValue extends DataObject {
  readonly key: string;
  readonly value: unknown;
}

interface ParaVirtualSCSIController extends VirtualSCSIController {}

interface PrivilegePolicyDef extends DataObject {
  readonly createPrivilege: string;
  readonly readPrivilege: string;
  readonly updatePrivilege: string;
  readonly deletePrivilege: string;
}

interface PropertyChange extends DataObject {
  readonly name: string;
  readonly op: PropertyChangeOp;
  readonly val: unknown;
}

interface PropertyFilterSpec extends DataObject {
  readonly propSet: readonly PropertySpec[];
  readonly objectSet: readonly ObjectSpec[];
  readonly reportMissingObjectsInResults?: boolean;
}

interface PropertyFilterUpdate extends DataObject {
  readonly filter: ManagedObjectReference;
  readonly objectSet?: readonly ObjectUpdate[];
  readonly missingSet?: readonly MissingObject[];
}

interface PropertySpec extends DataObject {
  readonly type: string;
  readonly all?: boolean;
  readonly pathSet?: readonly string[];
}

interface ReplicationConfigSpec extends DataObject {
  readonly generation: number;
  readonly vmReplicationId: string;
  readonly destination: string;
  readonly port: number;
  readonly rpo: number;
  readonly quiesceGuestEnabled: boolean;
  readonly paused: boolean;
  readonly oppUpdatesEnabled: boolean;
  readonly netCompressionEnabled?: boolean;
  readonly netEncryptionEnabled?: boolean;
  readonly encryptionDestination?: string;
  readonly encryptionPort?: number;
  readonly remoteCertificateThumbprint?: string;
  readonly dataSetsReplicationEnabled?: boolean;
  readonly disk?: readonly ReplicationInfoDiskSettings[];
}

interface ReplicationGroupId extends DataObject {
  readonly faultDomainId: FaultDomainId;
  readonly deviceGroupId: DeviceGroupId;
}

interface ReplicationInfoDiskSettings extends DataObject {
  readonly key: number;
  readonly diskReplicationId: string;
}

interface ReplicationSpec extends DataObject {
  readonly replicationGroupId: ReplicationGroupId;
}

interface RequestCanceled extends RuntimeFault {}

interface ResourceAllocationInfo extends DataObject {
  readonly reservation?: number;
  readonly expandableReservation?: boolean;
  readonly limit?: number;
  readonly shares?: SharesInfo;
  readonly overheadLimit?: number;
}

interface ResourceInUse extends VimFault {
  readonly type?: string;
  readonly name?: string;
}

interface RestrictedByAdministrator extends RuntimeFault {
  readonly details: string;
}

interface RestrictedVersion extends SecurityError {}

interface RetrieveOptions extends DataObject {
  readonly maxObjects?: number;
}

interface RetrieveResult extends DataObject {
  readonly token?: string;
  readonly objects: readonly ObjectContent[];
}

interface RuntimeFault extends MethodFault {}

interface ScheduledHardwareUpgradeInfo extends DataObject {
  readonly upgradePolicy?: string;
  readonly versionKey?: string;
  readonly scheduledHardwareUpgradeStatus?: string;
  readonly fault?: LocalizedMethodFault;
}

interface ScheduledTaskInfo extends ScheduledTaskSpec {
  readonly scheduledTask: ManagedObjectReference;
  readonly entity: ManagedObjectReference;
  readonly lastModifiedTime: Date;
  readonly lastModifiedUser: string;
  readonly nextRunTime?: Date;
  readonly prevRunTime?: Date;
  readonly state: TaskInfoState;
  readonly error?: LocalizedMethodFault;
  readonly result?: unknown;
  readonly progress?: number;
  readonly activeTask?: ManagedObjectReference;
  readonly taskObject: ManagedObjectReference;
}

interface ScheduledTaskSpec extends DataObject {
  readonly name: string;
  readonly description: string;
  readonly enabled: boolean;
  readonly scheduler: TaskScheduler;
  readonly action: Action;
  readonly notification?: string;
}

interface SecurityError extends RuntimeFault {}

interface SelectionSpec extends DataObject {
  readonly name?: string;
}

interface ServiceContent extends DataObject {
  readonly rootFolder: ManagedObjectReference;
  readonly propertyCollector: ManagedObjectReference;
  readonly viewManager?: ManagedObjectReference;
  readonly about: AboutInfo;
  readonly setting?: ManagedObjectReference;
  readonly userDirectory?: ManagedObjectReference;
  readonly sessionManager?: ManagedObjectReference;
  readonly authorizationManager?: ManagedObjectReference;
  readonly serviceManager?: ManagedObjectReference;
  readonly perfManager?: ManagedObjectReference;
  readonly scheduledTaskManager?: ManagedObjectReference;
  readonly alarmManager?: ManagedObjectReference;
  readonly eventManager?: ManagedObjectReference;
  readonly taskManager?: ManagedObjectReference;
  readonly extensionManager?: ManagedObjectReference;
  readonly customizationSpecManager?: ManagedObjectReference;
  readonly guestCustomizationManager?: ManagedObjectReference;
  readonly customFieldsManager?: ManagedObjectReference;
  readonly accountManager?: ManagedObjectReference;
  readonly diagnosticManager?: ManagedObjectReference;
  readonly licenseManager?: ManagedObjectReference;
  readonly searchIndex?: ManagedObjectReference;
  readonly fileManager?: ManagedObjectReference;
  readonly datastoreNamespaceManager?: ManagedObjectReference;
  readonly virtualDiskManager?: ManagedObjectReference;
  readonly virtualizationManager?: ManagedObjectReference;
  readonly snmpSystem?: ManagedObjectReference;
  readonly vmProvisioningChecker?: ManagedObjectReference;
  readonly vmCompatibilityChecker?: ManagedObjectReference;
  readonly ovfManager?: ManagedObjectReference;
  readonly ipPoolManager?: ManagedObjectReference;
  readonly dvSwitchManager?: ManagedObjectReference;
  readonly hostProfileManager?: ManagedObjectReference;
  readonly clusterProfileManager?: ManagedObjectReference;
  readonly complianceManager?: ManagedObjectReference;
  readonly localizationManager?: ManagedObjectReference;
  readonly storageResourceManager?: ManagedObjectReference;
  readonly guestOperationsManager?: ManagedObjectReference;
  readonly overheadMemoryManager?: ManagedObjectReference;
  readonly certificateManager?: ManagedObjectReference;
  readonly ioFilterManager?: ManagedObjectReference;
  readonly vStorageObjectManager?: ManagedObjectReference;
  readonly hostSpecManager?: ManagedObjectReference;
  readonly cryptoManager?: ManagedObjectReference;
  readonly healthUpdateManager?: ManagedObjectReference;
  readonly failoverClusterConfigurator?: ManagedObjectReference;
  readonly failoverClusterManager?: ManagedObjectReference;
  readonly tenantManager?: ManagedObjectReference;
  readonly siteInfoManager?: ManagedObjectReference;
  readonly storageQueryManager?: ManagedObjectReference;
  readonly directPathProfileManager?: ManagedObjectReference;
}

interface ServiceLocator extends DataObject {
  readonly instanceUuid: string;
  readonly url: string;
  readonly credential: ServiceLocatorCredential;
  readonly sslThumbprint?: string;
  readonly sslCertificate?: string;
}

interface ServiceLocatorCredential extends DataObject {}

interface SharesInfo extends DataObject {
  readonly shares: number;
  readonly level: SharesLevel;
}

interface SnapshotFault extends VimFault {}

interface StorageIOAllocationInfo extends DataObject {
  readonly limit?: number;
  readonly shares?: SharesInfo;
  readonly reservation?: number;
}

interface SystemError extends RuntimeFault {
  readonly reason: string;
}

interface TagId extends DataObject {
  readonly nameId?: TagIdNameId;
  readonly uuid?: string;
}

interface TagIdNameId extends DataObject {
  readonly tag: string;
  readonly category: string;
}

interface TagSpec extends ArrayUpdateSpec {
  readonly id: TagId;
}

interface TaskInProgress extends VimFault {
  readonly task: ManagedObjectReference;
}

interface TaskInfo extends DataObject {
  readonly key: string;
  readonly task: ManagedObjectReference;
  readonly description?: LocalizableMessage;
  readonly name?: string;
  readonly descriptionId: string;
  readonly entity?: ManagedObjectReference;
  readonly entityName?: string;
  readonly locked?: readonly ManagedObjectReference[];
  readonly state: TaskInfoState;
  readonly cancelled: boolean;
  readonly cancelable: boolean;
  readonly error?: LocalizedMethodFault;
  readonly result?: unknown;
  readonly progress?: number;
  readonly progressDetails?: readonly KeyAnyValue[];
  readonly reason: TaskReason;
  readonly queueTime: Date;
  readonly startTime?: Date;
  readonly completeTime?: Date;
  readonly eventChainId: number;
  readonly changeTag?: string;
  readonly parentTaskKey?: string;
  readonly rootTaskKey?: string;
  readonly activationId?: string;
}

interface TaskReason extends DataObject {}

interface TaskScheduler extends DataObject {
  readonly activeTime?: Date;
  readonly expireTime?: Date;
}

interface Timedout extends VimFault {}

interface ToolsConfigInfo extends DataObject {
  readonly toolsVersion?: number;
  readonly toolsInstallType?: string;
  readonly afterPowerOn?: boolean;
  readonly afterResume?: boolean;
  readonly beforeGuestStandby?: boolean;
  readonly beforeGuestShutdown?: boolean;
  readonly beforeGuestReboot?: boolean;
  readonly toolsUpgradePolicy?: string;
  readonly pendingCustomization?: string;
  readonly customizationKeyId?: CryptoKeyId;
  readonly syncTimeWithHostAllowed?: boolean;
  readonly syncTimeWithHost?: boolean;
  readonly lastInstallInfo?: ToolsConfigInfoToolsLastInstallInfo;
}

interface ToolsConfigInfoToolsLastInstallInfo extends DataObject {
  readonly counter: number;
  readonly fault?: LocalizedMethodFault;
}

interface ToolsUnavailable extends VimFault {}

interface TraversalSpec extends SelectionSpec {
  readonly type: string;
  readonly path: string;
  readonly skip?: boolean;
  readonly selectSet?: readonly SelectionSpec[];
}

interface UpdateSet extends DataObject {
  readonly version: string;
  readonly filterSet?: readonly PropertyFilterUpdate[];
  readonly truncated?: boolean;
}

interface UserSession extends DataObject {
  readonly key: string;
  readonly userName: string;
  readonly fullName: string;
  readonly loginTime: Date;
  readonly lastActiveTime: Date;
  readonly locale: string;
  readonly messageLocale: string;
  readonly extensionSession: boolean;
  readonly ipAddress: string;
  readonly userAgent: string;
  readonly callCount: number;
}

interface VAppIPAssignmentInfo extends DataObject {
  readonly supportedAllocationScheme?: readonly string[];
  readonly ipAllocationPolicy?: string;
  readonly supportedIpProtocol?: readonly string[];
  readonly ipProtocol?: string;
}

interface VAppOvfSectionInfo extends DataObject {
  readonly key?: number;
  readonly namespace?: string;
  readonly type?: string;
  readonly atEnvelopeLevel?: boolean;
  readonly contents?: string;
}

interface VAppOvfSectionSpec extends ArrayUpdateSpec {
  readonly info?: VAppOvfSectionInfo;
}

interface VAppProductInfo extends DataObject {
  readonly key: number;
  readonly classId?: string;
  readonly instanceId?: string;
  readonly name?: string;
  readonly vendor?: string;
  readonly version?: string;
  readonly fullVersion?: string;
  readonly vendorUrl?: string;
  readonly productUrl?: string;
  readonly appUrl?: string;
}

interface VAppProductSpec extends ArrayUpdateSpec {
  readonly info?: VAppProductInfo;
}

interface VAppPropertyInfo extends DataObject {
  readonly key: number;
  readonly classId?: string;
  readonly instanceId?: string;
  readonly id?: string;
  readonly category?: string;
  readonly label?: string;
  readonly type?: string;
  readonly typeReference?: string;
  readonly userConfigurable?: boolean;
  readonly defaultValue?: string;
  readonly value?: string;
  readonly description?: string;
}

interface VAppPropertySpec extends ArrayUpdateSpec {
  readonly info?: VAppPropertyInfo;
}

interface VimFault extends MethodFault {}

interface VirtualController extends VirtualDevice {
  readonly busNumber: number;
  readonly device?: readonly number[];
}

interface VirtualDevice extends DataObject {
  readonly key: number;
  readonly deviceInfo?: Description;
  readonly backing?: VirtualDeviceBackingInfo;
  readonly connectable?: VirtualDeviceConnectInfo;
  readonly slotInfo?: VirtualDeviceBusSlotInfo;
  readonly controllerKey?: number;
  readonly unitNumber?: number;
  readonly numaNode?: number;
  readonly deviceGroupInfo?: VirtualDeviceDeviceGroupInfo;
}

interface VirtualDeviceBackingInfo extends DataObject {}

interface VirtualDeviceBusSlotInfo extends DataObject {}

interface VirtualDeviceConfigSpec extends DataObject {
  readonly operation?: VirtualDeviceConfigSpecOperation;
  readonly fileOperation?: VirtualDeviceConfigSpecFileOperation;
  readonly device: VirtualDevice;
  readonly profile?: readonly VirtualMachineProfileSpec[];
  readonly backing?: VirtualDeviceConfigSpecBackingSpec;
  readonly filterSpec?: readonly VirtualMachineBaseIndependentFilterSpec[];
  readonly changeMode?: string;
}

interface VirtualDeviceConfigSpecBackingSpec extends DataObject {
  readonly parent?: VirtualDeviceConfigSpecBackingSpec;
  readonly crypto?: CryptoSpec;
}

interface VirtualDeviceConnectInfo extends DataObject {
  readonly migrateConnect?: string;
  readonly startConnected: boolean;
  readonly allowGuestControl: boolean;
  readonly connected: boolean;
  readonly status?: string;
}

interface VirtualDeviceDeviceBackingInfo extends VirtualDeviceBackingInfo {
  readonly deviceName: string;
  readonly useAutoDetect?: boolean;
}

interface VirtualDeviceDeviceGroupInfo extends DataObject {
  readonly groupInstanceKey: number;
  readonly sequenceId: number;
}

interface VirtualDeviceFileBackingInfo extends VirtualDeviceBackingInfo {
  readonly fileName: string;
  readonly datastore?: ManagedObjectReference;
  readonly backingObjectId?: string;
}

interface VirtualDisk extends VirtualDevice {
  readonly capacityInKB: number;
  readonly capacityInBytes?: number;
  readonly shares?: SharesInfo;
  readonly storageIOAllocation?: StorageIOAllocationInfo;
  readonly diskObjectId?: string;
  readonly vFlashCacheConfigInfo?: VirtualDiskVFlashCacheConfigInfo;
  readonly iofilter?: readonly string[];
  readonly vDiskId?: ID;
  readonly vDiskVersion?: number;
  readonly virtualDiskFormat?: string;
  readonly nativeUnmanagedLinkedClone?: boolean;
  readonly independentFilters?: readonly VirtualMachineBaseIndependentFilterSpec[];
  readonly guestReadOnly?: boolean;
}

interface VirtualDiskFlatVer2BackingInfo extends VirtualDeviceFileBackingInfo {
  readonly diskMode: string;
  readonly split?: boolean;
  readonly writeThrough?: boolean;
  readonly thinProvisioned?: boolean;
  readonly eagerlyScrub?: boolean;
  readonly uuid?: string;
  readonly contentId?: string;
  readonly changeId?: string;
  readonly parent?: VirtualDiskFlatVer2BackingInfo;
  readonly deltaDiskFormat?: string;
  readonly digestEnabled?: boolean;
  readonly deltaGrainSize?: number;
  readonly deltaDiskFormatVariant?: string;
  readonly sharing?: string;
  readonly keyId?: CryptoKeyId;
}

interface VirtualDiskSeSparseBackingInfo extends VirtualDeviceFileBackingInfo {
  readonly diskMode: string;
  readonly writeThrough?: boolean;
  readonly uuid?: string;
  readonly contentId?: string;
  readonly changeId?: string;
  readonly parent?: VirtualDiskSeSparseBackingInfo;
  readonly deltaDiskFormat?: string;
  readonly digestEnabled?: boolean;
  readonly grainSize?: number;
  readonly keyId?: CryptoKeyId;
}

interface VirtualDiskSparseVer2BackingInfo extends VirtualDeviceFileBackingInfo {
  readonly diskMode: string;
  readonly split?: boolean;
  readonly writeThrough?: boolean;
  readonly spaceUsedInKB?: number;
  readonly uuid?: string;
  readonly contentId?: string;
  readonly changeId?: string;
  readonly parent?: VirtualDiskSparseVer2BackingInfo;
  readonly keyId?: CryptoKeyId;
}

interface VirtualDiskVFlashCacheConfigInfo extends DataObject {
  readonly vFlashModule?: string;
  readonly reservationInMB?: number;
  readonly cacheConsistencyType?: string;
  readonly cacheMode?: string;
  readonly blockSizeInKB?: number;
}

interface VirtualE1000e extends VirtualEthernetCard {}

interface VirtualEthernetCard extends VirtualDevice {
  readonly addressType?: string;
  readonly macAddress?: string;
  readonly wakeOnLanEnabled?: boolean;
  readonly resourceAllocation?: VirtualEthernetCardResourceAllocation;
  readonly externalId?: string;
  readonly uptCompatibilityEnabled?: boolean;
  readonly subnetId?: string;
}

interface VirtualEthernetCardDistributedVirtualPortBackingInfo extends VirtualDeviceBackingInfo {
  readonly port: DistributedVirtualSwitchPortConnection;
}

interface VirtualEthernetCardNetworkBackingInfo extends VirtualDeviceDeviceBackingInfo {
  readonly network?: ManagedObjectReference;
  readonly inPassthroughMode?: boolean;
}

interface VirtualEthernetCardResourceAllocation extends DataObject {
  readonly reservation?: number;
  readonly share: SharesInfo;
  readonly limit?: number;
}

interface VirtualHardware extends DataObject {
  readonly numCPU: number;
  readonly numCoresPerSocket?: number;
  readonly autoCoresPerSocket?: boolean;
  readonly memoryMB: number;
  readonly virtualICH7MPresent?: boolean;
  readonly virtualSMCPresent?: boolean;
  readonly device?: readonly VirtualDevice[];
  readonly motherboardLayout?: string;
  readonly simultaneousThreads?: number;
}

interface VirtualLsiLogicController extends VirtualSCSIController {}

interface VirtualMachineAffinityInfo extends DataObject {
  readonly affinitySet: readonly number[];
}

interface VirtualMachineBaseIndependentFilterSpec extends DataObject {}

interface VirtualMachineBootOptions extends DataObject {
  readonly bootDelay?: number;
  readonly enterBIOSSetup?: boolean;
  readonly efiSecureBootEnabled?: boolean;
  readonly bootRetryEnabled?: boolean;
  readonly bootRetryDelay?: number;
  readonly bootOrder?: readonly VirtualMachineBootOptionsBootableDevice[];
  readonly networkBootProtocol?: string;
}

interface VirtualMachineBootOptionsBootableDevice extends DataObject {}

interface VirtualMachineCloneSpec extends DataObject {
  readonly location: VirtualMachineRelocateSpec;
  readonly template: boolean;
  readonly config?: VirtualMachineConfigSpec;
  readonly customization?: CustomizationSpec;
  readonly powerOn: boolean;
  readonly snapshot?: ManagedObjectReference;
  readonly memory?: boolean;
  readonly tpmProvisionPolicy?: string;
}

interface VirtualMachineConfigInfo extends DataObject {
  readonly changeVersion: string;
  readonly modified: Date;
  readonly name: string;
  readonly guestFullName: string;
  readonly version: string;
  readonly uuid: string;
  readonly createDate?: Date;
  readonly instanceUuid?: string;
  readonly npivNodeWorldWideName?: readonly number[];
  readonly npivPortWorldWideName?: readonly number[];
  readonly npivWorldWideNameType?: string;
  readonly npivDesiredNodeWwns?: number;
  readonly npivDesiredPortWwns?: number;
  readonly npivTemporaryDisabled?: boolean;
  readonly npivOnNonRdmDisks?: boolean;
  readonly locationId?: string;
  readonly template: boolean;
  readonly guestId: string;
  readonly alternateGuestName: string;
  readonly annotation?: string;
  readonly files: VirtualMachineFileInfo;
  readonly tools?: ToolsConfigInfo;
  readonly flags: VirtualMachineFlagInfo;
  readonly consolePreferences?: VirtualMachineConsolePreferences;
  readonly defaultPowerOps: VirtualMachineDefaultPowerOpInfo;
  readonly rebootPowerOff?: boolean;
  readonly hardware: VirtualHardware;
  readonly vcpuConfig?: readonly VirtualMachineVcpuConfig[];
  readonly cpuAllocation?: ResourceAllocationInfo;
  readonly memoryAllocation?: ResourceAllocationInfo;
  readonly latencySensitivity?: LatencySensitivity;
  readonly memoryHotAddEnabled?: boolean;
  readonly cpuHotAddEnabled?: boolean;
  readonly cpuHotRemoveEnabled?: boolean;
  readonly hotPlugMemoryLimit?: number;
  readonly hotPlugMemoryIncrementSize?: number;
  readonly cpuAffinity?: VirtualMachineAffinityInfo;
  readonly memoryAffinity?: VirtualMachineAffinityInfo;
  readonly networkShaper?: VirtualMachineNetworkShaperInfo;
  readonly extraConfig?: readonly OptionValue[];
  readonly cpuFeatureMask?: readonly HostCpuIdInfo[];
  readonly datastoreUrl?: readonly VirtualMachineConfigInfoDatastoreUrlPair[];
  readonly swapPlacement?: string;
  readonly bootOptions?: VirtualMachineBootOptions;
  readonly ftInfo?: FaultToleranceConfigInfo;
  readonly repConfig?: ReplicationConfigSpec;
  readonly vAppConfig?: VmConfigInfo;
  readonly vAssertsEnabled?: boolean;
  readonly changeTrackingEnabled?: boolean;
  readonly firmware?: string;
  readonly maxMksConnections?: number;
  readonly guestAutoLockEnabled?: boolean;
  readonly managedBy?: ManagedByInfo;
  readonly memoryReservationLockedToMax?: boolean;
  readonly initialOverhead?: VirtualMachineConfigInfoOverheadInfo;
  readonly nestedHVEnabled?: boolean;
  readonly vPMCEnabled?: boolean;
  readonly scheduledHardwareUpgradeInfo?: ScheduledHardwareUpgradeInfo;
  readonly forkConfigInfo?: VirtualMachineForkConfigInfo;
  readonly vFlashCacheReservation?: number;
  readonly vmxConfigChecksum?: string;
  readonly messageBusTunnelEnabled?: boolean;
  readonly vmStorageObjectId?: string;
  readonly swapStorageObjectId?: string;
  readonly keyId?: CryptoKeyId;
  readonly guestIntegrityInfo?: VirtualMachineGuestIntegrityInfo;
  readonly migrateEncryption?: string;
  readonly sgxInfo?: VirtualMachineSgxInfo;
  readonly contentLibItemInfo?: VirtualMachineContentLibraryItemInfo;
  readonly ftEncryptionMode?: string;
  readonly guestMonitoringModeInfo?: VirtualMachineGuestMonitoringModeInfo;
  readonly sevEnabled?: boolean;
  readonly numaInfo?: VirtualMachineVirtualNumaInfo;
  readonly pmemFailoverEnabled?: boolean;
  readonly vmxStatsCollectionEnabled?: boolean;
  readonly vmOpNotificationToAppEnabled?: boolean;
  readonly vmOpNotificationTimeout?: number;
  readonly deviceSwap?: VirtualMachineVirtualDeviceSwap;
  readonly pmem?: VirtualMachineVirtualPMem;
  readonly deviceGroups?: VirtualMachineVirtualDeviceGroups;
  readonly fixedPassthruHotPlugEnabled?: boolean;
  readonly metroFtEnabled?: boolean;
  readonly vmxRuntimeConfig?: readonly OptionValue[];
  readonly metroFtHostGroup?: string;
  readonly tdxEnabled?: boolean;
  readonly sevSnpEnabled?: boolean;
  readonly extensionCompatibilityConstraint?: VirtualMachineExtensionCompatibilityConstraintSet;
}

interface VirtualMachineConfigInfoDatastoreUrlPair extends DataObject {
  readonly name: string;
  readonly url: string;
}

interface VirtualMachineConfigInfoOverheadInfo extends DataObject {
  readonly initialMemoryReservation?: number;
  readonly initialSwapReservation?: number;
}

interface VirtualMachineConfigSpec extends DataObject {
  readonly changeVersion?: string;
  readonly name?: string;
  readonly version?: string;
  readonly createDate?: Date;
  readonly uuid?: string;
  readonly instanceUuid?: string;
  readonly npivNodeWorldWideName?: readonly number[];
  readonly npivPortWorldWideName?: readonly number[];
  readonly npivWorldWideNameType?: string;
  readonly npivDesiredNodeWwns?: number;
  readonly npivDesiredPortWwns?: number;
  readonly npivTemporaryDisabled?: boolean;
  readonly npivOnNonRdmDisks?: boolean;
  readonly npivWorldWideNameOp?: string;
  readonly locationId?: string;
  readonly guestId?: string;
  readonly alternateGuestName?: string;
  readonly annotation?: string;
  readonly files?: VirtualMachineFileInfo;
  readonly tools?: ToolsConfigInfo;
  readonly flags?: VirtualMachineFlagInfo;
  readonly consolePreferences?: VirtualMachineConsolePreferences;
  readonly powerOpInfo?: VirtualMachineDefaultPowerOpInfo;
  readonly rebootPowerOff?: boolean;
  readonly numCPUs?: number;
  readonly vcpuConfig?: readonly VirtualMachineVcpuConfig[];
  readonly numCoresPerSocket?: number;
  readonly memoryMB?: number;
  readonly memoryHotAddEnabled?: boolean;
  readonly cpuHotAddEnabled?: boolean;
  readonly cpuHotRemoveEnabled?: boolean;
  readonly virtualICH7MPresent?: boolean;
  readonly virtualSMCPresent?: boolean;
  readonly deviceChange?: readonly VirtualDeviceConfigSpec[];
  readonly cpuAllocation?: ResourceAllocationInfo;
  readonly memoryAllocation?: ResourceAllocationInfo;
  readonly latencySensitivity?: LatencySensitivity;
  readonly cpuAffinity?: VirtualMachineAffinityInfo;
  readonly memoryAffinity?: VirtualMachineAffinityInfo;
  readonly networkShaper?: VirtualMachineNetworkShaperInfo;
  readonly cpuFeatureMask?: readonly VirtualMachineCpuIdInfoSpec[];
  readonly extraConfig?: readonly OptionValue[];
  readonly swapPlacement?: string;
  readonly bootOptions?: VirtualMachineBootOptions;
  readonly vAppConfig?: VmConfigSpec;
  readonly ftInfo?: FaultToleranceConfigInfo;
  readonly repConfig?: ReplicationConfigSpec;
  readonly vAppConfigRemoved?: boolean;
  readonly vAssertsEnabled?: boolean;
  readonly changeTrackingEnabled?: boolean;
  readonly firmware?: string;
  readonly maxMksConnections?: number;
  readonly guestAutoLockEnabled?: boolean;
  readonly managedBy?: ManagedByInfo;
  readonly memoryReservationLockedToMax?: boolean;
  readonly nestedHVEnabled?: boolean;
  readonly vPMCEnabled?: boolean;
  readonly scheduledHardwareUpgradeInfo?: ScheduledHardwareUpgradeInfo;
  readonly vmProfile?: readonly VirtualMachineProfileSpec[];
  readonly messageBusTunnelEnabled?: boolean;
  readonly crypto?: CryptoSpec;
  readonly migrateEncryption?: string;
  readonly sgxInfo?: VirtualMachineSgxInfo;
  readonly ftEncryptionMode?: string;
  readonly guestMonitoringModeInfo?: VirtualMachineGuestMonitoringModeInfo;
  readonly sevEnabled?: boolean;
  readonly virtualNuma?: VirtualMachineVirtualNuma;
  readonly motherboardLayout?: string;
  readonly pmemFailoverEnabled?: boolean;
  readonly vmxStatsCollectionEnabled?: boolean;
  readonly vmOpNotificationToAppEnabled?: boolean;
  readonly vmOpNotificationTimeout?: number;
  readonly deviceSwap?: VirtualMachineVirtualDeviceSwap;
  readonly simultaneousThreads?: number;
  readonly pmem?: VirtualMachineVirtualPMem;
  readonly deviceGroups?: VirtualMachineVirtualDeviceGroups;
  readonly fixedPassthruHotPlugEnabled?: boolean;
  readonly metroFtEnabled?: boolean;
  readonly metroFtHostGroup?: string;
  readonly tdxEnabled?: boolean;
  readonly sevSnpEnabled?: boolean;
  readonly tagSpecs?: readonly TagSpec[];
  readonly vmPlacementPolicies?: readonly VmPlacementPolicy[];
  readonly extensionCompatibilityConstraint?: VirtualMachineExtensionCompatibilityConstraintSet;
  readonly skipExtensionCompatibilityChecks?: boolean;
}

interface VirtualMachineConsolePreferences extends DataObject {
  readonly powerOnWhenOpened?: boolean;
  readonly enterFullScreenOnPowerOn?: boolean;
  readonly closeOnPowerOffOrSuspend?: boolean;
}

interface VirtualMachineContentLibraryItemInfo extends DataObject {
  readonly contentLibraryItemUuid: string;
  readonly contentLibraryItemVersion?: string;
}

interface VirtualMachineCpuIdInfoSpec extends ArrayUpdateSpec {
  readonly info?: HostCpuIdInfo;
}

interface VirtualMachineDefaultPowerOpInfo extends DataObject {
  readonly powerOffType?: string;
  readonly suspendType?: string;
  readonly resetType?: string;
  readonly defaultPowerOffType?: string;
  readonly defaultSuspendType?: string;
  readonly defaultResetType?: string;
  readonly standbyAction?: string;
}

interface VirtualMachineDefinedProfileSpec extends VirtualMachineProfileSpec {
  readonly profileId: string;
  readonly replicationSpec?: ReplicationSpec;
  readonly profileData?: VirtualMachineProfileRawData;
  readonly profileParams?: readonly KeyValue[];
}

interface VirtualMachineExtensionCompatibilityConstraint extends DataObject {
  readonly constraintName?: string;
  readonly constraintType: string;
  readonly constraintKind: string;
}

interface VirtualMachineExtensionCompatibilityConstraintSet extends DataObject {
  readonly constraint?: readonly VirtualMachineExtensionCompatibilityConstraint[];
}

interface VirtualMachineFileInfo extends DataObject {
  readonly vmPathName?: string;
  readonly snapshotDirectory?: string;
  readonly suspendDirectory?: string;
  readonly logDirectory?: string;
  readonly ftMetadataDirectory?: string;
}

interface VirtualMachineFlagInfo extends DataObject {
  readonly disableAcceleration?: boolean;
  readonly enableLogging?: boolean;
  readonly useToe?: boolean;
  readonly runWithDebugInfo?: boolean;
  readonly monitorType?: string;
  readonly htSharing?: string;
  readonly snapshotDisabled?: boolean;
  readonly snapshotLocked?: boolean;
  readonly diskUuidEnabled?: boolean;
  readonly virtualMmuUsage?: string;
  readonly virtualExecUsage?: string;
  readonly snapshotPowerOffBehavior?: string;
  readonly recordReplayEnabled?: boolean;
  readonly faultToleranceType?: string;
  readonly cbrcCacheEnabled?: boolean;
  readonly vvtdEnabled?: boolean;
  readonly vbsEnabled?: boolean;
}

interface VirtualMachineForkConfigInfo extends DataObject {
  readonly parentEnabled?: boolean;
  readonly childForkGroupId?: string;
  readonly parentForkGroupId?: string;
  readonly childType?: string;
}

interface VirtualMachineGuestIntegrityInfo extends DataObject {
  readonly enabled?: boolean;
}

interface VirtualMachineGuestMonitoringModeInfo extends DataObject {
  readonly gmmFile?: string;
  readonly gmmAppliance?: string;
}

interface VirtualMachineMessage extends DataObject {
  readonly id: string;
  readonly argument?: readonly unknown[];
  readonly text?: string;
}

interface VirtualMachineNetworkShaperInfo extends DataObject {
  readonly enabled?: boolean;
  readonly peakBps?: number;
  readonly averageBps?: number;
  readonly burstSize?: number;
}

interface VirtualMachineProfileRawData extends DataObject {
  readonly extensionKey: string;
  readonly objectData?: string;
}

interface VirtualMachineProfileSpec extends DataObject {}

interface VirtualMachineQuestionInfo extends DataObject {
  readonly id: string;
  readonly text: string;
  readonly choice: ChoiceOption;
  readonly message?: readonly VirtualMachineMessage[];
}

interface VirtualMachineQuickStats extends DataObject {
  readonly overallCpuUsage?: number;
  readonly overallCpuDemand?: number;
  readonly overallCpuReadiness?: number;
  readonly guestMemoryUsage?: number;
  readonly hostMemoryUsage?: number;
  readonly guestHeartbeatStatus: ManagedEntityStatus;
  readonly distributedCpuEntitlement?: number;
  readonly distributedMemoryEntitlement?: number;
  readonly staticCpuEntitlement?: number;
  readonly staticMemoryEntitlement?: number;
  readonly grantedMemory?: number;
  readonly privateMemory?: number;
  readonly sharedMemory?: number;
  readonly swappedMemory?: number;
  readonly balloonedMemory?: number;
  readonly consumedOverheadMemory?: number;
  readonly ftLogBandwidth?: number;
  readonly ftSecondaryLatency?: number;
  readonly ftLatencyStatus?: ManagedEntityStatus;
  readonly compressedMemory?: number;
  readonly uptimeSeconds?: number;
  readonly ssdSwappedMemory?: number;
  readonly activeMemory?: number;
  readonly memoryTierStats?: readonly VirtualMachineQuickStatsMemoryTierStats[];
}

interface VirtualMachineQuickStatsMemoryTierStats extends DataObject {
  readonly memoryTierType: string;
  readonly readBandwidth: number;
}

interface VirtualMachineRelocateSpec extends DataObject {
  readonly service?: ServiceLocator;
  readonly folder?: ManagedObjectReference;
  readonly datastore?: ManagedObjectReference;
  readonly diskMoveType?: string;
  readonly pool?: ManagedObjectReference;
  readonly host?: ManagedObjectReference;
  readonly disk?: readonly VirtualMachineRelocateSpecDiskLocator[];
  readonly transform?: VirtualMachineRelocateTransformation;
  readonly deviceChange?: readonly VirtualDeviceConfigSpec[];
  readonly profile?: readonly VirtualMachineProfileSpec[];
  readonly cryptoSpec?: CryptoSpec;
  readonly tagSpecs?: readonly TagSpec[];
  readonly vmPlacementPolicies?: readonly VmPlacementPolicy[];
  readonly skipExtensionCompatibilityChecks?: boolean;
}

interface VirtualMachineRelocateSpecDiskLocator extends DataObject {
  readonly diskId: number;
  readonly datastore: ManagedObjectReference;
  readonly diskMoveType?: string;
  readonly diskBackingInfo?: VirtualDeviceBackingInfo;
  readonly profile?: readonly VirtualMachineProfileSpec[];
  readonly backing?: VirtualMachineRelocateSpecDiskLocatorBackingSpec;
  readonly filterSpec?: readonly VirtualMachineBaseIndependentFilterSpec[];
}

interface VirtualMachineRelocateSpecDiskLocatorBackingSpec extends DataObject {
  readonly parent?: VirtualMachineRelocateSpecDiskLocatorBackingSpec;
  readonly crypto?: CryptoSpec;
}

interface VirtualMachineSgxInfo extends DataObject {
  readonly epcSize: number;
  readonly flcMode?: string;
  readonly lePubKeyHash?: string;
  readonly requireAttestation?: boolean;
}

interface VirtualMachineSnapshotInfo extends DataObject {
  readonly currentSnapshot?: ManagedObjectReference;
  readonly rootSnapshotList: readonly VirtualMachineSnapshotTree[];
}

interface VirtualMachineSnapshotTree extends DataObject {
  readonly snapshot: ManagedObjectReference;
  readonly vm: ManagedObjectReference;
  readonly name: string;
  readonly description: string;
  readonly id: number;
  readonly createTime: Date;
  readonly state: VirtualMachinePowerState;
  readonly quiesced: boolean;
  readonly backupManifest?: string;
  readonly childSnapshotList?: readonly VirtualMachineSnapshotTree[];
  readonly replaySupported?: boolean;
}

interface VirtualMachineVcpuConfig extends DataObject {
  readonly latencySensitivity?: LatencySensitivity;
}

interface VirtualMachineVirtualDeviceGroups extends DataObject {
  readonly deviceGroup?: readonly VirtualMachineVirtualDeviceGroupsDeviceGroup[];
}

interface VirtualMachineVirtualDeviceGroupsDeviceGroup extends DataObject {
  readonly groupInstanceKey: number;
  readonly deviceInfo?: Description;
}

interface VirtualMachineVirtualDeviceSwap extends DataObject {
  readonly lsiToPvscsi?: VirtualMachineVirtualDeviceSwapDeviceSwapInfo;
}

interface VirtualMachineVirtualDeviceSwapDeviceSwapInfo extends DataObject {
  readonly enabled?: boolean;
  readonly applicable?: boolean;
  readonly status?: string;
}

interface VirtualMachineVirtualNuma extends DataObject {
  readonly coresPerNumaNode?: number;
  readonly exposeVnumaOnCpuHotadd?: boolean;
}

interface VirtualMachineVirtualNumaInfo extends DataObject {
  readonly coresPerNumaNode?: number;
  readonly autoCoresPerNumaNode?: boolean;
  readonly vnumaOnCpuHotaddExposed?: boolean;
}

interface VirtualMachineVirtualPMem extends DataObject {
  readonly snapshotMode?: string;
}

interface VirtualPCIPassthrough extends VirtualDevice {}

interface VirtualPCIPassthroughAllowedDevice extends DataObject {
  readonly vendorId: number;
  readonly deviceId: number;
  readonly subVendorId?: number;
  readonly subDeviceId?: number;
  readonly revisionId?: number;
}

interface VirtualPCIPassthroughDeviceBackingInfo extends VirtualDeviceDeviceBackingInfo {
  readonly id: string;
  readonly deviceId: string;
  readonly systemId: string;
  readonly vendorId: number;
}

interface VirtualPCIPassthroughDynamicBackingInfo extends VirtualDeviceDeviceBackingInfo {
  readonly allowedDevice?: readonly VirtualPCIPassthroughAllowedDevice[];
  readonly customLabel?: string;
  readonly assignedId?: string;
}

interface VirtualPCIPassthroughPluginBackingInfo extends VirtualDeviceBackingInfo {}

interface VirtualPCIPassthroughVmiopBackingInfo extends VirtualPCIPassthroughPluginBackingInfo {
  readonly vgpu?: string;
  readonly vgpuMigrateDataSizeMB?: number;
  readonly migrateSupported?: boolean;
  readonly enhancedMigrateCapability?: boolean;
}

interface VirtualSCSIController extends VirtualController {
  readonly hotAddRemove?: boolean;
  readonly sharedBus: VirtualSCSISharing;
  readonly scsiCtlrUnitNumber?: number;
}

interface VirtualVmxnet extends VirtualEthernetCard {}

interface VirtualVmxnet3 extends VirtualVmxnet {
  readonly uptv2Enabled?: boolean;
  readonly strictLatencyConfig?: VirtualVmxnet3StrictLatencyConfig;
}

interface VirtualVmxnet3StrictLatencyConfig extends DataObject {
  readonly allowed?: boolean;
  readonly measureLatency?: boolean;
  readonly maxTxQueues?: number;
  readonly maxRxQueues?: number;
  readonly txDataRingDescSize?: number;
  readonly rxDataRingDescSize?: number;
  readonly disableOffload?: string;
}

interface VmConfigFault extends VimFault {}

interface VmConfigInfo extends DataObject {
  readonly product?: readonly VAppProductInfo[];
  readonly property?: readonly VAppPropertyInfo[];
  readonly ipAssignment: VAppIPAssignmentInfo;
  readonly eula?: readonly string[];
  readonly ovfSection?: readonly VAppOvfSectionInfo[];
  readonly ovfEnvironmentTransport?: readonly string[];
  readonly installBootRequired: boolean;
  readonly installBootStopDelay: number;
}

interface VmConfigSpec extends DataObject {
  readonly product?: readonly VAppProductSpec[];
  readonly property?: readonly VAppPropertySpec[];
  readonly ipAssignment?: VAppIPAssignmentInfo;
  readonly eula?: readonly string[];
  readonly ovfSection?: readonly VAppOvfSectionSpec[];
  readonly ovfEnvironmentTransport?: readonly string[];
  readonly installBootRequired?: boolean;
  readonly installBootStopDelay?: number;
}

interface VmPlacementPolicy extends DataObject {
  readonly tagsToAttach?: readonly string[];
}

interface VsanHostDecommissionMode extends DataObject {
  readonly objectAction: string;
}

interface WaitOptions extends DataObject {
  readonly maxWaitSeconds?: number;
  readonly maxObjectUpdates?: number;
}
