/** A typed vSphere (vim25) client, independent of Kubernetes. */

export {
  AmbiguousError,
  ConnectionError,
  InvalidRequestError,
  InvalidResponseError,
  NotFoundError,
  OptionsError,
  StoppedError,
  TaskGoneError,
  UnavailableError,
  VcenterChangedError,
  VsphereError,
} from './errors.ts';
export { type FaultCode, FaultError, faultOf, isA } from './faults.ts';
export { type CreatedFolder, createFolder, ensureFolder } from './folders/ensure-folder.ts';
export { type HealthListener, isOutage } from './health/health.ts';
export { HostNames } from './hosts/host-names.ts';
export type { Inventory, InventoryChange, InventoryOptions } from './inventory/inventory.ts';
export type { Datacenter, TemplateOptions } from './lookup/lookup.ts';
export { customValueOf } from './machines/attributes.ts';
export {
  type EnsureDestroyedOptions,
  type EnsureOptions,
  ensureDestroyed,
  ensurePoweredOff,
  ensurePoweredOn,
  ignoreFaults,
} from './machines/ensure.ts';
export type { ShutDownOptions, TaskRef } from './machines/machines.ts';
export type { CloneOptions, MachineConfig } from './machines/specs.ts';
export {
  isRef,
  type ManagedObject,
  type ManagedType,
  type Ref,
  type TypedManagedObject,
} from './properties/properties.ts';
export type { Credentials } from './session/credentials.ts';
export type { CallOptions, ChangeOptions } from './session/session-client.ts';
export type { FollowOptions } from './tasks/task-follower.ts';
export { VcenterClient, type VcenterClientOptions, type VcenterObserver } from './vcenter-client.ts';
export type { Properties, Vim25 } from './vim25/vim25.generated.ts';
export type { VsphereWorld } from './world.ts';
