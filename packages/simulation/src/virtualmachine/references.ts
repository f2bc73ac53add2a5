import { VirtualMachine } from '@vmwright/operator';
import type { ApiServer } from '../apiserver/api-server.ts';
import type { StoredObject } from '../apiserver/object.ts';
import { snapshotSourceOf } from '../kubevirt/cdi.ts';
import { Snapshot, Volume } from '../kubevirt/kinds.ts';
import { controllerOf, keyOf, onChange } from '../scenario/stored-objects.ts';
import { imageOf } from './objects.ts';

/** Returns the VirtualMachines that name an image, including those that are being deleted. */
export function machinesNaming(server: ApiServer, image: string): StoredObject[] {
  return server
    .objects(VirtualMachine)
    .filter((machine) => imageOf(machine) === image)
    .toArray();
}

/** Counts the references to images in all stored objects. */
export class References {
  readonly #server: ApiServer;
  /** UID of the image of each snapshot, by the key of the snapshot. The entries of deleted snapshots are kept. */
  readonly #images = new Map<string, string>();

  constructor(server: ApiServer) {
    this.#server = server;
    onChange(server, Snapshot, (before, after) => {
      const uid = after && controllerOf(after);
      if (before === undefined && after !== undefined && uid !== undefined)
        this.#images.set(keyOf(after), uid);
    });
  }

  /** Returns the references to an image, sorted, as the image's status lists them. */
  of(image: StoredObject): readonly string[] {
    const machines = machinesNaming(this.#server, keyOf(image));
    const counted = new Set(machines.map(({ metadata }) => metadata.uid));
    const clones = this.#server
      .objects(Volume)
      .filter((volume) => this.#imageOf(volume) === image.metadata.uid && !counted.has(controllerOf(volume)));
    return [
      ...machines.map((machine) => `VirtualMachine ${keyOf(machine)}`),
      ...clones.map((volume) => `DataVolume ${keyOf(volume)}`),
    ].sort();
  }

  /** Returns the UID of the image with the snapshot that a DataVolume clones; undefined if there is no such image. */
  #imageOf(volume: StoredObject): string | undefined {
    const source = snapshotSourceOf(volume);
    return source && this.#images.get(`${source.namespace}/${source.name}`);
  }
}
