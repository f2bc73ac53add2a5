import type { KubeObject, ObjectMeta, OwnerReference } from '@vmwright/runtime';
import { isEmpty, isJson, type Json } from './json.ts';
import { Unmodelled } from './refusal.ts';

/** An object as it is stored: without its managed fields, which are kept beside it. Never changed in place. */
export interface StoredObject extends KubeObject {
  readonly metadata: StoredMeta;
  readonly [field: string]: unknown;
}

export interface StoredMeta extends ObjectMeta {
  readonly [field: string]: unknown;
}

/** What somebody sends: an object whose metadata may be incomplete. */
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

/** Reads an object as the API server does: unknown metadata is dropped, and so is what is empty. */
export function draftOf(value: unknown): Draft {
  if (!isJson(value)) throw new Unmodelled('a body that is no object');
  const metadata = metadataOf(value.metadata ?? {});
  return { ...value, metadata };
}

function metadataOf(value: unknown): DraftMeta {
  if (!isJson(value)) throw new Unmodelled('metadata that is no object');
  const metadata: Record<string, unknown> = {};
  for (const name of STRINGS) {
    const part = value[name];
    if (typeof part === 'string' && part !== '') metadata[name] = part;
    else if (!isNothing(part)) throw new Unmodelled(`metadata.${name} that is no string`);
  }
  for (const name of NUMBERS) {
    const part = value[name];
    if (typeof part === 'number' && (part !== 0 || name !== 'generation')) metadata[name] = part;
    else if (!isNothing(part)) throw new Unmodelled(`metadata.${name} that is no number`);
  }
  for (const name of MAPS) {
    const part = value[name];
    if (isNothing(part)) continue;
    if (!isJson(part) || Object.values(part).some((each) => typeof each !== 'string'))
      throw new Unmodelled(`metadata.${name} that is no map of strings`);
    if (!isEmpty(part)) metadata[name] = part;
  }
  const { finalizers, ownerReferences } = value;
  if (Array.isArray(finalizers) && finalizers.every((each) => typeof each === 'string')) {
    if (finalizers.length > 0) metadata.finalizers = finalizers;
  } else if (!isNothing(finalizers)) throw new Unmodelled('finalizers that are no list of strings');
  if (Array.isArray(ownerReferences) && ownerReferences.every(isOwnerReference)) {
    if (ownerReferences.length > 0) metadata.ownerReferences = ownerReferences;
  } else if (!isNothing(ownerReferences)) throw new Unmodelled('incomplete owner references');
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

/** As good as not there. */
function isNothing(value: unknown): boolean {
  return value === undefined || value === null || value === '' || value === 0;
}

/** RFC 3339 with seconds, as Kubernetes writes its times. */
export function timeOf(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}

export function isBeingDeleted({ metadata }: StoredObject): boolean {
  return metadata.deletionTimestamp !== undefined;
}
