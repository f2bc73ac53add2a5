import { defineKind } from '../src/kind/define.ts';
import { integer, object, string } from '../src/kind/schema/index.ts';
import type { ConversionRules } from '../src/webhook/conversion.ts';

const versions = [
  { name: 'v1', storage: true, spec: object({ meters: integer() }) },
  { name: 'v1beta1', spec: object({ length: string() }) },
] as const;

/** Declares the kind Rope with two versions in an API group of its own. */
export function defineRope(group: string) {
  return defineKind({ group, kind: 'Rope', plural: 'ropes', versions });
}

/** Conversion of `length: 7m` (v1beta1) to and from `meters: 7` (v1). */
export const ropeRules: ConversionRules<typeof versions> = {
  v1beta1: {
    toStored: ({ spec }) => ({ spec: { meters: Number.parseInt(spec.length, 10) } }),
    fromStored: ({ spec }) => ({ spec: { length: `${spec.meters}m` } }),
  },
};
