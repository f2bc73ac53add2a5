import { VirtualMachine } from '@vmwright/operator';
import type { ApiServer } from '../apiserver/api-server.ts';
import type { StoredObject } from '../apiserver/object.ts';
import { snapshotSourceOf } from '../kubevirt/cdi.ts';
import { controllerOf, Snapshot, Volume } from '../kubevirt/kinds.ts';
import { imageOf, keyOf } from './objects.ts';

/** Returns the VirtualMachines that name an image, including those that are being deleted. */
export function machinesNaming(server: ApiServer, image: string): StoredObject[] {
  return server
    .objects(VirtualMachine)
    .filter((machine) => imageOf(machine) === image)
    .toArray();
}

/** Returns the DataVolumes that clone a snapshot of the image, without the root disks of the given VirtualMachines. */
function foreignClones(
  server: ApiServer,
  image: StoredObject,
  machines: readonly StoredObject[],
): StoredObject[] {
  const own = new Set(
    server
      .objects(Snapshot)
      .filter((snapshot) => controllerOf(snapshot) === image.metadata.uid)
      .map(keyOf),
  );
  const counted = new Set(machines.map(({ metadata }) => metadata.uid));
  return server
    .objects(Volume)
    .filter((volume) => {
      const source = snapshotSourceOf(volume);
      return (
        source !== undefined &&
        own.has(`${source.namespace}/${source.name}`) &&
        !counted.has(controllerOf(volume))
      );
    })
    .toArray();
}

/** Returns the references of an image, counted anew over all objects, as its status must list them. */
export function referencesOf(server: ApiServer, image: StoredObject): readonly string[] {
  const machines = machinesNaming(server, keyOf(image));
  return [
    ...machines.map((machine) => `VirtualMachine ${keyOf(machine)}`),
    ...foreignClones(server, image, machines).map((volume) => `DataVolume ${keyOf(volume)}`),
  ].sort();
}
