import type { Mutant } from './mutant.ts';

const SAMPLE = 'packages/simulation/src/samples/machines';
const scenario = 'machines-sound';

/** Mutants of the sample controller, which manages one machine of the backend per object. */
export const SAMPLE_MUTANTS: readonly Mutant[] = [
  {
    name: 'sample garbage collector lists objects before machines',
    file: `${SAMPLE}/controller.ts`,
    find: "const before = variant.garbageCollection === 'objects first' ? await uids(signal) : undefined;",
    replace: 'const before = await uids(signal);',
    why: 'an object and its machine may be created between the two lists',
    scenario,
  },
  {
    name: 'status reports success before the machine is ready',
    file: `${SAMPLE}/plan.ts`,
    find: "return { do: 'report', status: { ...reported, phase: 'Creating' }, requeueAfterMs: CREATING_MS };",
    replace:
      "return { do: 'report', status: { ...reported, phase: 'Ready', observedGeneration: generation }, requeueAfterMs: CREATING_MS };",
    why: 'success is reported only after it was observed',
    scenario,
  },
  {
    name: 'create request has no idempotency key derived from the UID',
    file: `${SAMPLE}/plan.ts`,
    find: '...(variant.token && { key: uid })',
    replace: '',
    why: 'repeated create requests, from any replica, create one machine',
    scenario,
  },
];
