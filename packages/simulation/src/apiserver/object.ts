import type { KubeObject, ObjectMeta, OwnerReference } from '@vmwright/runtime';
import { UnmodelledError } from './errors.ts';
import { isEmpty, isJson, type Json } from './json.ts';

/** An object as stored, without its managed fields, which `Version` holds. Immutable. */
export interface StoredObject extends KubeObject {
  readonly metadata: StoredMeta;
  readonly [field: string]: unknown;
}

export interface StoredMeta extends ObjectMeta {
  readonly [field: string]: unknown;
}

/** An object as sent by a client; its metadata may be incomplete. */
export interface Draft extends Json {
  readonly metadata: DraftMeta;
}

export type DraftMeta = { readonly [K in keyof ObjectMeta]?: ObjectMeta[K] } & Json;

const STRINGS = [
  'name',
  'namespace',
  'generateName',
  'uid',
  'resourceVersion',
  'creationTimestamp',
  'deletionTimestamp',
];
const NUMBERS = ['generation', 'deletionGracePeriodSeconds'];
const MAPS = ['labels', 'annotations'];

/** Decodes an object as the API server does: drops unknown and empty metadata fields. */
export function draftOf(value: unknown): Draft {
  if (!isJson(value)) throw new UnmodelledError('a body that is not an object');
  const metadata = metadataOf(value.metadata ?? {});
  return { ...value, metadata };
}

function metadataOf(value: unknown): DraftMeta {
  if (!isJson(value)) throw new UnmodelledError('metadata that is not an object');
  const metadata: Record<string, unknown> = {};
  for (const name of STRINGS) {
    const part = value[name];
    if (typeof part === 'string' && part !== '') metadata[name] = part;
    else if (!isUnset(part)) throw new UnmodelledError(`metadata.${name} that is not a string`);
  }
  for (const name of NUMBERS) {
    const part = value[name];
    if (typeof part === 'number' && (part !== 0 || name !== 'generation')) metadata[name] = part;
    else if (!isUnset(part)) throw new UnmodelledError(`metadata.${name} that is not a number`);
  }
  for (const name of MAPS) {
    const part = value[name];
    if (isUnset(part)) continue;
    if (!isJson(part) || Object.values(part).some((each) => typeof each !== 'string'))
      throw new UnmodelledError(`metadata.${name} that is not a map of strings`);
    if (!isEmpty(part)) metadata[name] = part;
  }
  const { finalizers, ownerReferences } = value;
  if (Array.isArray(finalizers) && finalizers.every((each) => typeof each === 'string')) {
    if (finalizers.length > 0) metadata.finalizers = finalizers;
  } else if (!isUnset(finalizers)) throw new UnmodelledError('finalizers that are not a list of strings');
  if (Array.isArray(ownerReferences) && ownerReferences.every(isOwnerReference)) {
    if (ownerReferences.length > 0) metadata.ownerReferences = ownerReferences;
  } else if (!isUnset(ownerReferences)) throw new UnmodelledError('incomplete owner references');
  return metadata;
}

function isOwnerReference(value: unknown): value is OwnerReference {
  return (
    isJson(value) &&
    ['apiVersion', 'kind', 'name', 'uid'].every(
      (name) => typeof value[name] === 'string' && value[name] !== '',
    )
  );
}

/** Whether the API server treats the value like a missing one. */
function isUnset(value: unknown): boolean {
  return value === undefined || value === null || value === '' || value === 0;
}

/** Formats a time as Kubernetes does: RFC 3339 in seconds. */
export function timeOf(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}

export function isBeingDeleted({ metadata }: StoredObject): boolean {
  return metadata.deletionTimestamp !== undefined;
}
