/**
 * Program with our vSphere client that is compared with bench/govmomi/main.go. Both programs take the same values of
 * --job. The client uses the same clocks and connections (`nodeWorld`) as in the operator.
 */
import { readFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { nodeWorld } from '@vmwright/runtime';
import { VcenterClient } from '@vmwright/vsphere';
import { MACHINE } from './machine.ts';

const { values } = parseArgs({
  options: {
    job: { type: 'string', default: 'one' },
    machines: { type: 'string', default: '0' },
    warm: { type: 'string', default: '0' },
    times: { type: 'string', default: '1' },
  },
});
const [machines, warm, times] = [values.machines, values.warm, values.times].map(Number);
const { VC_HOST = '', VC_USER = '', VC_PASS = '', VC_CA = '' } = process.env;

const ca = await readFile(VC_CA, 'utf8');
await using vcenter = new VcenterClient({
  world: nodeWorld,
  server: VC_HOST,
  credentials: () => ({ username: VC_USER, password: VC_PASS }),
  tls: { ca },
});
const readAll = () => vcenter.list('VirtualMachine', MACHINE);
const all = await readAll();
const [first] = all;
if (first === undefined || all.length !== machines)
  throw new Error(`read ${all.length} machines instead of ${machines}`);
const readOne = () => vcenter.read(first.ref, MACHINE);

await measure(values.job === 'one' ? readOne : readAll);

/** Prints the duration of each read and the total CPU time, in ms. */
async function measure(read: () => Promise<unknown>): Promise<void> {
  for (let i = 0; i < (warm ?? 0); i++) await read();
  const took: number[] = [];
  const before = process.cpuUsage();
  for (let i = 0; i < (times ?? 1); i++) {
    const started = performance.now();
    await read();
    took.push(performance.now() - started);
  }
  const { user, system } = process.cpuUsage(before); // of all threads
  console.log('took', ...took);
  console.log('cpu', (user + system) / 1000);
}
