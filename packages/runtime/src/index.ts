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
export { ObjectCache } from './cache/cache.ts';
export type { CacheEvent, Subscriber } from './cache/cache-event.ts';
export type { CacheOptions } from './cache/cache-options.ts';
export type { Caches, KindCacheOptions } from './cache/caches.ts';
export { SharedNamespaces, type SharedPartition } from './cache/shared-namespaces.ts';
export type { Change, Indexer } from './cache/store.ts';
export * from './client/client.ts';
export * from './client/errors.ts';
export { ignoreAlreadyExists, ignoreNotFound } from './client/ignore.ts';
export * from './client/options.ts';
export type { RequestObserver } from './client/requests.ts';
export type { Page, Scale, WatchEvent } from './client/responses.ts';
export {
  type Condition,
  conditionOf,
  isTrue,
  removeCondition,
  setCondition,
} from './conditions/conditions.ts';
export { type Outcome, type ReportedStatus, withOutcome } from './conditions/outcome.ts';
export { PAUSED_CONDITION, withPaused } from './conditions/paused.ts';
export type { ReconcileContext, StatusOf, WorkContext } from './controller/context.ts';
export type { Controller, ControllerOptions, Reconcile } from './controller/controller.ts';
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
export { DebugEndpoints, type DebugOptions, type DebugPath } from './debug/endpoints.ts';
export * from './election/errors.ts';
export { LeaderElection, type OnLeading } from './election/leader-election.ts';
export type { LeaseClient } from './election/lease-lock.ts';
export type { ElectionObserver, LeaderElectionOptions } from './election/options.ts';
export {
  type EventClient,
  type EventGroup,
  type EventInput,
  EventRecorder,
  type EventRecorderOptions,
} from './events/recorder.ts';
export {
  type CollectorMetrics,
  type CollectorOptions,
  collectGarbage,
  collectorMetrics,
} from './gc/collector.ts';
export type { ExternalChange, ExternalResources, Owner, RemoveOptions } from './gc/external-resources.ts';
export { type FindOrphansOptions, type FoundOrphans, findOrphans } from './gc/orphans.ts';
export { type RemoveOrphanOptions, removeOrphan } from './gc/remove-orphan.ts';
export { ConfigMap } from './kind/builtin/config-map.ts';
export { CoreEvent, Event } from './kind/builtin/event.ts';
export { Lease, type LeaseSpec } from './kind/builtin/lease.ts';
export { Namespace } from './kind/builtin/namespace.ts';
export { SelfSubjectAccessReview, SubjectAccessReview } from './kind/builtin/reviews.ts';
export { Secret } from './kind/builtin/secret.ts';
export {
  type AdmissionWebhook,
  MutatingWebhookConfiguration,
  ValidatingWebhookConfiguration,
  type WebhookClientConfig,
  type WebhookConfiguration,
} from './kind/builtin/webhook-configuration.ts';
export { type CrdSource, type CrdVersion, CustomResourceDefinition, crdOf, crdYaml } from './kind/crd.ts';
export {
  type Column,
  type CrdConversion,
  type Declaration,
  type DeclaredKind,
  type DeclaredVersion,
  defineKind,
  type ExactFields,
  type NamedVersion,
  type Names,
  type ObjectIn,
  type ObjectWithSpec,
  type ObjectWithStatus,
  type ScalePaths,
  type SingleVersion,
  type StorageVersion,
  type Version,
} from './kind/define.ts';
export { foreignKind, type Kind, type ObjectOf, resourceOf } from './kind/kind.ts';
export {
  type KubeObject,
  keyOf,
  type ObjectMeta,
  type ObjectRef,
  type OwnerReference,
  refOf,
} from './kind/object.ts';
export { parseQuantity } from './kind/quantity.ts';
export * as schema from './kind/schema/index.ts';
export { byFields, byLabels, type Selects } from './kind/selector.ts';
export { microTime } from './kind/time.ts';
export { manifestYaml } from './kind/yaml.ts';
export { FairLimiter, type FairLimiterOptions, type Permit } from './limiter/fair-limiter.ts';
export type { JobContext, JobOptions } from './manager/job.ts';
export { Manager } from './manager/manager.ts';
export type {
  CommonOptions,
  ManagerElection,
  ManagerOptions,
  ManagerSharding,
  Replicas,
  StatusOptions,
} from './manager/options.ts';
export type { RunnableContext, RunnableOptions } from './manager/runnable.ts';
export { type CountOptions, ObjectMetrics } from './metrics/object-metrics.ts';
export {
  type CertificateMetrics,
  type ControllerMetrics,
  type ElectionMetrics,
  type ErrorCause,
  type QueueMetrics,
  type QueueState,
  type ReconcileResult,
  RuntimeMetrics,
  type ShardingMetrics,
  type WebhookMetrics,
} from './metrics/runtime-metrics.ts';
export type { Issued } from './pki/certificate.ts';
export { certificatesIn } from './pki/pem.ts';
export {
  type AddOptions,
  type Item,
  LOW,
  NORMAL,
  type QueuedKey,
  type QueueObserver,
  type RetryOptions,
  WorkQueue,
  type WorkQueueOptions,
} from './queue/work-queue.ts';
export type { PathRule, Permission, PolicyRule, Verb } from './rbac/permission.ts';
export {
  type BindingManifest,
  type ControllerPermissions,
  type JobPermissions,
  type ProgramPermissions,
  type RoleManifest,
  rbacOf,
} from './rbac/rbac.ts';
export type { Check, Checks, Remark, Report } from './server/checks.ts';
export type { HttpResponse } from './server/http-response.ts';
export { isLoopback, type StatusRoute, StatusServer, type StatusServerOptions } from './server/server.ts';
export * from './sharding/errors.ts';
export type { Work } from './sharding/held-shards.ts';
export type { ShardingClient } from './sharding/lease-store.ts';
export type { ShardingObserver, ShardingOptions, ShardOwnership } from './sharding/options.ts';
export { Sharding } from './sharding/sharding.ts';
export type { WebhookAddress } from './webhook/address.ts';
export {
  type Admission,
  type AdmissionRules,
  type AdmissionSettings,
  admission,
} from './webhook/admission.ts';
export type { AdmissionReview } from './webhook/admission-review.ts';
export type { CertificateOptions } from './webhook/certificates/issuer.ts';
export type { Lifetimes } from './webhook/certificates/plan.ts';
export {
  type AnyDeclaredKind,
  type Conversion,
  type ConversionRules,
  type Converted,
  conversion,
  type ObjectAt,
  type StoredName,
  type Versions,
} from './webhook/conversion.ts';
export type { Webhook } from './webhook/endpoints.ts';
export { type WebhookManifestsOptions, webhookManifests } from './webhook/manifests.ts';
export * from './webhook/verdict.ts';
export type { WebhookClientOptions, WebhookOptions } from './webhook/webhooks.ts';
