import { toCondition } from '../vcenter/errors.ts';
import { MovedError } from './errors.ts';
import type { GroupInFlight } from './group-in-flight.ts';
import { machinesOf } from './machines.ts';
import { cloneAttempt } from './operations.ts';
import type { Location, PlacementResolver } from './placement.ts';
import { isReplacing } from './replacement.ts';
import type { VmGroup } from './resource.ts';
import type { Observed } from './slots.ts';

/**
 * Result of the lookup of the template in the spec. Empty if the plan does not depend on the template. If the latest
 * lookup failed, contains only the `templateId` that an earlier lookup found, if any.
 */
export type ObservedTemplate = Pick<Observed, 'templateId' | 'isTemplateFound'>;

/** Gathers the machines of a group and the state of its operations, without a call to vCenter. */
export function observe(
  group: VmGroup,
  location: Location,
  state: GroupInFlight,
  template: ObservedTemplate = {},
): Observed {
  const machines = machinesOf(group, location);
  const failures = state.backoffs.failures();
  return {
    machines,
    operating: state.operating(),
    backingOff: state.backoffs.slots('slot'),
    areClonesBackingOff: state.backoffs.isActive('clones'),
    resizeRejected: state.backoffs.slots('size'),
    gone: state.gone(machines.map(({ slot }) => slot)),
    movedAway: new Map(
      failures.flatMap(({ target, error }): readonly [number, string][] =>
        'slot' in target && error instanceof MovedError ? [[target.slot, error.machine]] : [],
      ),
    ),
    ...template,
    errors: failures.flatMap(({ target, error, attempt }) => {
      if (target.of === 'group' || error instanceof MovedError) return [];
      return toCondition(error, location.vcenter.name, attempt) ?? [];
    }),
  };
}

/** Observation of a group that was never placed. */
export const NOTHING_OBSERVED: Observed = {
  machines: [],
  operating: new Map(),
  backingOff: new Set(),
  resizeRejected: new Set(),
  gone: new Set(),
  movedAway: new Map(),
  errors: [],
  areClonesBackingOff: false,
  isUnplaced: true,
};

/**
 * Looks up the template in the spec if the plan depends on it. This is so in two cases:
 * - A user asked to replace machines.
 * - The ownership labels of a machine name another template than the spec. Both names may refer to the same template.
 *
 * No machine is replaced before the template is found.
 */
export async function observeTemplate(
  group: VmGroup,
  location: Location,
  state: GroupInFlight,
  resolver: PlacementResolver,
  signal: AbortSignal,
): Promise<ObservedTemplate> {
  const isSame = machinesOf(group, location).every(({ template }) => template === group.spec.template);
  if (isSame && !isReplacing(group)) return {};
  const templateId = state.templateId(group);
  const known = templateId === undefined ? {} : { templateId };
  if (state.backoffs.isActive('template')) return known;
  // The first lookup for this spec ignores the cache, because the name may belong to another template by now.
  if (templateId === undefined) resolver.evictTarget(group, location);
  try {
    const { template } = await resolver.target(group, location, signal);
    state.templateFound(group, template.value);
    return { templateId: template.value, isTemplateFound: true };
  } catch (error) {
    if (toCondition(error, location.vcenter.name) === undefined) throw error;
    state.backoffs.start({ of: 'template' }, { error, attempt: cloneAttempt(group) });
    return known;
  }
}
