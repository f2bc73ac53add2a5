export * from '@vmwright/core';
export { type Access, AccessError } from './access/access.ts';
export { type Credentials, noCredentials } from './access/credentials.ts';
export { type InClusterOptions, inClusterAccess } from './access/in-cluster.ts';
export { type KubeconfigOptions, kubeconfigAccess } from './access/kubeconfig.ts';
export {
  Availability,
  type AvailabilityOptions,
  BackendUnavailableError,
  type Outage,
} from './availability/availability.ts';
export { type CacheEvent, type CacheOptions, ObjectCache } from './cache/cache.ts';
export { Caches, type KindCacheOptions } from './cache/caches.ts';
export * from './client/client.ts';
export * from './client/errors.ts';
export * from './client/options.ts';
export {
  type Condition,
  conditionOf,
  isTrue,
  removeCondition,
  setCondition,
} from './conditions/conditions.ts';
export { type Outcome, type ReportedStatus, withOutcome } from './conditions/outcome.ts';
export { PAUSED_CONDITION, withPaused } from './conditions/paused.ts';
export type { ReconcileContext, WorkContext } from './controller/context.ts';
export { Controller, type ControllerOptions, type Reconcile } from './controller/controller.ts';
export {
  annotationsChanged,
  any,
  generationChanged,
  labelsChanged,
  type Predicate,
  statusChanged,
} from './controller/predicates.ts';
export { type Requeue, type Result, requeueAfter, TerminalError } from './controller/result.ts';
export {
  Channel,
  Poller,
  type PollerOptions,
  type Source,
  type Watch,
  watch,
} from './controller/sources.ts';
export * from './election/errors.ts';
export { LeaderElection } from './election/leader-election.ts';
export type { ElectionObserver, LeaderElectionOptions } from './election/options.ts';
export { type EventInput, EventRecorder, type EventRecorderOptions } from './events/recorder.ts';
export { Event } from './kind/builtin/event.ts';
export { Lease } from './kind/builtin/lease.ts';
export { Secret } from './kind/builtin/secret.ts';
export {
  MutatingWebhookConfiguration,
  ValidatingWebhookConfiguration,
  type WebhookConfiguration,
} from './kind/builtin/webhook-configuration.ts';
export { CustomResourceDefinition, crdOf, crdYaml } from './kind/crd.ts';
export { type DeclaredKind, defineKind } from './kind/define.ts';
export { foreignKind, type Kind, type ObjectOf } from './kind/kind.ts';
export {
  type KubeObject,
  keyOf,
  type ObjectMeta,
  type ObjectRef,
  type OwnerReference,
  refOf,
} from './kind/object.ts';
export * as schema from './kind/schema/index.ts';
export { byFields, byLabels, type Selects } from './kind/selector.ts';
export { microTime } from './kind/time.ts';
export { manifestYaml } from './kind/yaml.ts';
export type { JobContext, JobOptions } from './manager/job.ts';
export {
  Manager,
  type ManagerElection,
  type ManagerOptions,
  type ManagerSharding,
  type StatusOptions,
} from './manager/manager.ts';
export { type CountOptions, ObjectMetrics } from './metrics/object-metrics.ts';
export { RuntimeMetrics } from './metrics/runtime-metrics.ts';
export { LOW, NORMAL, WorkQueue } from './queue/work-queue.ts';
export type { PathRule, Permission, PolicyRule, Verb } from './rbac/permission.ts';
export {
  type ControllerPermissions,
  type JobPermissions,
  type ProgramPermissions,
  rbacOf,
} from './rbac/rbac.ts';
export { isLoopback, StatusServer, type StatusServerOptions } from './server/server.ts';
export * from './sharding/errors.ts';
export type { ShardingObserver, ShardingOptions } from './sharding/options.ts';
export { Sharding } from './sharding/sharding.ts';
export type { WebhookAddress } from './webhook/address.ts';
export { type Admission, type AdmissionRules, admission } from './webhook/admission.ts';
export type { CertificateOptions } from './webhook/certificates/issuer.ts';
export { type Conversion, type ConversionRules, type Converted, conversion } from './webhook/conversion.ts';
export { type WebhookManifestsOptions, webhookManifests } from './webhook/manifests.ts';
export * from './webhook/verdict.ts';
export type { WebhookClientOptions, WebhookOptions } from './webhook/webhooks.ts';
