// Written by `make generate` (tools/vim25) from the vim25 types of govmomi. Do not edit.

/** Newest API version in this schema. */
export const KNOWN_VERSION = '9.1.0.0';

/**
 * Types by name: the base type, then the fields in the order of the WSDL. A field is `name:type` with flags: `*` list, `^`
 * encoded with `xsi:type`, `?` optional, `@8.0.1.0` introduced in this API version.
 */
export const TYPES: Readonly<Record<string, string>> = {
  $AddCustomFieldDef:
    ' _this:ManagedObjectReference name:string moType:string? fieldDefPolicy:PrivilegePolicyDef? fieldPolicy:PrivilegePolicyDef?',
  $AddCustomFieldDefResponse: ' returnval:CustomFieldDef',
  $CancelTask: ' _this:ManagedObjectReference',
  $CancelTaskResponse: '',
  $CloneVM_Task:
    ' _this:ManagedObjectReference folder:ManagedObjectReference name:string spec:VirtualMachineCloneSpec',
  $CloneVM_TaskResponse: ' returnval:ManagedObjectReference',
  $ContinueRetrievePropertiesEx: ' _this:ManagedObjectReference token:string',
  $ContinueRetrievePropertiesExResponse: ' returnval:RetrieveResult',
  $CreateContainerView:
    ' _this:ManagedObjectReference container:ManagedObjectReference type:string*? recursive:boolean',
  $CreateContainerViewResponse: ' returnval:ManagedObjectReference',
  $CreateFilter: ' _this:ManagedObjectReference spec:PropertyFilterSpec partialUpdates:boolean',
  $CreateFilterResponse: ' returnval:ManagedObjectReference',
  $CreateFolder: ' _this:ManagedObjectReference name:string',
  $CreateFolderResponse: ' returnval:ManagedObjectReference',
  $CreateListView: ' _this:ManagedObjectReference obj:ManagedObjectReference*?',
  $CreateListViewResponse: ' returnval:ManagedObjectReference',
  $CreatePropertyCollector: ' _this:ManagedObjectReference',
  $CreatePropertyCollectorResponse: ' returnval:ManagedObjectReference',
  $CreateSnapshot_Task:
    ' _this:ManagedObjectReference name:string description:string? memory:boolean quiesce:boolean',
  $CreateSnapshot_TaskResponse: ' returnval:ManagedObjectReference',
  $CurrentTime: ' _this:ManagedObjectReference',
  $CurrentTimeResponse: ' returnval:dateTime',
  $DestroyPropertyCollector: ' _this:ManagedObjectReference',
  $DestroyPropertyCollectorResponse: '',
  $DestroyPropertyFilter: ' _this:ManagedObjectReference',
  $DestroyPropertyFilterResponse: '',
  $DestroyView: ' _this:ManagedObjectReference',
  $DestroyViewResponse: '',
  $Destroy_Task: ' _this:ManagedObjectReference',
  $Destroy_TaskResponse: ' returnval:ManagedObjectReference',
  $EnterMaintenanceMode_Task:
    ' _this:ManagedObjectReference timeout:int evacuatePoweredOffVms:boolean? maintenanceSpec:HostMaintenanceSpec?',
  $EnterMaintenanceMode_TaskResponse: ' returnval:ManagedObjectReference',
  $ExitMaintenanceMode_Task: ' _this:ManagedObjectReference timeout:int',
  $ExitMaintenanceMode_TaskResponse: ' returnval:ManagedObjectReference',
  $FindByUuid:
    ' _this:ManagedObjectReference datacenter:ManagedObjectReference? uuid:string vmSearch:boolean instanceUuid:boolean?',
  $FindByUuidResponse: ' returnval:ManagedObjectReference?',
  $FindChild: ' _this:ManagedObjectReference entity:ManagedObjectReference name:string',
  $FindChildResponse: ' returnval:ManagedObjectReference?',
  $Login: ' _this:ManagedObjectReference userName:string password:string locale:string?',
  $LoginResponse: ' returnval:UserSession',
  $Logout: ' _this:ManagedObjectReference',
  $LogoutResponse: '',
  $MarkAsTemplate: ' _this:ManagedObjectReference',
  $MarkAsTemplateResponse: '',
  $ModifyListView:
    ' _this:ManagedObjectReference add:ManagedObjectReference*? remove:ManagedObjectReference*?',
  $ModifyListViewResponse: ' returnval:ManagedObjectReference*?',
  $PowerOffVM_Task: ' _this:ManagedObjectReference',
  $PowerOffVM_TaskResponse: ' returnval:ManagedObjectReference',
  $PowerOnVM_Task: ' _this:ManagedObjectReference host:ManagedObjectReference?',
  $PowerOnVM_TaskResponse: ' returnval:ManagedObjectReference',
  $ReconfigVM_Task: ' _this:ManagedObjectReference spec:VirtualMachineConfigSpec',
  $ReconfigVM_TaskResponse: ' returnval:ManagedObjectReference',
  $Rename_Task: ' _this:ManagedObjectReference newName:string',
  $Rename_TaskResponse: ' returnval:ManagedObjectReference',
  $RetrievePropertiesEx: ' _this:ManagedObjectReference specSet:PropertyFilterSpec* options:RetrieveOptions',
  $RetrievePropertiesExResponse: ' returnval:RetrieveResult?',
  $RetrieveServiceContent: ' _this:ManagedObjectReference',
  $RetrieveServiceContentResponse: ' returnval:ServiceContent',
  $SetField: ' _this:ManagedObjectReference entity:ManagedObjectReference key:int value:string',
  $SetFieldResponse: '',
  $ShutdownGuest: ' _this:ManagedObjectReference',
  $ShutdownGuestResponse: '',
  $TerminateSession: ' _this:ManagedObjectReference sessionId:string*',
  $TerminateSessionResponse: '',
  $UnregisterAndDestroy_Task: ' _this:ManagedObjectReference',
  $UnregisterAndDestroy_TaskResponse: ' returnval:ManagedObjectReference',
  $WaitForUpdatesEx: ' _this:ManagedObjectReference version:string? options:WaitOptions?',
  $WaitForUpdatesExResponse: ' returnval:UpdateSet?',
  AboutInfo:
    ' name:string fullName:string vendor:string version:string patchLevel:string?@7.0.2.0 build:string localeVersion:string? localeBuild:string? osType:string productLineId:string apiType:string apiVersion:string instanceUuid:string? licenseProductName:string? licenseProductVersion:string?',
  Action: '',
  AlreadyExists: 'VimFault name:string?',
  ArrayUpdateSpec: ' operation:string removeKey:anyType^?',
  CannotAccessFile: 'FileFault',
  ChoiceOption: 'OptionType choiceInfo:ElementDescription*^ defaultIndex:int?',
  ConcurrentAccess: 'VimFault',
  CryptoKeyId: ' keyId:string providerId:KeyProviderId?',
  CryptoSpec: '',
  CustomFieldDef:
    ' key:int name:string type:string managedObjectType:string? fieldDefPrivileges:PrivilegePolicyDef? fieldInstancePrivileges:PrivilegePolicyDef?',
  CustomFieldStringValue: 'CustomFieldValue value:string',
  CustomFieldValue: ' key:int',
  CustomizationAdapterMapping: ' macAddress:string? adapter:CustomizationIPSettings',
  CustomizationFault: 'VimFault',
  CustomizationGlobalIPSettings: ' dnsSuffixList:string*? dnsServerList:string*?',
  CustomizationIPSettings:
    ' ip:CustomizationIpGenerator^ subnetMask:string? gateway:string*? ipV6Spec:CustomizationIPSettingsIpV6AddressSpec? dnsServerList:string*? dnsDomain:string? primaryWINS:string? secondaryWINS:string? netBIOS:string? primary:boolean?@9.1.0.0',
  CustomizationIPSettingsIpV6AddressSpec: ' ip:CustomizationIpV6Generator*^ gateway:string*?',
  CustomizationIdentitySettings: '',
  CustomizationIpGenerator: '',
  CustomizationIpV6Generator: '',
  CustomizationOptions: '',
  CustomizationSpec:
    ' options:CustomizationOptions^? identity:CustomizationIdentitySettings^ globalIPSettings:CustomizationGlobalIPSettings nicSettingMap:CustomizationAdapterMapping*? encryptionKey:byte*?',
  DatastoreHostMount: ' key:ManagedObjectReference mountInfo:HostMountInfo',
  DatastoreSummary:
    ' datastore:ManagedObjectReference? name:string url:string capacity:long freeSpace:long uncommitted:long? accessible:boolean multipleHostAccess:boolean? type:string maintenanceMode:string?',
  Description: ' label:string summary:string',
  DeviceGroupId: ' id:string',
  DistributedVirtualSwitchPortConnection:
    ' switchUuid:string portgroupKey:string? portKey:string? connectionCookie:int?',
  DuplicateName: 'VimFault name:string object:ManagedObjectReference',
  DynamicProperty: ' name:string val:anyType^',
  ElementDescription: 'Description key:string',
  FaultDomainId: ' id:string',
  FaultToleranceConfigInfo: ' role:int instanceUuids:string* configPaths:string* orphaned:boolean?',
  FileAlreadyExists: 'FileFault',
  FileFault: 'VimFault file:string',
  FileLocked: 'FileFault',
  FileNotFound: 'FileFault',
  GenericVmConfigFault: 'VmConfigFault reason:string',
  GuestNicInfo:
    ' network:string? ipAddress:string*? macAddress:string? connected:boolean deviceConfigId:int dnsConfig:NetDnsConfigInfo? ipConfig:NetIpConfigInfo? netBIOSConfig:NetBIOSConfigInfo^?',
  HostCommunication: 'RuntimeFault',
  HostConnectFault: 'VimFault',
  HostCpuIdInfo: ' level:int vendor:string? eax:string? ebx:string? ecx:string? edx:string?',
  HostGraphicsInfo:
    ' deviceName:string vendorName:string pciId:string graphicsType:string vgpuMode:string?@8.0.3.0 memorySizeInKB:long vm:ManagedObjectReference*?',
  HostHardwareSummary:
    ' vendor:string model:string family:string?@9.0.0.0 uuid:string otherIdentifyingInfo:HostSystemIdentificationInfo*? memorySize:long cpuModel:string cpuMhz:int numCpuPkgs:short numCpuCores:short numCpuThreads:short numNics:int numHBAs:int',
  HostListSummaryQuickStats:
    ' overallCpuUsage:int? overallMemoryUsage:int? distributedCpuFairness:int? distributedMemoryFairness:int? availablePMemCapacity:int? uptime:int?',
  HostMaintenanceSpec: ' vsanMode:VsanHostDecommissionMode? purpose:string?',
  HostMountInfo:
    ' path:string? accessMode:string mounted:boolean? accessible:boolean? inaccessibleReason:string? vmknicName:string?@8.0.1.0 vmknicActive:boolean?@8.0.1.0 mountFailedReason:string?@8.0.0.1 numTcpConnections:int?@8.0.1.0',
  HostNotConnected: 'HostCommunication',
  HostPciDevice:
    ' id:string classId:short bus:byte slot:byte physicalSlot:int?@9.0.0.0 slotDescription:string?@9.0.0.0 function:byte vendorId:short subVendorId:short vendorName:string deviceId:short subDeviceId:short parentBridge:string? deviceName:string deviceClassName:string?@8.0.3.0',
  HostPciPassthruInfo:
    ' id:string dependentDevice:string passthruEnabled:boolean passthruCapable:boolean passthruActive:boolean hardwareLabel:string?@7.0.2.0',
  HostQualifiedName: ' value:string type:string',
  HostSharedGpuCapabilities:
    ' vgpu:string diskSnapshotSupported:boolean memorySnapshotSupported:boolean suspendSupported:boolean migrateSupported:boolean',
  HostSriovInfo:
    'HostPciPassthruInfo sriovEnabled:boolean sriovCapable:boolean sriovActive:boolean numVirtualFunctionRequested:int numVirtualFunction:int maxVirtualFunctionSupported:int',
  HostSystemIdentificationInfo: ' identifierValue:string identifierType:ElementDescription^',
  HostSystemInfo:
    ' vendor:string model:string family:string?@9.0.0.0 uuid:string otherIdentifyingInfo:HostSystemIdentificationInfo*? serialNumber:string? qualifiedName:HostQualifiedName*?@7.0.3.0 vvolHostNQN:HostQualifiedName?@8.0.0.0 vvolHostId:string?@8.0.0.0 bootCommandLine:string?@8.0.3.0',
  ID: ' id:string',
  InsufficientResourcesFault: 'VimFault',
  InvalidArgument: 'RuntimeFault invalidProperty:string?',
  InvalidCollectorVersion: 'MethodFault',
  InvalidDatastore: 'VimFault datastore:ManagedObjectReference? name:string?',
  InvalidDeviceSpec: 'InvalidVmConfig deviceIndex:int',
  InvalidLogin: 'VimFault',
  InvalidName: 'VimFault name:string entity:ManagedObjectReference?',
  InvalidPowerState: 'InvalidState requestedState:string? existingState:string',
  InvalidProperty: 'MethodFault name:string',
  InvalidRequest: 'RuntimeFault',
  InvalidState: 'VimFault',
  InvalidType: 'InvalidRequest argument:string?',
  InvalidVmConfig: 'VmConfigFault property:string?',
  KeyAnyValue: ' key:string value:anyType^',
  KeyProviderId: ' id:string',
  KeyValue: ' key:string value:string',
  LatencySensitivity: ' level:string sensitivity:int?',
  LocalizableMessage: ' key:string arg:KeyAnyValue*? message:string?',
  LocalizedMethodFault: ' fault:MethodFault^ localizedMessage:string?',
  ManagedByInfo: ' extensionKey:string type:string',
  ManagedObjectNotFound: 'RuntimeFault obj:ManagedObjectReference',
  MethodAction: 'Action name:string argument:MethodActionArgument*?',
  MethodActionArgument: ' value:anyType^',
  MethodFault: ' faultCause:LocalizedMethodFault? faultMessage:LocalizableMessage*?',
  MethodNotFound: 'InvalidRequest receiver:ManagedObjectReference method:string',
  MissingObject: ' obj:ManagedObjectReference fault:LocalizedMethodFault',
  MissingProperty: ' path:string fault:LocalizedMethodFault',
  NetBIOSConfigInfo: ' mode:string',
  NetDhcpConfigInfo: ' ipv6:NetDhcpConfigInfoDhcpOptions? ipv4:NetDhcpConfigInfoDhcpOptions?',
  NetDhcpConfigInfoDhcpOptions: ' enable:boolean config:KeyValue*?',
  NetDnsConfigInfo:
    ' dhcp:boolean hostName:string domainName:string ipAddress:string*? searchDomain:string*?',
  NetIpConfigInfo:
    ' ipAddress:NetIpConfigInfoIpAddress*? dhcp:NetDhcpConfigInfo? autoConfigurationEnabled:boolean?',
  NetIpConfigInfoIpAddress:
    ' ipAddress:string prefixLength:int origin:string? state:string? lifetime:dateTime?',
  NoDiskSpace: 'FileFault datastore:string',
  NoPermission:
    'SecurityError object:ManagedObjectReference? privilegeId:string? missingPrivileges:NoPermissionEntityPrivileges*?@7.0.3.2',
  NoPermissionEntityPrivileges: ' entity:ManagedObjectReference privilegeIds:string*?',
  NoPermissionOnHost: 'HostConnectFault',
  NotAuthenticated: 'NoPermission',
  NotFound: 'VimFault',
  NotSupported: 'RuntimeFault',
  ObjectContent: ' obj:ManagedObjectReference propSet:DynamicProperty*? missingSet:MissingProperty*?',
  ObjectSpec: ' obj:ManagedObjectReference skip:boolean? selectSet:SelectionSpec*^?',
  ObjectUpdate:
    ' kind:string obj:ManagedObjectReference changeSet:PropertyChange*? missingSet:MissingProperty*?',
  OptionType: ' valueIsReadonly:boolean?',
  OptionValue: ' key:string value:anyType^',
  ParaVirtualSCSIController: 'VirtualSCSIController',
  PrivilegePolicyDef:
    ' createPrivilege:string readPrivilege:string updatePrivilege:string deletePrivilege:string',
  PropertyChange: ' name:string op:string val:anyType^',
  PropertyFilterSpec: ' propSet:PropertySpec* objectSet:ObjectSpec* reportMissingObjectsInResults:boolean?',
  PropertyFilterUpdate: ' filter:ManagedObjectReference objectSet:ObjectUpdate*? missingSet:MissingObject*?',
  PropertySpec: ' type:string all:boolean? pathSet:string*?',
  ReplicationConfigSpec:
    ' generation:long vmReplicationId:string destination:string port:int rpo:long quiesceGuestEnabled:boolean paused:boolean oppUpdatesEnabled:boolean netCompressionEnabled:boolean? netEncryptionEnabled:boolean? encryptionDestination:string? encryptionPort:int? remoteCertificateThumbprint:string? dataSetsReplicationEnabled:boolean?@8.0.0.0 disk:ReplicationInfoDiskSettings*?',
  ReplicationGroupId: ' faultDomainId:FaultDomainId deviceGroupId:DeviceGroupId',
  ReplicationInfoDiskSettings: ' key:int diskReplicationId:string',
  ReplicationSpec: ' replicationGroupId:ReplicationGroupId',
  RequestCanceled: 'RuntimeFault',
  ResourceAllocationInfo:
    ' reservation:long? expandableReservation:boolean? limit:long? shares:SharesInfo? overheadLimit:long?',
  ResourceInUse: 'VimFault type:string? name:string?',
  RestrictedByAdministrator: 'RuntimeFault details:string',
  RestrictedVersion: 'SecurityError',
  RetrieveOptions: ' maxObjects:int?',
  RetrieveResult: ' token:string? objects:ObjectContent*',
  RuntimeFault: 'MethodFault',
  ScheduledHardwareUpgradeInfo:
    ' upgradePolicy:string? versionKey:string? scheduledHardwareUpgradeStatus:string? fault:LocalizedMethodFault?',
  ScheduledTaskInfo:
    'ScheduledTaskSpec scheduledTask:ManagedObjectReference entity:ManagedObjectReference lastModifiedTime:dateTime lastModifiedUser:string nextRunTime:dateTime? prevRunTime:dateTime? state:string error:LocalizedMethodFault? result:anyType^? progress:int? activeTask:ManagedObjectReference? taskObject:ManagedObjectReference',
  ScheduledTaskSpec:
    ' name:string description:string enabled:boolean scheduler:TaskScheduler^ action:Action^ notification:string?',
  SecurityError: 'RuntimeFault',
  SelectionSpec: ' name:string?',
  ServiceContent:
    ' rootFolder:ManagedObjectReference propertyCollector:ManagedObjectReference viewManager:ManagedObjectReference? about:AboutInfo setting:ManagedObjectReference? userDirectory:ManagedObjectReference? sessionManager:ManagedObjectReference? authorizationManager:ManagedObjectReference? serviceManager:ManagedObjectReference? perfManager:ManagedObjectReference? scheduledTaskManager:ManagedObjectReference? alarmManager:ManagedObjectReference? eventManager:ManagedObjectReference? taskManager:ManagedObjectReference? extensionManager:ManagedObjectReference? customizationSpecManager:ManagedObjectReference? guestCustomizationManager:ManagedObjectReference? customFieldsManager:ManagedObjectReference? accountManager:ManagedObjectReference? diagnosticManager:ManagedObjectReference? licenseManager:ManagedObjectReference? searchIndex:ManagedObjectReference? fileManager:ManagedObjectReference? datastoreNamespaceManager:ManagedObjectReference? virtualDiskManager:ManagedObjectReference? virtualizationManager:ManagedObjectReference? snmpSystem:ManagedObjectReference? vmProvisioningChecker:ManagedObjectReference? vmCompatibilityChecker:ManagedObjectReference? ovfManager:ManagedObjectReference? ipPoolManager:ManagedObjectReference? dvSwitchManager:ManagedObjectReference? hostProfileManager:ManagedObjectReference? clusterProfileManager:ManagedObjectReference? complianceManager:ManagedObjectReference? localizationManager:ManagedObjectReference? storageResourceManager:ManagedObjectReference? guestOperationsManager:ManagedObjectReference? overheadMemoryManager:ManagedObjectReference? certificateManager:ManagedObjectReference? ioFilterManager:ManagedObjectReference? vStorageObjectManager:ManagedObjectReference? hostSpecManager:ManagedObjectReference? cryptoManager:ManagedObjectReference? healthUpdateManager:ManagedObjectReference? failoverClusterConfigurator:ManagedObjectReference? failoverClusterManager:ManagedObjectReference? tenantManager:ManagedObjectReference? siteInfoManager:ManagedObjectReference? storageQueryManager:ManagedObjectReference? directPathProfileManager:ManagedObjectReference?@9.0.0.0',
  ServiceLocator:
    ' instanceUuid:string url:string credential:ServiceLocatorCredential^ sslThumbprint:string? sslCertificate:string?@9.0.0.0',
  ServiceLocatorCredential: '',
  SharesInfo: ' shares:int level:string',
  SnapshotFault: 'VimFault',
  StorageIOAllocationInfo: ' limit:long? shares:SharesInfo? reservation:int?',
  SystemError: 'RuntimeFault reason:string',
  TagId: ' nameId:TagIdNameId? uuid:string?',
  TagIdNameId: ' tag:string category:string',
  TagSpec: 'ArrayUpdateSpec id:TagId',
  TaskInProgress: 'VimFault task:ManagedObjectReference',
  TaskInfo:
    ' key:string task:ManagedObjectReference description:LocalizableMessage? name:string? descriptionId:string entity:ManagedObjectReference? entityName:string? locked:ManagedObjectReference*? state:string cancelled:boolean cancelable:boolean error:LocalizedMethodFault? result:anyType^? progress:int? progressDetails:KeyAnyValue*?@8.0.1.0 reason:TaskReason^ queueTime:dateTime startTime:dateTime? completeTime:dateTime? eventChainId:int changeTag:string? parentTaskKey:string? rootTaskKey:string? activationId:string?',
  TaskReason: '',
  TaskScheduler: ' activeTime:dateTime? expireTime:dateTime?',
  Timedout: 'VimFault',
  ToolsConfigInfo:
    ' toolsVersion:int? toolsInstallType:string? afterPowerOn:boolean? afterResume:boolean? beforeGuestStandby:boolean? beforeGuestShutdown:boolean? beforeGuestReboot:boolean? toolsUpgradePolicy:string? pendingCustomization:string? customizationKeyId:CryptoKeyId? syncTimeWithHostAllowed:boolean?@7.0.1.0 syncTimeWithHost:boolean? lastInstallInfo:ToolsConfigInfoToolsLastInstallInfo?',
  ToolsConfigInfoToolsLastInstallInfo: ' counter:int fault:LocalizedMethodFault?',
  ToolsUnavailable: 'VimFault',
  TraversalSpec: 'SelectionSpec type:string path:string skip:boolean? selectSet:SelectionSpec*^?',
  UpdateSet: ' version:string filterSet:PropertyFilterUpdate*? truncated:boolean?',
  UserSession:
    ' key:string userName:string fullName:string loginTime:dateTime lastActiveTime:dateTime locale:string messageLocale:string extensionSession:boolean ipAddress:string userAgent:string callCount:long',
  VAppIPAssignmentInfo:
    ' supportedAllocationScheme:string*? ipAllocationPolicy:string? supportedIpProtocol:string*? ipProtocol:string?',
  VAppOvfSectionInfo: ' key:int? namespace:string? type:string? atEnvelopeLevel:boolean? contents:string?',
  VAppOvfSectionSpec: 'ArrayUpdateSpec info:VAppOvfSectionInfo?',
  VAppProductInfo:
    ' key:int classId:string? instanceId:string? name:string? vendor:string? version:string? fullVersion:string? vendorUrl:string? productUrl:string? appUrl:string?',
  VAppProductSpec: 'ArrayUpdateSpec info:VAppProductInfo?',
  VAppPropertyInfo:
    ' key:int classId:string? instanceId:string? id:string? category:string? label:string? type:string? typeReference:string? userConfigurable:boolean? defaultValue:string? value:string? description:string?',
  VAppPropertySpec: 'ArrayUpdateSpec info:VAppPropertyInfo?',
  VimFault: 'MethodFault',
  VirtualController: 'VirtualDevice busNumber:int device:int*?',
  VirtualDevice:
    ' key:int deviceInfo:Description^? backing:VirtualDeviceBackingInfo^? connectable:VirtualDeviceConnectInfo? slotInfo:VirtualDeviceBusSlotInfo^? controllerKey:int? unitNumber:int? numaNode:int?@8.0.0.1 deviceGroupInfo:VirtualDeviceDeviceGroupInfo?@8.0.0.1',
  VirtualDeviceBackingInfo: '',
  VirtualDeviceBusSlotInfo: '',
  VirtualDeviceConfigSpec:
    ' operation:string? fileOperation:string? device:VirtualDevice^ profile:VirtualMachineProfileSpec*^? backing:VirtualDeviceConfigSpecBackingSpec? filterSpec:VirtualMachineBaseIndependentFilterSpec*^?@7.0.2.1 changeMode:string?@8.0.0.1',
  VirtualDeviceConfigSpecBackingSpec: ' parent:VirtualDeviceConfigSpecBackingSpec? crypto:CryptoSpec^?',
  VirtualDeviceConnectInfo:
    ' migrateConnect:string? startConnected:boolean allowGuestControl:boolean connected:boolean status:string?',
  VirtualDeviceDeviceBackingInfo: 'VirtualDeviceBackingInfo deviceName:string useAutoDetect:boolean?',
  VirtualDeviceDeviceGroupInfo: ' groupInstanceKey:int sequenceId:int',
  VirtualDeviceFileBackingInfo:
    'VirtualDeviceBackingInfo fileName:string datastore:ManagedObjectReference? backingObjectId:string?',
  VirtualDisk:
    'VirtualDevice capacityInKB:long capacityInBytes:long? shares:SharesInfo? storageIOAllocation:StorageIOAllocationInfo? diskObjectId:string? vFlashCacheConfigInfo:VirtualDiskVFlashCacheConfigInfo? iofilter:string*? vDiskId:ID? vDiskVersion:int?@8.0.1.0 virtualDiskFormat:string?@9.0.0.0 nativeUnmanagedLinkedClone:boolean? independentFilters:VirtualMachineBaseIndependentFilterSpec*^?@7.0.2.1 guestReadOnly:boolean?@8.0.2.0',
  VirtualDiskFlatVer2BackingInfo:
    'VirtualDeviceFileBackingInfo diskMode:string split:boolean? writeThrough:boolean? thinProvisioned:boolean? eagerlyScrub:boolean? uuid:string? contentId:string? changeId:string? parent:VirtualDiskFlatVer2BackingInfo? deltaDiskFormat:string? digestEnabled:boolean? deltaGrainSize:int? deltaDiskFormatVariant:string? sharing:string? keyId:CryptoKeyId?',
  VirtualDiskSeSparseBackingInfo:
    'VirtualDeviceFileBackingInfo diskMode:string writeThrough:boolean? uuid:string? contentId:string? changeId:string? parent:VirtualDiskSeSparseBackingInfo? deltaDiskFormat:string? digestEnabled:boolean? grainSize:int? keyId:CryptoKeyId?',
  VirtualDiskSparseVer2BackingInfo:
    'VirtualDeviceFileBackingInfo diskMode:string split:boolean? writeThrough:boolean? spaceUsedInKB:long? uuid:string? contentId:string? changeId:string? parent:VirtualDiskSparseVer2BackingInfo? keyId:CryptoKeyId?',
  VirtualDiskVFlashCacheConfigInfo:
    ' vFlashModule:string? reservationInMB:long? cacheConsistencyType:string? cacheMode:string? blockSizeInKB:long?',
  VirtualE1000e: 'VirtualEthernetCard',
  VirtualEthernetCard:
    'VirtualDevice addressType:string? macAddress:string? wakeOnLanEnabled:boolean? resourceAllocation:VirtualEthernetCardResourceAllocation? externalId:string? uptCompatibilityEnabled:boolean? subnetId:string?@9.0.0.0',
  VirtualEthernetCardDistributedVirtualPortBackingInfo:
    'VirtualDeviceBackingInfo port:DistributedVirtualSwitchPortConnection',
  VirtualEthernetCardNetworkBackingInfo:
    'VirtualDeviceDeviceBackingInfo network:ManagedObjectReference? inPassthroughMode:boolean?',
  VirtualEthernetCardResourceAllocation: ' reservation:long? share:SharesInfo limit:long?',
  VirtualHardware:
    ' numCPU:int numCoresPerSocket:int? autoCoresPerSocket:boolean?@8.0.0.1 memoryMB:int virtualICH7MPresent:boolean? virtualSMCPresent:boolean? device:VirtualDevice*^? motherboardLayout:string?@8.0.0.1 simultaneousThreads:int?@8.0.0.1',
  VirtualLsiLogicController: 'VirtualSCSIController',
  VirtualMachineAffinityInfo: ' affinitySet:int*',
  VirtualMachineBaseIndependentFilterSpec: '',
  VirtualMachineBootOptions:
    ' bootDelay:long? enterBIOSSetup:boolean? efiSecureBootEnabled:boolean? bootRetryEnabled:boolean? bootRetryDelay:long? bootOrder:VirtualMachineBootOptionsBootableDevice*^? networkBootProtocol:string?',
  VirtualMachineBootOptionsBootableDevice: '',
  VirtualMachineCloneSpec:
    ' location:VirtualMachineRelocateSpec template:boolean config:VirtualMachineConfigSpec? customization:CustomizationSpec? powerOn:boolean snapshot:ManagedObjectReference? memory:boolean? tpmProvisionPolicy:string?@8.0.0.1',
  VirtualMachineConfigInfo:
    ' changeVersion:string modified:dateTime name:string guestFullName:string version:string uuid:string createDate:dateTime? instanceUuid:string? npivNodeWorldWideName:long*? npivPortWorldWideName:long*? npivWorldWideNameType:string? npivDesiredNodeWwns:short? npivDesiredPortWwns:short? npivTemporaryDisabled:boolean? npivOnNonRdmDisks:boolean? locationId:string? template:boolean guestId:string alternateGuestName:string annotation:string? files:VirtualMachineFileInfo tools:ToolsConfigInfo? flags:VirtualMachineFlagInfo consolePreferences:VirtualMachineConsolePreferences? defaultPowerOps:VirtualMachineDefaultPowerOpInfo rebootPowerOff:boolean?@8.0.0.1 hardware:VirtualHardware vcpuConfig:VirtualMachineVcpuConfig*? cpuAllocation:ResourceAllocationInfo? memoryAllocation:ResourceAllocationInfo? latencySensitivity:LatencySensitivity? memoryHotAddEnabled:boolean? cpuHotAddEnabled:boolean? cpuHotRemoveEnabled:boolean? hotPlugMemoryLimit:long? hotPlugMemoryIncrementSize:long? cpuAffinity:VirtualMachineAffinityInfo? memoryAffinity:VirtualMachineAffinityInfo? networkShaper:VirtualMachineNetworkShaperInfo? extraConfig:OptionValue*^? cpuFeatureMask:HostCpuIdInfo*? datastoreUrl:VirtualMachineConfigInfoDatastoreUrlPair*? swapPlacement:string? bootOptions:VirtualMachineBootOptions? ftInfo:FaultToleranceConfigInfo^? repConfig:ReplicationConfigSpec? vAppConfig:VmConfigInfo^? vAssertsEnabled:boolean? changeTrackingEnabled:boolean? firmware:string? maxMksConnections:int? guestAutoLockEnabled:boolean? managedBy:ManagedByInfo? memoryReservationLockedToMax:boolean? initialOverhead:VirtualMachineConfigInfoOverheadInfo? nestedHVEnabled:boolean? vPMCEnabled:boolean? scheduledHardwareUpgradeInfo:ScheduledHardwareUpgradeInfo? forkConfigInfo:VirtualMachineForkConfigInfo? vFlashCacheReservation:long? vmxConfigChecksum:base64Binary? messageBusTunnelEnabled:boolean? vmStorageObjectId:string? swapStorageObjectId:string? keyId:CryptoKeyId? guestIntegrityInfo:VirtualMachineGuestIntegrityInfo? migrateEncryption:string? sgxInfo:VirtualMachineSgxInfo? contentLibItemInfo:VirtualMachineContentLibraryItemInfo? ftEncryptionMode:string?@7.0.2.0 guestMonitoringModeInfo:VirtualMachineGuestMonitoringModeInfo? sevEnabled:boolean?@7.0.1.0 numaInfo:VirtualMachineVirtualNumaInfo?@8.0.0.1 pmemFailoverEnabled:boolean?@7.0.2.0 vmxStatsCollectionEnabled:boolean?@7.0.3.1 vmOpNotificationToAppEnabled:boolean?@7.0.3.0 vmOpNotificationTimeout:long?@8.0.0.1 deviceSwap:VirtualMachineVirtualDeviceSwap?@8.0.0.1 pmem:VirtualMachineVirtualPMem?@7.0.3.0 deviceGroups:VirtualMachineVirtualDeviceGroups?@8.0.0.1 fixedPassthruHotPlugEnabled:boolean?@8.0.1.0 metroFtEnabled:boolean?@8.0.3.0 vmxRuntimeConfig:OptionValue*^?@9.0.0.0 metroFtHostGroup:string?@8.0.3.0 tdxEnabled:boolean?@9.0.0.0 sevSnpEnabled:boolean?@9.0.0.0 extensionCompatibilityConstraint:VirtualMachineExtensionCompatibilityConstraintSet?@9.1.0.0',
  VirtualMachineConfigInfoDatastoreUrlPair: ' name:string url:string',
  VirtualMachineConfigInfoOverheadInfo: ' initialMemoryReservation:long? initialSwapReservation:long?',
  VirtualMachineConfigSpec:
    ' changeVersion:string? name:string? version:string? createDate:dateTime? uuid:string? instanceUuid:string? npivNodeWorldWideName:long*? npivPortWorldWideName:long*? npivWorldWideNameType:string? npivDesiredNodeWwns:short? npivDesiredPortWwns:short? npivTemporaryDisabled:boolean? npivOnNonRdmDisks:boolean? npivWorldWideNameOp:string? locationId:string? guestId:string? alternateGuestName:string? annotation:string? files:VirtualMachineFileInfo? tools:ToolsConfigInfo? flags:VirtualMachineFlagInfo? consolePreferences:VirtualMachineConsolePreferences? powerOpInfo:VirtualMachineDefaultPowerOpInfo? rebootPowerOff:boolean?@8.0.0.1 numCPUs:int? vcpuConfig:VirtualMachineVcpuConfig*? numCoresPerSocket:int? memoryMB:long? memoryHotAddEnabled:boolean? cpuHotAddEnabled:boolean? cpuHotRemoveEnabled:boolean? virtualICH7MPresent:boolean? virtualSMCPresent:boolean? deviceChange:VirtualDeviceConfigSpec*^? cpuAllocation:ResourceAllocationInfo? memoryAllocation:ResourceAllocationInfo? latencySensitivity:LatencySensitivity? cpuAffinity:VirtualMachineAffinityInfo? memoryAffinity:VirtualMachineAffinityInfo? networkShaper:VirtualMachineNetworkShaperInfo? cpuFeatureMask:VirtualMachineCpuIdInfoSpec*? extraConfig:OptionValue*^? swapPlacement:string? bootOptions:VirtualMachineBootOptions? vAppConfig:VmConfigSpec^? ftInfo:FaultToleranceConfigInfo^? repConfig:ReplicationConfigSpec? vAppConfigRemoved:boolean? vAssertsEnabled:boolean? changeTrackingEnabled:boolean? firmware:string? maxMksConnections:int? guestAutoLockEnabled:boolean? managedBy:ManagedByInfo? memoryReservationLockedToMax:boolean? nestedHVEnabled:boolean? vPMCEnabled:boolean? scheduledHardwareUpgradeInfo:ScheduledHardwareUpgradeInfo? vmProfile:VirtualMachineProfileSpec*^? messageBusTunnelEnabled:boolean? crypto:CryptoSpec^? migrateEncryption:string? sgxInfo:VirtualMachineSgxInfo? ftEncryptionMode:string?@7.0.2.0 guestMonitoringModeInfo:VirtualMachineGuestMonitoringModeInfo? sevEnabled:boolean?@7.0.1.0 virtualNuma:VirtualMachineVirtualNuma?@8.0.0.1 motherboardLayout:string?@8.0.0.1 pmemFailoverEnabled:boolean?@7.0.2.0 vmxStatsCollectionEnabled:boolean?@7.0.3.1 vmOpNotificationToAppEnabled:boolean?@7.0.3.0 vmOpNotificationTimeout:long?@8.0.0.1 deviceSwap:VirtualMachineVirtualDeviceSwap?@8.0.0.1 simultaneousThreads:int?@8.0.0.1 pmem:VirtualMachineVirtualPMem?@7.0.3.0 deviceGroups:VirtualMachineVirtualDeviceGroups?@8.0.0.1 fixedPassthruHotPlugEnabled:boolean?@8.0.1.0 metroFtEnabled:boolean?@8.0.3.0 metroFtHostGroup:string?@8.0.3.0 tdxEnabled:boolean?@9.0.0.0 sevSnpEnabled:boolean?@9.0.0.0 tagSpecs:TagSpec*?@9.1.0.0 vmPlacementPolicies:VmPlacementPolicy*^?@9.1.0.0 extensionCompatibilityConstraint:VirtualMachineExtensionCompatibilityConstraintSet?@9.1.0.0 skipExtensionCompatibilityChecks:boolean?@9.1.0.0',
  VirtualMachineConsolePreferences:
    ' powerOnWhenOpened:boolean? enterFullScreenOnPowerOn:boolean? closeOnPowerOffOrSuspend:boolean?',
  VirtualMachineContentLibraryItemInfo: ' contentLibraryItemUuid:string contentLibraryItemVersion:string?',
  VirtualMachineCpuIdInfoSpec: 'ArrayUpdateSpec info:HostCpuIdInfo?',
  VirtualMachineDefaultPowerOpInfo:
    ' powerOffType:string? suspendType:string? resetType:string? defaultPowerOffType:string? defaultSuspendType:string? defaultResetType:string? standbyAction:string?',
  VirtualMachineDefinedProfileSpec:
    'VirtualMachineProfileSpec profileId:string replicationSpec:ReplicationSpec? profileData:VirtualMachineProfileRawData? profileParams:KeyValue*?',
  VirtualMachineExtensionCompatibilityConstraint:
    ' constraintName:string? constraintType:string constraintKind:string',
  VirtualMachineExtensionCompatibilityConstraintSet:
    ' constraint:VirtualMachineExtensionCompatibilityConstraint*?',
  VirtualMachineFileInfo:
    ' vmPathName:string? snapshotDirectory:string? suspendDirectory:string? logDirectory:string? ftMetadataDirectory:string?',
  VirtualMachineFlagInfo:
    ' disableAcceleration:boolean? enableLogging:boolean? useToe:boolean? runWithDebugInfo:boolean? monitorType:string? htSharing:string? snapshotDisabled:boolean? snapshotLocked:boolean? diskUuidEnabled:boolean? virtualMmuUsage:string? virtualExecUsage:string? snapshotPowerOffBehavior:string? recordReplayEnabled:boolean? faultToleranceType:string? cbrcCacheEnabled:boolean? vvtdEnabled:boolean? vbsEnabled:boolean?',
  VirtualMachineForkConfigInfo:
    ' parentEnabled:boolean? childForkGroupId:string? parentForkGroupId:string? childType:string?',
  VirtualMachineGuestIntegrityInfo: ' enabled:boolean?',
  VirtualMachineGuestMonitoringModeInfo: ' gmmFile:string? gmmAppliance:string?',
  VirtualMachineMessage: ' id:string argument:anyType*^? text:string?',
  VirtualMachineNetworkShaperInfo: ' enabled:boolean? peakBps:long? averageBps:long? burstSize:long?',
  VirtualMachineProfileRawData: ' extensionKey:string objectData:string?',
  VirtualMachineProfileSpec: '',
  VirtualMachineQuestionInfo: ' id:string text:string choice:ChoiceOption message:VirtualMachineMessage*?',
  VirtualMachineQuickStats:
    ' overallCpuUsage:int? overallCpuDemand:int? overallCpuReadiness:int? guestMemoryUsage:int? hostMemoryUsage:int? guestHeartbeatStatus:string distributedCpuEntitlement:int? distributedMemoryEntitlement:int? staticCpuEntitlement:int? staticMemoryEntitlement:int? grantedMemory:int? privateMemory:int? sharedMemory:int? swappedMemory:int? balloonedMemory:int? consumedOverheadMemory:int? ftLogBandwidth:int? ftSecondaryLatency:int? ftLatencyStatus:string? compressedMemory:long? uptimeSeconds:int? ssdSwappedMemory:long? activeMemory:int?@7.0.3.0 memoryTierStats:VirtualMachineQuickStatsMemoryTierStats*?@7.0.3.0',
  VirtualMachineQuickStatsMemoryTierStats: ' memoryTierType:string readBandwidth:long',
  VirtualMachineRelocateSpec:
    ' service:ServiceLocator? folder:ManagedObjectReference? datastore:ManagedObjectReference? diskMoveType:string? pool:ManagedObjectReference? host:ManagedObjectReference? disk:VirtualMachineRelocateSpecDiskLocator*? transform:string? deviceChange:VirtualDeviceConfigSpec*^? profile:VirtualMachineProfileSpec*^? cryptoSpec:CryptoSpec^? tagSpecs:TagSpec*?@9.1.0.0 vmPlacementPolicies:VmPlacementPolicy*^?@9.1.0.0 skipExtensionCompatibilityChecks:boolean?@9.1.0.0',
  VirtualMachineRelocateSpecDiskLocator:
    ' diskId:int datastore:ManagedObjectReference diskMoveType:string? diskBackingInfo:VirtualDeviceBackingInfo^? profile:VirtualMachineProfileSpec*^? backing:VirtualMachineRelocateSpecDiskLocatorBackingSpec? filterSpec:VirtualMachineBaseIndependentFilterSpec*^?@7.0.2.1',
  VirtualMachineRelocateSpecDiskLocatorBackingSpec:
    ' parent:VirtualMachineRelocateSpecDiskLocatorBackingSpec? crypto:CryptoSpec^?',
  VirtualMachineSgxInfo:
    ' epcSize:long flcMode:string? lePubKeyHash:string? requireAttestation:boolean?@8.0.0.1',
  VirtualMachineSnapshotInfo:
    ' currentSnapshot:ManagedObjectReference? rootSnapshotList:VirtualMachineSnapshotTree*',
  VirtualMachineSnapshotTree:
    ' snapshot:ManagedObjectReference vm:ManagedObjectReference name:string description:string id:int createTime:dateTime state:string quiesced:boolean backupManifest:string? childSnapshotList:VirtualMachineSnapshotTree*? replaySupported:boolean?',
  VirtualMachineVcpuConfig: ' latencySensitivity:LatencySensitivity?',
  VirtualMachineVirtualDeviceGroups: ' deviceGroup:VirtualMachineVirtualDeviceGroupsDeviceGroup*^?',
  VirtualMachineVirtualDeviceGroupsDeviceGroup: ' groupInstanceKey:int deviceInfo:Description^?',
  VirtualMachineVirtualDeviceSwap: ' lsiToPvscsi:VirtualMachineVirtualDeviceSwapDeviceSwapInfo?',
  VirtualMachineVirtualDeviceSwapDeviceSwapInfo: ' enabled:boolean? applicable:boolean? status:string?',
  VirtualMachineVirtualNuma: ' coresPerNumaNode:int? exposeVnumaOnCpuHotadd:boolean?',
  VirtualMachineVirtualNumaInfo:
    ' coresPerNumaNode:int? autoCoresPerNumaNode:boolean? vnumaOnCpuHotaddExposed:boolean?',
  VirtualMachineVirtualPMem: ' snapshotMode:string?',
  VirtualPCIPassthrough: 'VirtualDevice',
  VirtualPCIPassthroughAllowedDevice:
    ' vendorId:int deviceId:int subVendorId:int? subDeviceId:int? revisionId:short?',
  VirtualPCIPassthroughDeviceBackingInfo:
    'VirtualDeviceDeviceBackingInfo id:string deviceId:string systemId:string vendorId:short',
  VirtualPCIPassthroughDynamicBackingInfo:
    'VirtualDeviceDeviceBackingInfo allowedDevice:VirtualPCIPassthroughAllowedDevice*? customLabel:string? assignedId:string?',
  VirtualPCIPassthroughPluginBackingInfo: 'VirtualDeviceBackingInfo',
  VirtualPCIPassthroughVmiopBackingInfo:
    'VirtualPCIPassthroughPluginBackingInfo vgpu:string? vgpuMigrateDataSizeMB:int?@8.0.0.1 migrateSupported:boolean?@7.0.2.0 enhancedMigrateCapability:boolean?@8.0.0.1',
  VirtualSCSIController: 'VirtualController hotAddRemove:boolean? sharedBus:string scsiCtlrUnitNumber:int?',
  VirtualVmxnet: 'VirtualEthernetCard',
  VirtualVmxnet3:
    'VirtualVmxnet uptv2Enabled:boolean?@8.0.0.1 strictLatencyConfig:VirtualVmxnet3StrictLatencyConfig?@8.0.3.1',
  VirtualVmxnet3StrictLatencyConfig:
    ' allowed:boolean? measureLatency:boolean? maxTxQueues:int? maxRxQueues:int? txDataRingDescSize:int? rxDataRingDescSize:int? disableOffload:string?',
  VmConfigFault: 'VimFault',
  VmConfigInfo:
    ' product:VAppProductInfo*? property:VAppPropertyInfo*? ipAssignment:VAppIPAssignmentInfo eula:string*? ovfSection:VAppOvfSectionInfo*? ovfEnvironmentTransport:string*? installBootRequired:boolean installBootStopDelay:int',
  VmConfigSpec:
    ' product:VAppProductSpec*? property:VAppPropertySpec*? ipAssignment:VAppIPAssignmentInfo? eula:string*? ovfSection:VAppOvfSectionSpec*? ovfEnvironmentTransport:string*? installBootRequired:boolean? installBootStopDelay:int?',
  VmPlacementPolicy: ' tagsToAttach:string*?',
  VsanHostDecommissionMode: ' objectAction:string',
  WaitOptions: ' maxWaitSeconds:int? maxObjectUpdates:int?',
};

