import { type Caches, keyOf } from '@vmwright/runtime';
import { VirtualMachine } from '../virtualmachine/resource.ts';
import { DataSource, DataVolume } from './kinds.ts';
import { controllerOf } from './ownership.ts';

/*
 * Clones: DataVolumes that copy a snapshot or a claim. A DataVolume names this source directly, or refers to a
 * DataSource that names the source.
 */

/** Index of DataVolumes by the key of the DataSource that they refer to. */
const BY_DATA_SOURCE = 'data-source';

/** Adds the index that `clonesThrough` reads. May be called more than once. */
export function indexDataSources(caches: Caches): void {
  caches.get(DataVolume).addIndex(BY_DATA_SOURCE, (volume) => [dataSourceKey(volume) ?? []].flat());
}

/** Returns the key of the DataSource that a DataVolume refers to. */
function dataSourceKey({ metadata, spec }: DataVolume): string | undefined {
  const { kind, namespace = metadata.namespace, name } = spec?.sourceRef ?? {};
  return kind === DataSource.kind && name !== undefined ? keyOf({ namespace, name }) : undefined;
}

/**
 * Returns the DataVolumes that refer to a DataSource, each with `spec.source` set to the source that the DataSource
 * names.
 */
export function clonesThrough(source: DataSource, caches: Caches): readonly DataVolume[] {
  const clones = caches.get(DataVolume).byIndex(BY_DATA_SOURCE, keyOf(source.metadata));
  return [...clones].map((volume) => withSourceOf(volume, source));
}

/**
 * Returns a DataVolume with the source that its DataSource names. Returns the DataVolume unchanged if it refers to no
 * DataSource, or if the DataSource is missing or names no source.
 */
export function resolved(volume: DataVolume, caches: Caches): DataVolume {
  const key = dataSourceKey(volume);
  const source = key === undefined ? undefined : caches.get(DataSource).get(key);
  return source === undefined ? volume : withSourceOf(volume, source);
}

function withSourceOf(volume: DataVolume, { spec }: DataSource): DataVolume {
  const { source } = spec ?? {};
  return source === undefined ? volume : { ...volume, spec: { ...volume.spec, source } };
}

/** Returns the UID of the VirtualMachine that owns a DataVolume; the empty string if none does. */
export function machineUid(volume: DataVolume): string {
  const owner = controllerOf(volume);
  if (owner?.kind !== VirtualMachine.kind) return '';
  return owner.apiVersion.startsWith(`${VirtualMachine.group}/`) ? owner.uid : '';
}
