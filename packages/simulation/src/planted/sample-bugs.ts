import type { Planted } from './planted.ts';

const SAMPLE = 'packages/simulation/src/samples/machines';
const scenario = 'machines-sound';

/** In the sample controller, which has a machine of a backend for each of its objects. */
export const SAMPLE_BUGS: readonly Planted[] = [
  {
    name: 'the sweeper lists the objects before the machines',
    file: `${SAMPLE}/controller.ts`,
    find: "const before = variant.sweeps === 'objects first' ? await uids(signal) : undefined;",
    replace: 'const before = await uids(signal);',
    why: 'both may have come in between',
    scenario,
  },
  {
    name: 'the status is written before the effect',
    file: `${SAMPLE}/plan.ts`,
    find: "return { do: 'tell', status: { ...told, phase: 'Creating' }, againMs: MAKING_MS };",
    replace:
      "return { do: 'tell', status: { ...told, phase: 'Ready', observedGeneration: generation }, againMs: MAKING_MS };",
    why: 'no success before it is observed',
    scenario,
  },
  {
    name: 'the key of a machine is not fixed by its object',
    file: `${SAMPLE}/plan.ts`,
    find: '...(variant.token && { key: uid })',
    replace: '',
    why: 'however often a create is sent, and by whom, it makes one machine',
    scenario,
  },
];
