/** Clones a template and destroys the clone. */

import { nodeWorld } from '@vmwright/core';
import { isRef, VcenterClient, VsphereError } from '@vmwright/vsphere';

const { VC_HOST = '', VC_USER = '', VC_PASS = '', VC_THUMBPRINT, TEMPLATE = '', POOL } = process.env;

try {
  await using vcenter = new VcenterClient({
    world: nodeWorld,
    server: VC_HOST,
    credentials: () => ({ username: VC_USER, password: VC_PASS }),
    tls: VC_THUMBPRINT === undefined ? {} : { thumbprint: VC_THUMBPRINT },
  });
  const inventory = vcenter.inventory({ properties: { VirtualMachine: ['name', 'runtime.powerState'] } });
  await inventory.synced();
  console.log(`${inventory.list('VirtualMachine').length} machines`);

  const datacenter = await vcenter.lookup.datacenter();
  const task = await vcenter.machines.clone({
    name: 'hello',
    template: await vcenter.lookup.template(datacenter, TEMPLATE),
    folder: datacenter.vmFolder,
    resourcePool: await vcenter.lookup.resourcePool(datacenter, POOL),
    instanceUuid: nodeWorld.uuid(),
    cpus: 2,
    powerOn: true,
  });
  const machine = await vcenter.tasks.follow(task, { description: "cloning 'hello'" });
  if (!isRef(machine, 'VirtualMachine')) throw new Error('the clone task returned no machine');
  console.log(`${(await vcenter.read(machine, ['name'])).name} is ${machine.value}`);

  const off = await vcenter.machines.shutDown(machine, { gracePeriodMs: 60_000 });
  if (off !== undefined) await vcenter.tasks.follow(off);
  await vcenter.tasks.follow(await vcenter.machines.destroy(machine));
} catch (error) {
  if (!(error instanceof VsphereError)) throw error;
  console.error(error.message); // "template 'x' not found in datacenter 'DC0'"
  process.exitCode = 1;
}
