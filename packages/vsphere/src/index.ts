/** A typed vSphere (vim25) client, independent of Kubernetes. */

export {
  AmbiguousError,
  ConnectionError,
  InvalidRequestError,
  InvalidResponseError,
  NotFoundError,
  OptionsError,
  type Outcome,
  StoppedError,
  TaskGoneError,
  UnavailableError,
  VcenterChangedError,
  VsphereError,
} from './errors.ts';
export { type FaultCode, FaultError, faultOf, isA } from './faults.ts';
export { type CreatedFolder, createFolder, ensureFolder } from './folders/ensure-folder.ts';
export { type Health, type HealthListener, isOutage } from './health/health.ts';
export { HostNames } from './hosts/host-names.ts';
export { isEqual } from './inventory/equal.ts';
export type { Inventory, InventoryChange, InventoryOptions, PropertyPaths } from './inventory/inventory.ts';
export type { Indexes } from './inventory/store.ts';
export type { Datacenter, Lookup, TemplateOptions } from './lookup/lookup.ts';
export { type Attributes, customValueOf } from './machines/attributes.ts';
export {
  type EnsureDestroyedOptions,
  type EnsureOptions,
  ensureDestroyed,
  ensurePoweredOff,
  ensurePoweredOn,
  ignoreFaults,
  type MachineChange,
} from './machines/ensure.ts';
export type { Machines, ShutDownOptions, TaskRef } from './machines/machines.ts';
export type { CloneOptions, MachineConfig } from './machines/specs.ts';
export {
  isRef,
  type ManagedObject,
  type ManagedType,
  type ObjectList,
  type Ref,
  type TypedManagedObject,
} from './properties/properties.ts';
export type { Credentials } from './session/credentials.ts';
export type { CallOptions, ChangeOptions } from './session/session-client.ts';
export type { CallObserver } from './soap/soap-client.ts';
export type { FollowOptions, TaskFollower } from './tasks/task-follower.ts';
export { VcenterClient, type VcenterClientOptions, type VcenterObserver } from './vcenter-client.ts';
export type { DataObject, ManagedObjectReference, Properties, Vim25 } from './vim25/vim25.generated.ts';
export type { VsphereWorld } from './world.ts';