/** API version that introduced a type, for types newer than 6.7. */
export const SINCE: Readonly<Record<string, string>> = {
  HostQualifiedName: '7.0.3.0',
  NoPermissionEntityPrivileges: '7.0.3.2',
  TagId: '9.1.0.0',
  TagSpec: '9.1.0.0',
  VirtualDeviceDeviceGroupInfo: '8.0.0.1',
  VirtualMachineBaseIndependentFilterSpec: '7.0.2.1',
  VirtualMachineQuickStatsMemoryTierStats: '7.0.3.0',
  VirtualMachineVirtualDeviceGroups: '8.0.0.1',
  VirtualMachineVirtualDeviceSwap: '8.0.0.1',
  VirtualMachineVirtualDeviceSwapDeviceSwapInfo: '8.0.0.1',
  VirtualMachineVirtualNuma: '8.0.0.1',
  VirtualMachineVirtualNumaInfo: '8.0.0.1',
  VirtualMachineVirtualPMem: '7.0.3.0',
  VirtualVmxnet3StrictLatencyConfig: '8.0.3.1',
  VmPlacementPolicy: '9.1.0.0',
};

/** Types that are not in this schema, by their nearest base type in it. */
export const SUBTYPES: Readonly<Record<string, string>> = {
  Action: 'CreateTaskAction RunScriptAction SendEmailAction SendSNMPAction',
  ArrayUpdateSpec:
    'ClusterDasVmConfigSpec ClusterDatastoreUpdateSpec ClusterDpmHostConfigSpec ClusterDrsVmConfigSpec ClusterGroupSpec ClusterPreemptibleVmPairSpec ClusterRuleSpec ClusterTagCategoryUpdateSpec ClusterVmOrchestrationSpec StorageDrsOptionSpec StorageDrsVmConfigSpec',
  CryptoSpec:
    'CryptoSpecDecrypt CryptoSpecDeepRecrypt CryptoSpecEncrypt CryptoSpecNoOp CryptoSpecRegister CryptoSpecShallowRecrypt',
  CustomizationFault:
    'CannotDecryptPasswords CustomizationPending IpHostnameGeneratorError LinuxVolumeNotClean MissingLinuxCustResources MissingWindowsCustResources MountError NicSettingMismatch NoDisksToCustomize UncustomizableGuest UnexpectedCustomizationFault VolumeEditorError',
  CustomizationIdentitySettings:
    'CustomizationCloudinitPrep CustomizationLinuxFlexPrep CustomizationLinuxPrep CustomizationSysprep CustomizationSysprepText CustomizationWindowsFlexPrep',
  CustomizationIpGenerator:
    'CustomizationCustomIpGenerator CustomizationDhcpIpGenerator CustomizationDisableIpV4 CustomizationFixedIp CustomizationUnknownIpGenerator',
  CustomizationIpV6Generator:
    'CustomizationAutoIpV6Generator CustomizationCustomIpV6Generator CustomizationDhcpIpV6Generator CustomizationFixedIpV6 CustomizationStatelessIpV6Generator CustomizationUnknownIpV6Generator',
  CustomizationOptions: 'CustomizationLinuxOptions CustomizationWinOptions',
  Description: 'ExtendedDescription MethodDescription ScheduledTaskDetail TypeDescription',
  ElementDescription: 'EVCMode ExtendedElementDescription FeatureEVCMode OptionDef',
  FaultToleranceConfigInfo: 'FaultTolerancePrimaryConfigInfo FaultToleranceSecondaryConfigInfo',
  FileFault:
    'CannotCreateFile CannotDeleteFile DirectoryNotEmpty FileNameTooLong FileNotWritable FileTooLarge IncorrectFileType NetworkCopyFault NotADirectory NotAFile TooManyConcurrentNativeClones TooManyNativeCloneLevels TooManyNativeClonesOnFile',
  HostCommunication: 'HostNotReachable',
  HostConnectFault:
    'AgentInstallFailed AlreadyBeingManaged AlreadyConnected CannotAddHostWithFTVmAsStandalone CannotAddHostWithFTVmToDifferentCluster CannotAddHostWithFTVmToNonHACluster EVCAdmissionFailed EVCAdmissionFailedCPUFeaturesForMode EVCAdmissionFailedCPUModel EVCAdmissionFailedCPUModelForMode EVCAdmissionFailedCPUVendor EVCAdmissionFailedCPUVendorUnknown EVCAdmissionFailedHostDisconnected EVCAdmissionFailedHostSoftware EVCAdmissionFailedHostSoftwareForMode EVCAdmissionFailedVmActive GatewayConnectFault GatewayHostNotReachable GatewayNotFound GatewayNotReachable GatewayOperationRefused GatewayToHostAuthFault GatewayToHostConnectFault GatewayToHostTrustVerifyFault MultipleCertificatesVerifyFault NoHost NonVmwareOuiMacNotSupportedHost NotSupportedHost NotSupportedHostForVFlash NotSupportedHostForVmcp NotSupportedHostForVmemFile NotSupportedHostForVsan NotSupportedHostInCluster NotSupportedHostInDvs NotSupportedHostInHACluster ReadHostResourcePoolTreeFailed SSLDisabledFault SSLVerifyFault TooManyHosts',
  InsufficientResourcesFault:
    'InsufficientAgentVmsDeployed InsufficientCpuResourcesFault InsufficientFailoverResourcesFault InsufficientGraphicsResourcesFault InsufficientHostCapacityFault InsufficientHostCpuCapacityFault InsufficientHostMemoryCapacityFault InsufficientMemoryResourcesFault InsufficientNetworkCapacity InsufficientNetworkResourcePoolCapacity InsufficientPerCpuCapacity InsufficientStandbyCpuResource InsufficientStandbyMemoryResource InsufficientStandbyResource InsufficientStorageSpace InsufficientVFlashResourcesFault InvalidResourcePoolStructureFault NumVirtualCpusExceedsLimit VmFaultToleranceTooManyFtVcpusOnHost VmFaultToleranceTooManyVMsOnHost VmSmpFaultToleranceTooManyVMsOnHost',
  InvalidArgument:
    'IncompatibleSetting InvalidDasConfigArgument InvalidDasRestartPriorityForFtVm InvalidDrsBehaviorForFtVm InvalidIndexArgument',
  InvalidDatastore:
    'DatastoreNotWritableOnHost InaccessibleDatastore InaccessibleFTMetadataDatastore InvalidDatastorePath SwapDatastoreNotWritableOnHost',
  InvalidDeviceSpec:
    'DeviceHotPlugNotSupported DeviceNotFound DeviceUnsupportedForVmPlatform DeviceUnsupportedForVmVersion DisallowedDiskModeChange InvalidController InvalidDeviceBacking InvalidDeviceOperation MissingController',
  InvalidLogin: 'InvalidClientCertificate PasswordExpired',
  InvalidState:
    'CannotPowerOffVmInCluster EncryptionKeyRequired InvalidDatastoreState InvalidHostConnectionState InvalidHostState InvalidVmState MksConnectionLimitReached NoActiveHostInCluster OvfConsumerPowerOnFault QuestionPending VmPowerOnDisabled',
  InvalidVmConfig: 'SwapPlacementOverrideNotSupported TooManyDevices UnsupportedGuest VmWwnConflict',
  NetBIOSConfigInfo: 'WinNetBIOSConfigInfo',
  NotSupported: 'HostAccessRestrictedToManagementServer',
  OptionType: 'BoolOption FloatOption IntOption LongOption StringOption',
  OptionValue: 'HostInternetScsiHbaParamValue',
  ResourceInUse: 'FilterInUse QuiesceDatastoreIOForHAFailed',
  RuntimeFault:
    'CannotDisableDrsOnClustersWithVApps ConflictingDatastoreFound DatabaseError DisallowedChangeByService DisallowedOperationOnFailoverHost ExpiredAddonLicense ExpiredEditionLicense ExpiredFeatureLicense FailToEnableSPBM FailToLockFaultToleranceVMs HostInventoryFull InUseFeatureManipulationDisallowed IncorrectHostInformation InvalidEditionLicense InvalidProfileReferenceHost InvalidScheduledTask InvalidToken InventoryHasStandardAloneHosts LicenseAssignmentFailed LicenseDowngradeDisallowed LicenseExpired LicenseKeyEntityMismatch LicenseRestricted LicenseSourceUnavailable MethodAlreadyDisabledFault MethodDisabled NoLicenseServerConfigured NotEnoughLicenses NotImplemented OperationDisallowedOnHost ThirdPartyLicenseAssignmentFailed UnexpectedFault VAppOperationInProgress VmLimitLicense VramLimitLicense',
  SecurityError: 'SolutionUserRequired',
  ServiceLocatorCredential: 'ServiceLocatorNamePassword ServiceLocatorSAMLCredential',
  SnapshotFault:
    'ApplicationQuiesceFault FilesystemQuiesceFault MemorySnapshotOnIndependentDisk MultipleSnapshotsNotSupported SnapshotDisabled SnapshotIncompatibleDeviceInVm SnapshotLocked SnapshotNoChange TooManySnapshotLevels',
  TaskInProgress: 'VAppTaskInProgress',
  TaskReason: 'TaskReasonAlarm TaskReasonSchedule TaskReasonSystem TaskReasonUser',
  TaskScheduler:
    'AfterStartupTaskScheduler DailyTaskScheduler HourlyTaskScheduler MonthlyByDayTaskScheduler MonthlyByWeekdayTaskScheduler MonthlyTaskScheduler OnceTaskScheduler RecurrentTaskScheduler WeeklyTaskScheduler',
  Timedout: 'PowerOnFtSecondaryTimedout',
  VimFault:
    'ActiveDirectoryFault ActiveVMsBlockingEVC AdminDisabled AdminNotDisabled AffinityConfigured AlreadyUpgraded AnswerFileUpdateFailed AuthMinimumAdminPermission BackupBlobReadFailure BackupBlobWriteFailure BlockedByFirewall CAMServerRefusedConnection CannotAccessLocalSource CannotChangeDrsBehaviorForFtSecondary CannotChangeHaSettingsForFtSecondary CannotChangeVsanClusterUuid CannotChangeVsanNodeUuid CannotComputeFTCompatibleHosts CannotDisconnectHostWithFaultToleranceVm CannotEnableVmcpForCluster CannotModifyConfigCpuRequirements CannotMoveFaultToleranceVm CannotMoveHostWithFaultToleranceVm CannotMoveVmWithDeltaDisk CannotMoveVmWithNativeDeltaDisk CannotMoveVsanEnabledHost CannotPlaceWithoutPrerequisiteMoves CannotReconfigureVsanWhenHaEnabled ClockSkew CloneFromSnapshotNotSupported CollectorAddressUnset ConflictingConfiguration ConnectedIso DasConfigFault DatacenterMismatch DestinationVsanDisabled DisableAdminNotSupported DisallowedMigrationDeviceAttached DisconnectedHostsBlockingEVC DiskHasPartitions DiskIsLastRemainingNonSSD DiskIsNonLocal DiskIsUSB DiskMoveTypeNotSupported DiskTooSmall DomainNotFound DrsDisabledOnVm DuplicateDisks DuplicateVsanNetworkInterface DvsApplyOperationFault DvsFault DvsNotAuthorized DvsOperationBulkFault DvsScopeViolated EVCConfigFault EVCModeIllegalByVendor EVCModeUnsupportedByHosts EVCUnsupportedByHostHardware EVCUnsupportedByHostSoftware ExtendedFault FaultToleranceAntiAffinityViolated FaultToleranceNeedsThickDisk FaultToleranceNotLicensed FaultToleranceNotSameBuild FaultTolerancePrimaryPowerOnNotAttempted FaultToleranceVmNotDasProtected FcoeFault FcoeFaultPnicHasNoPortSet FtIssuesOnHost FullStorageVMotionNotSupported GenericDrsFault GuestAuthenticationChallenge GuestComponentsOutOfDate GuestMultipleMappings GuestOperationsFault GuestOperationsUnavailable GuestPermissionDenied GuestProcessNotFound GuestRegistryFault GuestRegistryKeyAlreadyExists GuestRegistryKeyFault GuestRegistryKeyHasSubkeys GuestRegistryKeyInvalid GuestRegistryKeyParentVolatile GuestRegistryValueFault GuestRegistryValueNotFound HAErrorsAtDest HeterogenousHostsBlockingEVC HostConfigFailed HostConfigFault HostHasComponentFailure HostInDomain HostIncompatibleForFaultTolerance HostIncompatibleForRecordReplay HostPowerOpFailed HostSpecificationOperationFailed HotSnapshotMoveNotSupported HttpFault IORMNotSupportedHostOnDatastore ImportHostAddFailure ImportOperationBulkFault InaccessibleVFlashSource IncompatibleDefaultDevice IncompatibleHostForFtSecondary IncompatibleHostForVmReplication IndependentDiskVMotionNotSupported InsufficientDisks InsufficientStorageIops InvalidAffinitySettingFault InvalidBmcRole InvalidBundle InvalidCAMCertificate InvalidCAMServer InvalidEvent InvalidFolder InvalidGuestLogin InvalidHostName InvalidIpfixConfig InvalidIpmiLoginInfo InvalidIpmiMacAddress InvalidLicense InvalidLocale InvalidNasCredentials InvalidNetworkResource InvalidOperationOnSecondaryVm InvalidPrivilege IscsiFault IscsiFaultInvalidVnic IscsiFaultPnicInUse IscsiFaultVnicAlreadyBound IscsiFaultVnicHasActivePaths IscsiFaultVnicHasMultipleUplinks IscsiFaultVnicHasNoUplinks IscsiFaultVnicHasWrongUplink IscsiFaultVnicInUse IscsiFaultVnicIsLastPath IscsiFaultVnicNotBound IscsiFaultVnicNotFound KeyNotFound LargeRDMConversionNotSupported LicenseEntityNotFound LicenseServerUnavailable LimitExceeded LogBundlingFailed MaintenanceModeFileMove MigrationDisabled MigrationFault MigrationFeatureNotSupported MigrationNotReady MismatchedBundle MismatchedNetworkPolicies MismatchedVMotionNetworkNames MissingBmcSupport MissingPowerOffConfiguration MissingPowerOnConfiguration NamespaceFull NamespaceLimitReached NamespaceWriteProtected NasConfigFault NasConnectionLimitReached NasSessionCredentialConflict NasVolumeNotMounted NetworkDisruptedAndConfigRolledBack NetworkInaccessible NetworksMayNotBeTheSame NoClientCertificate NoCompatibleDatastore NoCompatibleHost NoCompatibleHostWithAccessToDevice NoConnectedDatastore NoDiskFound NoGateway NoGuestHeartbeat NoHostSuitableForFtSecondary NoPeerHostFound NoPermissionOnAD NoPermissionOnNasVolume NoSubjectName NoVirtualNic NoVmInVApp NonADUserRequired NonHomeRDMVMotionNotSupported NotSupportedDeviceForFT NotSupportedHostForChecksum OperationDisabledByGuest OperationNotSupportedByGuest OutOfBounds OvfAttribute OvfConnectedDevice OvfConnectedDeviceFloppy OvfConnectedDeviceIso OvfConstraint OvfConsumerCallbackFault OvfConsumerCommunicationError OvfConsumerFault OvfConsumerInvalidSection OvfConsumerUndeclaredSection OvfConsumerUndefinedPrefix OvfCpuCompatibility OvfCpuCompatibilityCheckNotSupported OvfDiskMappingNotFound OvfDiskOrderConstraint OvfDuplicateElement OvfDuplicatedElementBoundary OvfDuplicatedPropertyIdExport OvfDuplicatedPropertyIdImport OvfElement OvfElementInvalidValue OvfExport OvfExportFailed OvfFault OvfHardwareCheck OvfHardwareExport OvfHostResourceConstraint OvfHostValueNotParsed OvfImport OvfImportFailed OvfInternalError OvfInvalidPackage OvfInvalidValue OvfInvalidValueConfiguration OvfInvalidValueEmpty OvfInvalidValueFormatMalformed OvfInvalidValueReference OvfInvalidVmName OvfMappedOsId OvfMissingAttribute OvfMissingElement OvfMissingElementNormalBoundary OvfMissingHardware OvfNetworkMappingNotSupported OvfNoHostNic OvfNoSpaceOnController OvfNoSupportedHardwareFamily OvfProperty OvfPropertyExport OvfPropertyNetwork OvfPropertyNetworkExport OvfPropertyQualifier OvfPropertyQualifierDuplicate OvfPropertyQualifierIgnored OvfPropertyType OvfPropertyValue OvfSystemFault OvfToXmlUnsupportedElement OvfUnableToExportDisk OvfUnexpectedElement OvfUnknownDevice OvfUnknownDeviceBacking OvfUnknownEntity OvfUnsupportedAttribute OvfUnsupportedAttributeValue OvfUnsupportedDeviceBackingInfo OvfUnsupportedDeviceBackingOption OvfUnsupportedDeviceExport OvfUnsupportedDiskProvisioning OvfUnsupportedElement OvfUnsupportedElementValue OvfUnsupportedPackage OvfUnsupportedSection OvfUnsupportedSubType OvfUnsupportedType OvfWrongElement OvfWrongNamespace OvfXmlFormat PatchAlreadyInstalled PatchBinariesNotFound PatchInstallFailed PatchIntegrityError PatchMetadataCorrupted PatchMetadataInvalid PatchMetadataNotFound PatchMissingDependencies PatchNotApplicable PatchSuperseded PlatformConfigFault PowerOnFtSecondaryFailed ProfileUpdateFailed RDMConversionNotSupported RDMNotPreserved ReadOnlyDisksWithLegacyDestination RebootRequired RecordReplayDisabled RemoveFailed ReplicationConfigFault ReplicationDiskConfigFault ReplicationFault ReplicationIncompatibleWithFT ReplicationInvalidOptions ReplicationNotSupportedOnHost ReplicationVmConfigFault ReplicationVmFault ReplicationVmInProgressFault ResourceNotAvailable RollbackFailure SSPIChallenge SecondaryVmAlreadyDisabled SecondaryVmAlreadyEnabled SecondaryVmAlreadyRegistered SecondaryVmNotRegistered ShrinkDiskFault SnapshotCloneNotSupported SnapshotCopyNotSupported SnapshotMoveFromNonHomeNotSupported SnapshotMoveNotSupported SnapshotMoveToNonHomeNotSupported SnapshotRevertIssue SsdDiskNotAvailable StorageDrsCannotMoveDiskInMultiWriterMode StorageDrsCannotMoveFTVm StorageDrsCannotMoveIndependentDisk StorageDrsCannotMoveManuallyPlacedSwapFile StorageDrsCannotMoveManuallyPlacedVm StorageDrsCannotMoveSharedDisk StorageDrsCannotMoveTemplate StorageDrsCannotMoveVmInUserFolder StorageDrsCannotMoveVmWithMountedCDROM StorageDrsCannotMoveVmWithNoFilesInLayout StorageDrsDatacentersCannotShareDatastore StorageDrsDisabledOnVm StorageDrsHbrDiskNotMovable StorageDrsHmsMoveInProgress StorageDrsHmsUnreachable StorageDrsIolbDisabledInternally StorageDrsRelocateDisabled StorageDrsStaleHmsCollection StorageDrsUnableToMoveFiles StorageVMotionNotSupported SuspendedRelocateNotSupported SwapDatastoreUnset SwitchIpUnset SwitchNotInUpgradeMode TooManyConsecutiveOverrides TooManyDisksOnLegacyHost TooManyGuestLogons ToolsAlreadyUpgraded ToolsAutoUpgradeNotSupported ToolsImageCopyFailed ToolsImageNotAvailable ToolsImageSignatureCheckFailed ToolsInstallationInProgress ToolsUpgradeCancelled UncommittedUndoableDisk UnrecognizedHost UnsharedSwapVMotionNotSupported UnsupportedVimApiVersion UserNotFound VAppConfigFault VFlashModuleVersionIncompatible VMotionAcrossNetworkNotSupported VMotionInterfaceIssue VMotionLinkCapacityLow VMotionLinkDown VMotionNotConfigured VMotionNotLicensed VMotionNotSupported VMotionProtocolIncompatible VmAlreadyExistsInDatacenter VmFaultToleranceConfigIssue VmFaultToleranceConfigIssueWrapper VmFaultToleranceInvalidFileBacking VmFaultToleranceIssue VmFaultToleranceOpIssuesList VmMetadataManagerFault VmMonitorIncompatibleForFaultTolerance VmToolsUpgradeFault VmValidateMaxDevice VmfsAlreadyMounted VmfsAmbiguousMount VmfsMountFault VmotionInterfaceNotEnabled VsanClusterUuidMismatch VsanDiskFault VsanFault VsanIncompatibleDiskMapping VspanDestPortConflict VspanPortConflict VspanPortMoveFault VspanPortPromiscChangeFault VspanPortgroupPromiscChangeFault VspanPortgroupTypeChangeFault VspanPromiscuousPortNotSupported VspanSameSessionPortConflict WakeOnLanNotSupportedByVmotionNIC WillLoseHAProtection WillModifyConfigCpuRequirements WillResetSnapshotDirectory WipeDiskFault',
  VirtualController:
    'VirtualAHCIController VirtualIDEController VirtualNVDIMMController VirtualNVMEController VirtualPCIController VirtualPS2Controller VirtualSATAController VirtualSIOController VirtualUSBController VirtualUSBXHCIController',
  VirtualDevice:
    'VirtualCdrom VirtualEnsoniq1371 VirtualFloppy VirtualHdAudioCard VirtualKeyboard VirtualMachineVMCIDevice VirtualMachineVMIROM VirtualMachineVideoCard VirtualNVDIMM VirtualParallelPort VirtualPointingDevice VirtualPrecisionClock VirtualSCSIPassthrough VirtualSerialPort VirtualSoundBlaster16 VirtualSoundCard VirtualTPM VirtualUSB VirtualWDT',
  VirtualDeviceBackingInfo:
    'VirtualCdromRemoteAtapiBackingInfo VirtualCdromRemotePassthroughBackingInfo VirtualDevicePipeBackingInfo VirtualDeviceRemoteDeviceBackingInfo VirtualDeviceURIBackingInfo VirtualEthernetCardOpaqueNetworkBackingInfo VirtualFloppyRemoteDeviceBackingInfo VirtualPCIPassthroughDvxBackingInfo VirtualPrecisionClockSystemClockBackingInfo VirtualSerialPortPipeBackingInfo VirtualSerialPortThinPrintBackingInfo VirtualSerialPortURIBackingInfo VirtualSriovEthernetCardSriovBackingInfo VirtualUSBRemoteClientBackingInfo',
  VirtualDeviceBusSlotInfo: 'VirtualDevicePciBusSlotInfo VirtualUSBControllerPciBusSlotInfo',
  VirtualDeviceConfigSpec: 'VirtualDiskConfigSpec',
  VirtualDeviceDeviceBackingInfo:
    'VirtualCdromAtapiBackingInfo VirtualCdromPassthroughBackingInfo VirtualDiskPartitionedRawDiskVer2BackingInfo VirtualDiskRawDiskVer2BackingInfo VirtualEthernetCardLegacyNetworkBackingInfo VirtualFloppyDeviceBackingInfo VirtualParallelPortDeviceBackingInfo VirtualPointingDeviceDeviceBackingInfo VirtualSCSIPassthroughDeviceBackingInfo VirtualSerialPortDeviceBackingInfo VirtualSoundCardDeviceBackingInfo VirtualUSBRemoteHostBackingInfo VirtualUSBUSBBackingInfo',
  VirtualDeviceFileBackingInfo:
    'VirtualCdromIsoBackingInfo VirtualDiskFlatVer1BackingInfo VirtualDiskLocalPMemBackingInfo VirtualDiskRawDiskMappingVer1BackingInfo VirtualDiskSparseVer1BackingInfo VirtualFloppyImageBackingInfo VirtualNVDIMMBackingInfo VirtualParallelPortFileBackingInfo VirtualSerialPortFileBackingInfo',
  VirtualEthernetCard: 'VirtualE1000 VirtualPCNet32 VirtualSriovEthernetCard',
  VirtualMachineBaseIndependentFilterSpec:
    'VirtualMachineEmptyIndependentFilterSpec VirtualMachineIndependentFilterSpec',
  VirtualMachineBootOptionsBootableDevice:
    'VirtualMachineBootOptionsBootableCdromDevice VirtualMachineBootOptionsBootableDiskDevice VirtualMachineBootOptionsBootableEthernetDevice VirtualMachineBootOptionsBootableFloppyDevice',
  VirtualMachineProfileSpec: 'VirtualMachineDefaultProfileSpec VirtualMachineEmptyProfileSpec',
  VirtualMachineVirtualDeviceGroupsDeviceGroup: 'VirtualMachineVirtualDeviceGroupsVendorDeviceGroup',
  VirtualSCSIController: 'VirtualBusLogicController VirtualLsiLogicSASController',
  VirtualVmxnet: 'VirtualVmxnet2',
  VirtualVmxnet3: 'VirtualVmxnet3Vrdma',
  VmConfigFault:
    'CannotAccessNetwork CannotAccessVmComponent CannotAccessVmConfig CannotAccessVmDevice CannotAccessVmDisk CannotDisableSnapshot CannotUseNetwork CpuCompatibilityUnknown CpuHotPlugNotSupported CpuIncompatible CpuIncompatible1ECX CpuIncompatible81EDX DVPortNotSupported DeltaDiskFormatNotSupported DestinationSwitchFull DeviceBackingNotSupported DeviceControllerNotSupported DeviceNotSupported DigestNotSupported DiskNotSupported DrsVmotionIncompatibleFault EightHostLimitViolated FaultToleranceCannotEditMem FaultToleranceCpuIncompatible FeatureRequirementsNotMet FileBackedPortNotSupported FtVmHostRuleViolation IDEDiskNotSupported InvalidDiskFormat InvalidFormat InvalidNetworkInType InvalidPropertyType InvalidPropertyValue InvalidSnapshotFormat LargeRDMNotSupportedOnDatastore LegacyNetworkInterfaceInUse MemoryFileFormatNotSupportedByDatastore MemoryHotPlugNotSupported MemorySizeNotRecommended MemorySizeNotSupported MemorySizeNotSupportedByDatastore MissingIpPool MissingNetworkIpConfig MultiWriterNotSupported NoAvailableIp NoCompatibleHardAffinityHost NoCompatibleSoftAffinityHost NoVcManagedIpConfigured NonPersistentDisksNotSupported NotEnoughCpus NotEnoughLogicalCpus NotUserConfigurableProperty NumVirtualCoresPerSocketNotSupported NumVirtualCpusIncompatible NumVirtualCpusNotSupported OvfConsumerValidationFault PhysCompatRDMNotSupported QuarantineModeFault RDMNotSupported RDMNotSupportedOnDatastore RDMPointsToInaccessibleDisk RawDiskNotSupported RemoteDeviceNotSupported RuleViolation SharedBusControllerNotSupported SoftRuleVioCorrectionDisallowed SoftRuleVioCorrectionImpact StorageVmotionIncompatible UnSupportedDatastoreForVFlash UnconfiguredPropertyValue UnsupportedDatastore UnsupportedVmxLocation UnusedVirtualDiskBlocksNotScrubbed VAppNotRunning VAppPropertyFault VFlashCacheHotConfigNotSupported VFlashModuleNotSupported VMINotSupported VMOnConflictDVPort VMOnVirtualIntranet VirtualDiskBlocksNotFullyProvisioned VirtualDiskModeNotSupported VirtualEthernetCardNotSupported VirtualHardwareCompatibilityIssue VirtualHardwareVersionNotSupported VmConfigIncompatibleForFaultTolerance VmConfigIncompatibleForRecordReplay VmHostAffinityRuleViolation WakeOnLanNotSupported',
  VmConfigInfo: 'VAppConfigInfo',
  VmConfigSpec: 'VAppConfigSpec',
  VmPlacementPolicy: 'VmToVmGroupsAntiAffinity VmVmAffinity VmVmAntiAffinity',
};
